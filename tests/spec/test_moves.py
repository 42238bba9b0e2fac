"""[T3], [T4] on random states larger than the exhaustive ones; the plan is executed copy by copy."""

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

import pytest

from poolproof_conformance.agreements import execution_problem
from poolproof_spec import moves
from poolproof_spec.demand import Demand
from poolproof_spec.geometry import Geometry
from poolproof_spec.moves import Batch, batch_of, in_vacating_order, move_plan, must_vacate_first, overlaps
from poolproof_spec.occupancy import occupancies, pinned_pages
from poolproof_spec.state import PoolState
from poolproof_spec.sweep import Window, sweep, widen
from poolproof_spec.units import PageId
from poolproof_spec.verdict import after_events, unfired_events

from .builders import hold, pool, swa2, tri
from .random_states import random_demand, random_geometry, random_state

Case = tuple[PoolState, Demand, tuple[Window | None, ...], tuple[frozenset[PageId], ...]]


def cases(count: int, seed: int) -> Iterator[Case]:
    """Random states with a demand that fits: the state (events fired where waited for), its windows and pins."""
    rng = Random(seed)
    while count:
        geometry = random_geometry(rng, fewest=2, most=6, pages=14)
        state = random_state(rng, geometry, pins=rng.random() < 0.5)
        demand = random_demand(rng, state)
        needs = occupancies(state, demand)
        found = sweep(needs)
        if found.fits:
            count -= 1
            pinned = tuple(pinned_pages(state, index, demand.may_wait) for index in range(len(needs)))
            if demand.may_wait:
                state = after_events(state, unfired_events(state))
            yield state, demand, widen(needs, found.windows), pinned


def test_plans_execute_and_move_no_page_that_may_stay() -> None:
    """The execution also counts: as many moves as movable pages lay outside their windows [T4]."""
    seen: Counter[str] = Counter()
    for state, demand, windows, pinned in cases(2500, seed=3):
        assert execution_problem(state, windows, pinned, demand) is None, (state, demand)
        plan = move_plan(state, windows, pinned)
        seen["moving"] += bool(plan)
        seen["several members"] += len(plan) > 1
        seen["order matters"] += any(
            must_vacate_first(state.geometry, one, other) for one in plan for other in plan if one is not other
        )
        assert len({batch.member_index for batch in plan}) == len(plan), "one batch a member"
    assert seen["moving"] > 500
    assert seen["several members"] > 200
    assert seen["order matters"] > 50


def test_the_order_reversed_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong on purpose: a copy lands on a page that has yet to leave."""

    def reversed_order(geometry: Geometry, batches: Sequence[Batch]) -> Iterator[Batch]:
        yield from reversed(list(in_vacating_order(geometry, batches)))

    monkeypatch.setattr(moves, "in_vacating_order", reversed_order)
    problems = [
        execution_problem(*(state, windows, pinned, demand)) for state, demand, windows, pinned in cases(800, 3)
    ]
    caught = [problem for problem in problems if problem is not None]
    assert len(caught) > 20
    assert all("which are in use" in problem for problem in caught)


def test_a_move_too_many_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong on purpose: compacts to the window's low end instead of leaving what may stay."""

    def packed(state: PoolState, index: int, window: Window, movable: frozenset[PageId]) -> Batch:
        batch = batch_of(state, index, window, movable)
        now = state.members[index]
        free = [page for page in range(window.start, window.end) if page not in now.live_pages | now.pending_pages]
        stay = [page for page in movable if window.start <= page < window.end and free and page > free[0]]
        extra = [(max(stay), PageId(free[0]))] if stay and not batch.moves else []
        return Batch(member_index=index, moves=(*batch.moves, *extra))

    monkeypatch.setattr(moves, "batch_of", packed)
    problems = [execution_problem(state, windows, pinned, demand) for state, demand, windows, pinned in cases(200, 4)]
    assert any(problem is not None and "pages outside their windows" in problem for problem in problems)


def test_a_batch_takes_pages_outside_to_free_pages_inside() -> None:
    state = pool(swa2(12), holds=[hold("r", [1, 2, 3])], pending={"FULL": {5: "e"}})
    batch = batch_of(state, 1, Window(4, 12, True), frozenset({PageId(10), PageId(12)}))
    assert batch == Batch(member_index=1, moves=((PageId(12), PageId(4)),))
    assert batch_of(state, 1, Window(4, 13, True), frozenset({PageId(10), PageId(12)})).moves == ()


def test_a_window_without_room_is_an_error() -> None:
    state = pool(swa2(12), holds=[hold("r", [1, 2, 3])])
    with pytest.raises(ValueError, match="zip"):
        batch_of(state, 1, Window(2, 3, True), frozenset({PageId(10), PageId(12)}))


def test_pages_overlap_by_bytes() -> None:
    geometry = tri(24, state_bytes=4)
    assert overlaps(geometry, 0, PageId(2), 1, PageId(8))
    assert overlaps(geometry, 0, PageId(2), 1, PageId(11))
    assert not overlaps(geometry, 0, PageId(2), 1, PageId(12))
    assert not overlaps(geometry, 0, PageId(2), 1, PageId(7))


def test_who_stands_in_the_way_leaves_first() -> None:
    geometry = swa2(12)
    swa = Batch(member_index=0, moves=((PageId(1), PageId(6)),))
    full = Batch(member_index=1, moves=((PageId(6), PageId(9)),))
    assert must_vacate_first(geometry, swa, full)
    assert not must_vacate_first(geometry, full, swa)
    assert list(in_vacating_order(geometry, [swa, full])) == [full, swa]
    assert list(in_vacating_order(geometry, [Batch(member_index=0, moves=())])) == []
