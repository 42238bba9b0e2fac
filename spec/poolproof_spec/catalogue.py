"""The table of everything that is checked: code, name, level, claim, source, predicate, and a witness for each."""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from poolproof_spec import effects, invariants, prefixes, properties
from poolproof_spec.fits import fits
from poolproof_spec.operation import Capacity, Insert, LockPrefix, Match, Query, Unlock, UnlockWindow
from poolproof_spec.outcome import Answer, Done, Refused
from poolproof_spec.state import PoolState
from poolproof_spec.transition import Transition, cached_pages


@dataclass(frozen=True)
class Property:
    """One rule, checked after each operation."""

    code: str
    """The short name that docs and reports use: W1, P1+."""
    name: str
    """A sentence-like name, as in traces and JSON: first-sufficient."""
    level: int
    """The conformance level that asks for it: 0, 1 or 2."""
    claim: str
    """What must hold, in English."""
    check: Callable[[Transition], str | None]
    """None where it holds, else what was found."""
    witness: Callable[[Transition], bool]
    """Whether the transition exercises the rule: each must be seen at least once, or `holds` means nothing."""

    @property
    def source(self) -> str:
        """Where the claim is written down."""
        return f"docs/spec.md#{self.code.lower().rstrip('+')}-{self.name}"


def _invariant(
    code: str, name: str, claim: str, holds: Callable[[PoolState], str | None], seen: Callable[[PoolState], bool]
) -> Property:
    return Property(code, name, 0, claim, lambda t: holds(t.after), lambda t: seen(t.after))


def _tombstoned(state: PoolState) -> bool:
    return state.geometry.has_role("swa") and any(entry.ids and not entry.swa_ids for entry in state.entries)


def _moved(t: Transition) -> bool:
    return next(t.moves(), None) is not None


def _found(t: Transition) -> int:
    """Pages that a match or a lock found, or that an insert cached."""
    if not isinstance(t.outcome, Done):
        return 0
    return len(t.operation.key) if isinstance(t.operation, Insert) else t.outcome.matched_pages or 0


def _hollow(t: Transition) -> bool:
    """A match or a lock of a prefix of which more is cached than can be used."""
    if not isinstance(t.operation, Match | LockPrefix) or not isinstance(t.outcome, Done):
        return False
    cached = cached_pages(t.before)
    return t.operation.key[: _found(t) + 1] in cached and _found(t) < len(t.operation.key)


def _guarded(t: Transition) -> bool:
    """Pages that must not move, in a demand that had to make room."""
    return t.demand is not None and (
        any(not member.gate_open and member.bindings for member in t.before.members) or bool(t.before.flights)
    )


INVARIANTS: tuple[Property, ...] = (
    _invariant(
        "W1",
        "pages-in-range",
        "Every live or pending page lies between the padding sink and the end of its member's grid.",
        invariants.pages_in_range,
        lambda state: any(member.bindings for member in state.members),
    ),
    _invariant(
        "W2",
        "extents-ordered",
        "Non-empty members lie in chain order and share no byte.",
        invariants.extents_ordered,
        lambda state: len(invariants.occupied_extents(state)) > 1,
    ),
    _invariant(
        "W3",
        "pages-and-ids-partition",
        "Live, pending and free pages partition the usable ones; free and bound ids partition the id space.",
        invariants.pages_and_ids_partition,
        lambda state: any(member.pending for member in state.members),
    ),
    _invariant(
        "W4",
        "swa-within-full",
        "An id bound in SWA is bound in FULL too.",
        invariants.swa_within_full,
        _tombstoned,
    ),
    _invariant(
        "W5",
        "owned-once",
        "Each live page has exactly one owner: a cached node, a running request, or the open group.",
        invariants.owned_once,
        lambda state: bool(state.entries and state.holds and state.queued.ids),
    ),
    Property(
        "W6",
        "payloads-kept",
        0,
        "A live page holds what was last written to its id, whatever moved.",
        lambda t: invariants.payloads_kept(t.after),
        lambda t: bool(t.after.payloads) and _moved(t),
    ),
)

CONTRACT: tuple[Property, ...] = (
    Property(
        "P1",
        "first-sufficient",
        1,
        "No proper prefix of the evicted steps leaves a state that fits the demand.",
        properties.first_sufficient,
        lambda t: t.granted and len(t.steps) > 1,
    ),
    Property(
        "P1+",
        "irredundant",
        2,
        "No evicted step can be spared, with the steps that depend on it, and the demand still fit.",
        properties.irredundant,
        lambda t: t.granted and len(t.steps) > 1,
    ),
    Property(
        "P2",
        "complete",
        1,
        "If the state after freeing every legal step fits the demand, it is granted.",
        properties.complete,
        lambda t: t.granted and bool(t.steps) and t.demand is not None and not fits(t.boundary, t.demand),
    ),
    Property(
        "P3",
        "preserving",
        1,
        "A rejected demand evicts nothing: no page, id, payload, lock or order of recency changes.",
        properties.preserving,
        lambda t: t.rejected and bool(t.before.entries),
    ),
    Property(
        "P4",
        "honest-reason",
        1,
        "A rejection called impossible names a bound that fails whatever is lifted; any other names what blocks it.",
        properties.honest_reason,
        lambda t: t.rejected and bool(t.before.entries),
    ),
    Property(
        "P5",
        "within-quota",
        1,
        "Before the last step, neither the demanded pages nor the bytes that surely fund them had been freed.",
        properties.within_quota,
        lambda t: t.granted and len(t.steps) > 1,
    ),
    Property(
        "P6",
        "pure-query",
        0,
        "Asking changes nothing, and promises no more than fits.",
        properties.pure_query,
        lambda t: isinstance(t.operation, Query) and isinstance(t.outcome, Answer) and bool(t.before.entries),
    ),
    Property(
        "P7",
        "gates-and-events",
        0,
        "No page moves behind a closed gate or while it is written; no pending page is handed out before its event.",
        properties.gates_and_events,
        _guarded,
    ),
    Property(
        "P8",
        "deferred-frees",
        0,
        "Grouped frees count at the phase boundary before the first eviction, and the caller's group stays open.",
        properties.deferred_frees,
        lambda t: t.demand is not None and bool(t.before.queued.ids) and t.granted,
    ),
    Property(
        "P9",
        "locks-kept",
        0,
        "Every eviction step is legal at its turn: nothing locked is evicted or tombstoned.",
        properties.locks_kept,
        lambda t: bool(t.steps) and any(entry.full_locks for entry in t.before.entries),
    ),
    Property(
        "P10",
        "bounded-work",
        1,
        "For a demand, at most one batch of moves a member, and one walk a kind of step.",
        properties.bounded_work,
        lambda t: t.demand is not None and _moved(t),
    ),
    Property(
        "P11",
        "capacity-honesty",
        1,
        "What is said to be available can be had without eviction; one page more cannot.",
        properties.capacity_honesty,
        lambda t: isinstance(t.operation, Capacity) and isinstance(t.outcome, Answer) and bool(t.before.entries),
    ),
    Property(
        "P12",
        "policy-order",
        2,
        "The evicted steps are taken, in turn, from the first sufficient steps of the policy order.",
        properties.policy_order_kept,
        lambda t: t.granted and bool(t.steps) and len(t.before.entries) > 1,
    ),
    Property(
        "G1",
        "grant-exact",
        0,
        "A grant gives exactly the demanded pages to the request that asked, and reports them and what left the cache.",
        effects.grant_exact,
        lambda t: t.granted and bool(t.steps),
    ),
    Property(
        "G2",
        "refusal-changes-nothing",
        0,
        "A bad call is refused, and a refused call changes nothing.",
        effects.refusal_changes_nothing,
        lambda t: isinstance(t.outcome, Refused) and bool(t.before.entries),
    ),
    Property(
        "G3",
        "effects-exact",
        0,
        "An operation changes what it names, as it says, and nothing else.",
        effects.effects_exact,
        lambda t: t.demand is None and t.before.members != t.after.members,
    ),
    Property(
        "G4",
        "match-usable",
        0,
        "A match and a lock find the longest prefix with FULL throughout, SWA over the last window, and a state.",
        prefixes.match_usable,
        _hollow,
    ),
    Property(
        "G5",
        "handles-exact",
        0,
        "A lock handle holds what was found until it is given back; what is held is locked, and nothing else.",
        prefixes.handles_exact,
        lambda t: isinstance(t.operation, Unlock | UnlockWindow) and bool(t.after.locks),
    ),
    Property(
        "G6",
        "recency-exact",
        2,
        "A match, a lock and an insert make their prefix the newest; nothing else changes the order of recency.",
        prefixes.recency_exact,
        lambda t: _found(t) > 0 and len(t.before.entries) > 1,
    ),
)

PROPERTIES: tuple[Property, ...] = INVARIANTS + CONTRACT
"""All of them; the codes are unique and so are the names."""


def property_named(name: str) -> Property:
    """Find a rule by code or name; KeyError names the nearest known ones."""
    for known in PROPERTIES:
        if name in (known.code, known.name):
            return known
    names = [known.name for known in PROPERTIES]
    raise KeyError(f"no property {name!r}; near: {get_close_matches(name, names, 3) or names}")


def findings(t: Transition, level: int = 2) -> dict[str, str]:
    """What every rule up to `level` finds wrong with one transition: name of the rule to what was found."""
    found = {rule.name: rule.check(t) for rule in PROPERTIES if rule.level <= level}
    return {name: message for name, message in found.items() if message is not None}
