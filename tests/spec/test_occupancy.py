from msgspec.structs import replace

from poolproof_spec.demand import Demand
from poolproof_spec.geometry import derive
from poolproof_spec.occupancy import Occupancy, as_it_lies, occupancies, occupancy_of, pinned_pages
from poolproof_spec.state import Flight
from poolproof_spec.units import PageId

from .builders import hold, ids, pool, swa2

READ = Flight(event="e", reads=(("FULL", ids(1)[0]), ("SWA", ids(2)[0])), writes=(("FULL", ids(3)[0]),))
STATE = pool(swa2(12), holds=[hold("r", [1, 2, 3])], flights=[READ], pending={"FULL": {8: "e"}})
"""FULL pages 10, 11, 12 for ids 1, 2, 3; SWA pages 1, 2, 3."""
SHUT = replace(STATE, members=(replace(STATE.members[0], gate_open=False), STATE.members[1]))


def test_a_caller_that_waits_meets_no_events() -> None:
    assert pinned_pages(STATE, 0, may_wait=True) == frozenset()
    assert pinned_pages(STATE, 1, may_wait=True) == frozenset()


def test_pending_and_in_flight_pages_are_pinned_for_one_that_does_not() -> None:
    assert pinned_pages(STATE, 0, may_wait=False) == {2}
    assert pinned_pages(STATE, 1, may_wait=False) == {8, 10, 12}


def test_a_closed_gate_pins_all_live_pages_of_its_member() -> None:
    assert pinned_pages(SHUT, 0, may_wait=True) == {1, 2, 3}
    assert pinned_pages(SHUT, 1, may_wait=True) == frozenset()


def test_needs_count_pins_and_loose_pages_with_the_demand() -> None:
    demand = Demand(full_pages=2, swa_pages=1, may_wait=False)
    swa, full = occupancies(STATE, demand)
    assert (swa.pinned_count, swa.pinned_start, swa.pinned_end, swa.loose_count) == (1, 2, 3, 3)
    assert (full.pinned_count, full.pinned_start, full.pinned_end, full.loose_count) == (3, 8, 13, 3)
    assert (full.page_bytes, full.first_page, full.page_count) == (1, 1, 13)


def test_as_it_lies_everything_is_pinned() -> None:
    swa, full = as_it_lies(STATE, Demand(full_pages=2))
    assert (swa.pinned_count, swa.loose_count) == (3, 0)
    assert (full.pinned_count, full.pinned_start, full.loose_count) == (4, 8, 2)


def test_only_the_ends_of_a_chain_are_anchored() -> None:
    chain = [("A", "state", 1, "up"), ("B", "swa", 1, "float"), ("D", "full", 1, "down")]
    geometry = derive(9, chain, anchored=("A", "B", "D"))  # type: ignore[arg-type]
    closed = [occupancy_of(member, frozenset({PageId(3)}), 0) for member in geometry.members]
    assert [(need.anchored_up, need.anchored_down) for need in closed] == [(True, False), (False, False), (False, True)]
    assert occupancy_of(geometry.members[1], frozenset(), 2) == Occupancy(
        page_bytes=1, first_page=1, page_count=9, loose_count=2
    )
