"""Cases of reserve.json: states written out small, a demand, and the least victims or the honest reason.

Seeded histories lead the reference to states; of what is asked there a case is kept where its kind, the set of its
flags in its layout, has too few yet. So each kind is there, and the file stays small.
"""

from collections import Counter
from collections.abc import Iterator
from random import Random

from poolproof_conformance.vectors.answers import ReserveAnswer, as_demand, page_demand, reserve_answer
from poolproof_conformance.vectors.scripts import demands, script, small_arena
from poolproof_conformance.vectors.vector_format import ReserveCase, ReserveGroup, vector_state
from poolproof_conformance.wording import call_words
from poolproof_reference.errors import RefusedError
from poolproof_reference.joint_pool import JointPool
from poolproof_spec import operation as op
from poolproof_spec.fits import fits
from poolproof_spec.geometry import LAYOUTS, Geometry
from poolproof_spec.outcome import Blocked, Impossible
from poolproof_spec.state import PoolState
from poolproof_spec.steps import after_group, after_steps, policy_order, tree_of
from poolproof_spec.units import TokenCount

SEED = 20250102
HISTORIES_A_LAYOUT = 150
MOST_OF_A_KIND = 1
RARE = frozenset({"BlockedByEvents", "BlockedByGates", "Pending"})
"""Flags that are worth a second case of the same kind."""
MOST_ENTRIES = 6
"""Of larger trees nothing is kept: a case is read by people too."""


def reserve_groups() -> Iterator[ReserveGroup]:
    """One group for each arena that gave cases; the ids are given later."""
    rng = Random(SEED)
    kinds: Counter[tuple[str, frozenset[str]]] = Counter()
    for name in LAYOUTS:
        for _ in range(HISTORIES_A_LAYOUT):
            geometry = small_arena(rng, name)
            kept = tuple(_kept(kinds, name, _asked(rng, geometry)))
            if kept:
                yield ReserveGroup(geometry=geometry, tests=kept)


def _kept(
    kinds: Counter[tuple[str, frozenset[str]]], layout_name: str, cases: Iterator[ReserveCase]
) -> Iterator[ReserveCase]:
    for case in cases:
        kind = layout_name, frozenset(case.flags)
        if kinds[kind] < MOST_OF_A_KIND + bool(RARE & kind[1]):
            kinds[kind] += 1
            yield case


def _asked(rng: Random, geometry: Geometry) -> Iterator[ReserveCase]:
    """Demands at the edge in the state that one history leads to."""
    pool, done = JointPool(geometry), []
    for operation in script(rng, geometry):
        try:
            pool.apply(operation)
        except RefusedError:
            continue
        done.append(operation)
    state = pool.observe()
    if len(state.entries) > MOST_ENTRIES or not state.entries:
        return
    history, may_wait = tuple(done), rng.random() < 0.6
    yield from alloc_edge(history, state, may_wait)
    for call in demands(rng, geometry, may_wait):
        if page_demand(state, call) is not None:
            yield reserve_case(history, state, call)


def alloc_edge(history: tuple[op.AnyOperation, ...], state: PoolState, may_wait: bool) -> Iterator[ReserveCase]:
    """Every alloc at which the number of victims changes, up to the first that is rejected."""
    t, last = state.geometry.page_tokens, -1
    for pages in range(len(state.geometry.id_range("full")) + 2):
        call = op.Alloc(name="demand", tokens=TokenCount(pages * t), may_wait=may_wait)
        answer = reserve_answer(state, call)
        if answer.result == "rejected":
            if pages:
                exact = op.Alloc(name="demand", tokens=TokenCount((pages - 1) * t), may_wait=may_wait)
                yield reserve_case(history, state, exact, "DearestGranted")
            yield reserve_case(history, state, call, "OneTokenPageMore")
            return
        if len(answer.steps) != last:
            last = len(answer.steps)
            yield reserve_case(history, state, call)


def reserve_case(
    history: tuple[op.AnyOperation, ...], state: PoolState, call: op.AnyDemand, *flags: str
) -> ReserveCase:
    """The case, answered."""
    answer, pages = reserve_answer(state, call), page_demand(state, call)
    assert pages is not None, "only good calls become cases"
    return ReserveCase(
        tcId=0,
        comment=call_words(call),
        flags=(*reserve_flags(state, call, answer), *flags),
        operations=history,
        state=vector_state(state),
        operation=call,
        pages=pages,
        result="granted" if answer.result == "granted" else "rejected",
        steps=answer.steps,
        evicted_pages=answer.evicted_pages,
        reason=answer.reason,
    )


def reserve_flags(state: PoolState, call: op.AnyDemand, answer: ReserveAnswer) -> tuple[str, ...]:
    """What kind of case it is, in the order of the table of flags."""
    return (*_answer_flags(state, call, answer), *_state_flags(state, call))


def _answer_flags(state: PoolState, call: op.AnyDemand, answer: ReserveAnswer) -> Iterator[str]:
    if answer.result == "granted":
        yield {0: "FitsAsIs", 1: "OneVictim"}.get(len(answer.steps), "ManyVictims")
        if len(answer.steps) < _first_sufficient(state, call):
            yield "Spared"
        for kind, flag in (("leaf", "LeafStep"), ("tombstone", "TombstoneStep"), ("state", "StateStep")):
            if any(step.kind == kind for step in answer.steps):
                yield flag
    match answer.reason:
        case Impossible(bound=bound):
            yield "IdsFail" if bound == "ids" else "BytesFail"
        case Blocked(by=by):
            yield from (f"BlockedBy{blocker.title()}" for blocker in by)


def _first_sufficient(state: PoolState, call: op.AnyDemand) -> int:
    """How many steps of the policy order suffice, before any is spared."""
    pages = page_demand(state, call)
    assert pages is not None
    demand, settled = as_demand(pages, call.may_wait), after_group(state)
    order = policy_order(tree_of(settled))
    return next(count for count in range(len(order) + 1) if fits(after_steps(settled, order[:count]), demand))


def _state_flags(state: PoolState, call: op.AnyDemand) -> Iterator[str]:
    if not all(member.gate_open for member in state.members):
        yield "GateClosed"
    if any(member.pending for member in state.members):
        yield "Pending"
    if state.flights:
        yield "InFlight"
    if not call.may_wait:
        yield "MayNotWait"
    if state.queued.ids or state.queued.state_ids:
        yield "Grouped"
    if any(entry.full_locks for entry in state.entries):
        yield "Locked"
    if state.geometry.has_role("swa") and any(not entry.swa_ids for entry in state.entries):
        yield "Tombstoned"
    pages = page_demand(state, call)
    assert pages is not None
    if pages.state_pages:
        yield "StatesDemanded"
    if state.geometry.has_role("swa") and pages.full_pages != pages.swa_pages:
        yield "Untied"
