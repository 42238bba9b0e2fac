"""Three-valued verdicts, and the honest reason for a rejection [P4] (docs/spec.md#p4-honest-reason)."""

from collections.abc import Iterable
from itertools import combinations
from typing import Literal

from msgspec.structs import replace

from poolproof_spec.demand import Demand
from poolproof_spec.fits import fits
from poolproof_spec.occupancy import occupancies
from poolproof_spec.outcome import Blocked, BlockerKind, Impossible
from poolproof_spec.state import MemberState, PoolState
from poolproof_spec.steps import after_steps, policy_order, tree_of
from poolproof_spec.sweep import sweep

Verdict = Literal["holds", "violated", "unknown"]
"""Anything that is not a proof of either is unknown: a crash, a time-out, an empty run."""

BLOCKERS: tuple[BlockerKind, ...] = ("events", "gates", "locks")


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a whole from those of its parts: a violation is certain, then doubt; nothing at all is doubt."""
    found = set(verdicts)
    if "violated" in found:
        return "violated"
    return "holds" if found == {"holds"} else "unknown"


def everything_freed(state: PoolState) -> PoolState:
    """The state after freeing every legal step."""
    return after_steps(state, policy_order(tree_of(state)))


def _event_fired(member: MemberState, fired: set[str]) -> MemberState:
    pending = tuple((page, event) for page, event in member.pending if event not in fired)
    return replace(member, pending=pending, free_pages=None) if pending != member.pending else member


def after_events(state: PoolState, events: Iterable[str]) -> PoolState:
    """The state once these events have fired: nothing of theirs is pending or in flight."""
    fired = set(events)
    return replace(
        state,
        members=tuple(_event_fired(member, fired) for member in state.members),
        flights=tuple(flight for flight in state.flights if flight.event not in fired),
    )


def unfired_events(state: PoolState) -> set[str]:
    """Events that something in the state still waits for."""
    return {flight.event for flight in state.flights} | {event for m in state.members for _, event in m.pending}


def lift(state: PoolState, blockers: Iterable[BlockerKind]) -> PoolState:
    """The state with every event fired, every gate open, every cached entry unlocked, as named."""
    named = set(blockers)
    if "events" in named:
        state = after_events(state, unfired_events(state))
    if "gates" in named:
        state = replace(state, members=tuple(replace(member, gate_open=True) for member in state.members))
    if "locks" in named:
        entries = tuple(replace(entry, full_locks=0, swa_locks=0, state_locks=0) for entry in state.entries)
        state = replace(state, entries=entries)
    return state


def fits_after_lifting(state: PoolState, demand: Demand, blockers: Iterable[BlockerKind]) -> bool:
    """Whether the demand fits once the named blockers are lifted and every then legal step is freed."""
    return fits(everything_freed(lift(state, blockers)), demand)


def failing_bound(state: PoolState, demand: Demand) -> Impossible | None:
    """The bound that keeps a demand out of the emptiest state there can be: the least failing one; None if it fits."""
    emptiest = everything_freed(lift(state, BLOCKERS))
    for where, needed, free in (
        ("token", demand.full_pages, len(emptiest.free_token_ids)),
        ("state", demand.state_pages, len(emptiest.free_state_ids)),
    ):
        if needed > free:
            return Impossible(bound="ids", where=where, needed=needed, available=free)
    needs = occupancies(emptiest, demand)
    for member, need, window in zip(state.geometry.members, needs, sweep(needs).windows, strict=True):
        if not window.fits:
            return Impossible(bound="bytes", where=member.name, needed=int(window.end), available=int(need.page_count))
    return None


def honest_reason(state: PoolState, demand: Demand) -> Impossible | Blocked | None:
    """Why a demand cannot be met in `state`: impossible, or blocked by the fewest things; None if it can be."""
    bound = failing_bound(state, demand)
    if bound is not None:
        return bound
    for size in range(len(BLOCKERS) + 1):
        for blockers in combinations(BLOCKERS, size):
            if fits_after_lifting(state, demand, blockers):
                return Blocked(by=blockers) if blockers else None
    raise AssertionError("unreachable: with every blocker lifted the bound above has not failed")
