"""The fast pool against the reference on random histories: the same decisions, and the same state but for names.

Ids and places of pages are free. Where something is pinned, places decide what fits, so the two may part there: what
the fast pool does must then be what the reference does in the fast pool's own state, and is held against that always.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest

from poolproof_conformance.conform import draw_histories
from poolproof_conformance.fast_adapter import FastAdapter
from poolproof_conformance.generator import History
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.run import applies
from poolproof_reference.reserve import victims
from poolproof_spec.demand import Demand, demand_of
from poolproof_spec.fits import fits
from poolproof_spec.operation import AnyOperation, Capacity, DemandOperation, Insert, Query
from poolproof_spec.outcome import Answer, AnyOutcome, Done, Granted, Refused, Rejected, Step
from poolproof_spec.properties import token_demand
from poolproof_spec.state import Hold, PoolState
from poolproof_spec.steps import after_group
from poolproof_spec.transition import cached_pages, cached_states
from poolproof_spec.verdict import honest_reason, unfired_events

HISTORIES = 100
"""In each part; there are three."""


class Parting(NamedTuple):
    """Where the two answered differently, and what was then pinned in the fast pool's state."""

    operation: AnyOperation
    fast: tuple[object, ...]
    reference: tuple[object, ...]
    pinned: bool


def answer(outcome: AnyOutcome) -> tuple[object, ...]:
    """What an outcome says, but for ids and the work that was done for it."""
    match outcome:
        case Granted():
            members = sorted(member for member, _ in outcome.pages)
            return "granted", outcome.steps, members, outcome.waited, outcome.walks
        case Rejected():
            return "rejected", outcome.reason, outcome.steps
        case Done():
            return "done", sorted(member for member, _ in outcome.pages), outcome.matched_pages
        case Answer():
            return "answer", outcome.token_pages, outcome.exact_granted, outcome.one_more_granted
        case Refused():
            return "refused", outcome.error
        case _:
            raise AssertionError(outcome)


def likeness(state: PoolState) -> tuple[object, ...]:
    """A state but for ids, for the places of pages, and for pending pages, whose number depends on places."""
    ages = sorted({entry.last_use for entry in state.entries})
    return (
        [
            (
                entry.key,
                len(entry.ids),
                bool(entry.swa_ids),
                entry.state_id is not None,
                (entry.full_locks, entry.swa_locks, entry.state_locks),
                ages.index(entry.last_use),
            )
            for entry in state.entries
        ],
        [shape(hold) for hold in state.holds],
        shape(state.queued),
        state.group_open,
        state.locks,
        [(now.gate_open, len(now.bindings)) for now in state.members],
        [(flight.event, members(flight.reads), members(flight.writes)) for flight in state.flights],
        len(state.free_token_ids),
        len(state.free_state_ids),
    )


def shape(hold: Hold) -> tuple[object, ...]:
    return hold.name, [identifier in hold.swa_ids for identifier in hold.ids], len(hold.state_ids)


def members(pages: Sequence[tuple[str, int]]) -> list[str]:
    return sorted(member for member, _ in pages)


def something_is_pinned(state: PoolState) -> bool:
    return bool(unfired_events(state)) or not all(member.gate_open for member in state.members)


def check_own_state(state: PoolState, operation: AnyOperation, outcome: AnyOutcome) -> None:
    """The outcome is what the reference decides in the state in which it came about."""
    if isinstance(outcome, Refused):
        return
    if isinstance(operation, DemandOperation):
        check_demand(state, operation, outcome)
    elif isinstance(operation, Insert):
        demand = missing(state, operation)
        assert isinstance(outcome, Done) == fits(state, demand)
        assert isinstance(outcome, Done) or outcome == Rejected(reason=honest_reason(state, demand))
    elif isinstance(operation, Query | Capacity):
        assert isinstance(outcome, Answer)
        promised = outcome.token_pages
        assert fits(state, token_demand(state, promised)) and not fits(state, token_demand(state, promised + 1))


def missing(state: PoolState, operation: Insert) -> Demand:
    """What caching a prefix needs: pages that are not cached, SWA pages that are gone, a state that is not there."""
    cached, swa = cached_pages(state), state.geometry.has_role("swa")
    on_path = [cached.get(operation.key[:end]) for end in range(1, len(operation.key) + 1)]
    return Demand(
        full_pages=sum(page is None for page in on_path),
        swa_pages=sum(page is None or not page[1] for page in on_path) if swa else 0,
        state_pages=int(operation.state and operation.key not in cached_states(state)),
        may_wait=False,
    )


def check_demand(state: PoolState, operation: AnyOperation, outcome: AnyOutcome) -> None:
    boundary, demand = after_group(state), demand_of(state, operation)
    assert demand is not None
    steps: list[Step] | None = victims(boundary, demand)
    if steps is None:
        assert isinstance(outcome, Rejected), f"granted, and it does not fit: {operation}"
        assert outcome.reason == honest_reason(boundary, demand) and not outcome.steps
        return
    assert isinstance(outcome, Granted), f"rejected, and it fits: {operation}"
    assert list(outcome.steps) == steps


class Lockstep:
    """One history on both pools; `parted` is where they answered differently, if they did."""

    def __init__(self, history: History) -> None:
        geometry, operations = history
        self.fast, self.reference = FastAdapter(), ReferenceAdapter()
        self.operations = operations
        self.fast.build(geometry)
        self.reference.build(geometry)
        self.parted: Parting | None = None
        self.seen: set[str] = set()

    def run(self) -> None:
        """Both, operation by operation; once they have parted, the fast one alone against its own states."""
        before = self.fast.observe()
        for operation in self.operations:
            if not applies(before, operation, self.fast.describe()):
                continue
            outcome = self.fast.apply(operation)
            check_own_state(before, operation, outcome)
            now = self.fast.observe()
            self.seen |= set(kinds(outcome))
            if self.parted is None:
                self.compare(operation, outcome, before, now)
            before = now

    def compare(self, operation: AnyOperation, outcome: AnyOutcome, before: PoolState, now: PoolState) -> None:
        other = self.reference.apply(operation)
        if answer(outcome) != answer(other):
            pinned = something_is_pinned(after_group(before))
            self.parted = Parting(operation, answer(outcome), answer(other), pinned)
            return
        assert likeness(now) == likeness(self.reference.observe()), operation


def kinds(outcome: AnyOutcome) -> Iterator[str]:
    yield answer(outcome)[0]  # type: ignore[misc]
    if isinstance(outcome, Granted):
        yield from (step.kind for step in outcome.steps)
        yield from (("waited",) if outcome.waited else ())
        yield from (("moved",) if outcome.compactions else ())
    if isinstance(outcome, Rejected) and outcome.reason is not None:
        yield outcome.reason.__struct_config__.tag  # type: ignore[misc]


@pytest.mark.parametrize("part", range(3))
def test_random_histories_in_lockstep_with_the_reference(part: int) -> None:
    runs: list[Lockstep] = []

    def both(history: History) -> None:
        runs.append(Lockstep(history))
        runs[-1].run()

    draw_histories(both, traces=HISTORIES, seed_number=40 + part)
    partings = [run.parted for run in runs if run.parted is not None]
    assert [parting for parting in partings if not parting.pinned] == []
    assert len(partings) <= HISTORIES // 20
    seen = set().union(*(run.seen for run in runs))
    assert seen >= {"granted", "leaf", "waited", "moved", "impossible", "blocked", "refused", "answer"}
