"""The pool by example: where pages go, which pages move, what stays pending, what a bad free leaves as it was."""

import pytest

from poolproof_reference.errors import DoubleFreeError, UnknownIdError
from poolproof_reference.pool import Pool
from poolproof_spec.demand import Demand
from poolproof_spec.geometry import Geometry, layout
from poolproof_spec.moves import Batch
from poolproof_spec.payload import NOT_A_STAMP
from poolproof_spec.state import Flight, Hold, MemberState
from poolproof_spec.units import PageId, VirtualId

STATE, SWA, FULL = range(3)
"""Members of the chain `tri`, low bytes to high; of `swa2` SWA is 0 and FULL 1."""


def swa2(pages: int) -> Geometry:
    """FULL and SWA with `pages` usable pages of 32 bytes between them."""
    return layout("swa2", 32 * (1 + pages), SWA=32, FULL=32)


def tri(pages: int) -> Geometry:
    """States, SWA and FULL with `pages` usable pages of 32 bytes between them."""
    return layout("tri", 32 * (1 + pages), STATE=32, SWA=32, FULL=32)


def take(pool: Pool, *, full: int = 0, swa: int = 0, state: int = 0, may_wait: bool = True) -> Hold:
    """Meet a demand that fits; the new ids, stamped with themselves."""
    demand = Demand(full_pages=full, swa_pages=swa, state_pages=state, may_wait=may_wait)
    placed = pool.place(demand)
    assert placed is not None
    windows, batches, waits = placed
    if waits:
        for event in list(pool.flights):
            pool.fire(event)
    for batch in batches:
        pool.move(batch)
    pages = pool.take(demand, windows)
    for index, identifier in pages:
        pool.write(index, identifier, identifier)
    role = {i: member.role for i, member in enumerate(pool.geometry.members)}
    ids = {r: tuple(i for index, i in pages if role[index] == r) for r in ("full", "swa", "state")}
    return Hold(name="", ids=ids["full"], swa_ids=ids["swa"], state_ids=ids["state"])


def pages(pool: Pool, index: int) -> list[int]:
    return sorted(pool.page_of[index].values())


def kept_payload(pool: Pool) -> bool:
    """Whether every live page still holds the stamp that `take` wrote."""
    return all(pool.read(index, i) == i for index, live in enumerate(pool.page_of) for i in live)


def launch(pool: Pool, event: str, *, writes: tuple[tuple[int, VirtualId], ...] = ()) -> None:
    pool.flights[event] = ({(index, i) for index, live in enumerate(pool.page_of) for i in live}, set(writes))


# Where pages go


def test_an_empty_pool_has_all_pages_and_ids_free() -> None:
    state = Pool(swa2(6)).observe()
    free = tuple(PageId(page) for page in range(1, 7))
    assert state.members == (MemberState(free_pages=free), MemberState(free_pages=free))
    assert state.free_token_ids == tuple(VirtualId(i) for i in range(1, 7))
    assert state.free_state_ids == ()


def test_up_takes_lowest_pages_and_down_highest() -> None:
    pool = Pool(swa2(6))
    hold = take(pool, full=2, swa=2)
    assert hold == Hold(name="", ids=(1, 2), swa_ids=(1, 2))  # type: ignore[arg-type]
    assert pool.page_of == [{1: 1, 2: 2}, {1: 6, 2: 5}]


def test_holes_nearest_the_own_end_are_refilled_first() -> None:
    pool = Pool(swa2(8))
    take(pool, full=1, swa=1)
    middle = take(pool, full=1, swa=1)
    take(pool, full=1, swa=1)
    pool.free(middle)
    take(pool, full=1, swa=1)
    assert (pages(pool, 0), pages(pool, 1)) == ([1, 2, 3], [6, 7, 8])


def test_a_float_grows_on_both_sides_nearest_first() -> None:
    pool = Pool(tri(12))
    states = take(pool, state=2)
    take(pool, full=1, swa=1)
    pool.free(states)
    assert (pages(pool, STATE), pages(pool, SWA), pages(pool, FULL)) == ([], [3], [12])
    more = take(pool, full=3, swa=3)
    assert [pool.page_of[SWA][i] for i in more.swa_ids] == [2, 4, 1]


def test_a_tail_is_the_last_ids() -> None:
    hold = take(Pool(swa2(8)), full=4, swa=2)
    assert hold.ids == (1, 2, 3, 4)
    assert hold.swa_ids == (3, 4)


def test_the_sink_is_never_handed_out() -> None:
    pool = Pool(layout("mamba2", 512, STATE=176, FULL=32))
    assert pool.place(Demand(full_pages=11)) is None
    take(pool, full=10)
    assert pages(pool, 1) == list(range(6, 16))


# What moves


def test_nothing_moves_where_it_fits_as_it_lies() -> None:
    pool = Pool(swa2(8))
    first = take(pool, full=1, swa=1)
    take(pool, full=1, swa=1)
    pool.free(first)
    placed = pool.place(Demand(full_pages=2, swa_pages=2))
    assert placed is not None
    assert placed[1:] == ((), False)


def test_only_pages_outside_the_window_move() -> None:
    pool = Pool(swa2(6))
    holds = [take(pool, full=1, swa=1) for _ in range(3)]
    pool.free(Hold(name="", swa_ids=holds[1].swa_ids))
    placed = pool.place(Demand(full_pages=1))
    assert placed is not None
    assert placed[1:] == ((Batch(member_index=0, moves=((PageId(3), PageId(2)),)),), False)
    take(pool, full=1)
    assert (pages(pool, 0), pages(pool, 1)) == ([1, 2], [3, 4, 5, 6])
    assert kept_payload(pool)


def test_who_is_in_the_way_moves_first() -> None:
    pool = Pool(tri(6))
    first = take(pool, full=1, swa=1)
    take(pool, full=1, swa=1)
    take(pool, full=1)
    pool.free(first)
    assert (pages(pool, SWA), pages(pool, FULL)) == ([2], [4, 5])
    placed = pool.place(Demand(state_pages=3))
    assert placed is not None
    assert placed[1] == (
        Batch(member_index=FULL, moves=((PageId(4), PageId(6)),)),
        Batch(member_index=SWA, moves=((PageId(2), PageId(4)),)),
    )
    take(pool, state=3)
    assert [pages(pool, index) for index in (STATE, SWA, FULL)] == [[1, 2, 3], [4], [5, 6]]
    assert kept_payload(pool)


def test_a_closed_gate_leaves_holes_and_edges_only() -> None:
    pool = Pool(swa2(6))
    holds = [take(pool, full=1, swa=1) for _ in range(3)]
    pool.free(Hold(name="", swa_ids=holds[1].swa_ids))
    pool.gate_open = False
    assert pool.place(Demand(full_pages=1)) is None
    pool.free(Hold(name="", swa_ids=holds[2].swa_ids))
    placed = pool.place(Demand(full_pages=2))
    assert placed is not None
    assert placed[1] == ()


def test_a_demand_that_does_not_fit_has_no_place() -> None:
    pool = Pool(swa2(6))
    before = pool.observe()
    assert pool.place(Demand(full_pages=4, swa_pages=4)) is None
    assert pool.observe() == before


# Forwards in flight, pending pages, events


def flown(*, free_second: bool = True) -> tuple[Pool, list[Hold]]:
    """Three requests of one page, all read by a forward in flight; then the second ends."""
    pool = Pool(swa2(6))
    holds = [take(pool, full=1, swa=1) for _ in range(3)]
    launch(pool, "e")
    if free_second:
        pool.free(holds[1])
    return pool, holds


def test_compaction_under_a_reader_leaves_the_old_place_pending() -> None:
    pool, _ = flown()
    pool.compact()
    state = pool.observe()
    assert [member.pending for member in state.members] == [((3, "e"),), ((4, "e"),)]
    assert [sorted(member.live_pages) for member in state.members] == [[1, 2], [5, 6]]
    assert [member.free_pages for member in state.members] == [(4, 5, 6), (1, 2, 3)]
    assert kept_payload(pool)


def test_what_is_pending_is_had_only_by_waiting() -> None:
    pool, _ = flown()
    pool.compact()
    assert pool.place(Demand(full_pages=1, swa_pages=1, may_wait=False)) is None
    placed = pool.place(Demand(full_pages=1, swa_pages=1))
    assert placed is not None
    assert placed[2]
    pool.fire("e")
    assert not any(pool.pending)
    take(pool, full=1, swa=1, may_wait=False)
    assert kept_payload(pool)


def test_a_page_waits_for_all_its_readers() -> None:
    pool, _ = flown()
    launch(pool, "late")
    pool.compact()
    assert pool.observe().members[0].pending == ((3, "e"), (3, "late"))
    pool.fire("e")
    assert pool.observe().members[0].pending == ((3, "late"),)
    pool.fire("late")
    assert pool.observe().members[0].pending == ()


def test_pages_that_are_read_do_not_move_without_waiting() -> None:
    pool, holds = flown(free_second=False)
    pool.free(Hold(name="", swa_ids=holds[1].swa_ids))
    assert pool.place(Demand(full_pages=1, may_wait=False)) is None
    placed = pool.place(Demand(full_pages=1))
    assert placed is not None
    assert placed[1:] == ((Batch(member_index=0, moves=((PageId(3), PageId(2)),)),), True)


def test_a_page_that_is_written_stays_in_a_compaction() -> None:
    pool = Pool(swa2(6))
    holds = [take(pool, full=1, swa=1) for _ in range(3)]
    launch(pool, "e", writes=((0, holds[2].ids[0]), (1, holds[2].ids[0])))
    pool.free(holds[1])
    pool.compact()
    assert (pages(pool, 0), pages(pool, 1)) == ([1, 3], [4, 6])


def test_what_was_freed_is_in_flight_no_more() -> None:
    pool, holds = flown()
    left = (holds[0].ids[0], holds[2].ids[0])
    reads = tuple((name, i) for name in ("FULL", "SWA") for i in left)
    assert pool.observe().flights == (Flight(event="e", reads=reads),)


def test_compaction_packs_each_member_towards_its_own_end() -> None:
    pool = Pool(tri(24))
    take(pool, state=1)
    holds = [take(pool, full=1, swa=1, state=1) for _ in range(5)]
    for hold in (holds[0], holds[2]):
        pool.free(hold)
    assert [pages(pool, index) for index in (STATE, FULL)] == [[1, 3, 5, 6], [20, 21, 23]]
    low = min(pages(pool, SWA))
    pool.compact()
    assert [pages(pool, index) for index in (STATE, FULL)] == [[1, 2, 3, 4], [21, 22, 23]]
    assert pages(pool, SWA) == [low, low + 1, low + 2]
    assert kept_payload(pool)


def test_compaction_fills_the_innermost_hole_first() -> None:
    pool = Pool(swa2(8))
    holds = [take(pool, full=1, swa=1) for _ in range(4)]
    for hold in holds[1:3]:
        pool.free(hold)
    pool.compact()
    assert (pages(pool, 0), pages(pool, 1)) == ([1, 2], [7, 8])


def test_compaction_does_nothing_behind_a_closed_gate() -> None:
    pool = Pool(swa2(6))
    holds = [take(pool, full=1, swa=1) for _ in range(3)]
    pool.free(holds[1])
    pool.gate_open = False
    before = pool.observe()
    pool.compact()
    assert pool.observe() == before


# Frees and payload


def test_free_gives_pages_and_ids_back() -> None:
    pool = Pool(tri(9))
    before = pool.observe()
    pool.free(take(pool, full=2, swa=2, state=1))
    assert pool.observe() == before


@pytest.mark.parametrize(
    ("freed", "error"),
    [
        (Hold(name="", ids=(1, 1)), DoubleFreeError),  # type: ignore[arg-type]
        (Hold(name="", ids=(1,), swa_ids=(1, 1)), DoubleFreeError),  # type: ignore[arg-type]
        (Hold(name="", ids=(1, 3)), UnknownIdError),  # type: ignore[arg-type]
        (Hold(name="", ids=(1,), swa_ids=(2,)), UnknownIdError),  # type: ignore[arg-type]
        (Hold(name="", ids=(1,), state_ids=(-1,)), UnknownIdError),  # type: ignore[arg-type]
        (Hold(name="", state_ids=(0,)), UnknownIdError),  # type: ignore[arg-type]
    ],
)
def test_a_bad_free_changes_nothing(freed: Hold, error: type[Exception]) -> None:
    pool = Pool(tri(9))
    take(pool, full=1, swa=1)
    take(pool, full=1)
    before = pool.observe()
    with pytest.raises(error):
        pool.free(freed)
    assert pool.observe() == before


def test_a_page_that_was_overwritten_in_part_reads_as_no_stamp() -> None:
    pool = Pool(swa2(4))
    (identifier,) = take(pool, full=1).ids
    page = pool.page_of[1][identifier]
    assert pool.read(1, identifier) == identifier
    pool.arena[page * 32 + 31] ^= 255
    assert pool.read(1, identifier) == NOT_A_STAMP
