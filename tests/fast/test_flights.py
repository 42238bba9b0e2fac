"""What a forward in flight reads and writes, and what waits for it."""

import numpy as np
import pytest

from poolproof_fast.errors import NotInFlightError
from poolproof_fast.events import PlainEvent
from poolproof_fast.pool import FastPool
from poolproof_spec.geometry import layout

TRI = layout("tri", 960, STATE=48, SWA=32, FULL=32)


def read_by(pool: FastPool, flight: object) -> dict[str, set[int]]:
    """The ids that a flight reads, by member."""
    found = {}
    for member in pool.store.members:
        ids = np.flatnonzero(member.page_of_np)
        found[member.name] = set(ids[flight.reads(member, ids)].tolist())  # type: ignore[attr-defined]
    return found


def test_a_flight_reads_what_was_live_when_it_was_launched() -> None:
    pool = FastPool(TRI)
    old, states = pool.alloc(3).ids, pool.alloc_states(2).state_ids  # type: ignore[union-attr]
    first = pool.launch()
    new = pool.alloc(2).ids  # type: ignore[union-attr]
    second = pool.launch()
    late = pool.alloc_states(1).state_ids  # type: ignore[union-attr]
    assert read_by(pool, first) == {"STATE": {*states}, "SWA": {*old}, "FULL": {*old}}
    assert read_by(pool, second) == {"STATE": {*states}, "SWA": {*old, *new}, "FULL": {*old, *new}}
    assert not {*late} & read_by(pool, second)["STATE"]


def test_an_id_that_is_handed_out_again_is_no_longer_read_or_written() -> None:
    pool = FastPool(TRI)
    ids = pool.alloc(1).ids  # type: ignore[union-attr]
    flight = pool.launch(writes=ids)
    swa = pool.store.members[1]
    assert flight.written(swa).tolist() == ids.tolist()
    pool.free(ids)
    assert flight.written(swa).tolist() == []
    assert pool.alloc(1).ids.tolist() == ids.tolist()  # type: ignore[union-attr]
    assert flight.written(swa).tolist() == [] and read_by(pool, flight)["SWA"] == set()


def test_state_writes_are_of_states_alone() -> None:
    pool = FastPool(TRI)
    tokens, states = pool.alloc(3).ids, pool.alloc_states(3).state_ids  # type: ignore[union-attr]
    flight = pool.launch(writes=tokens[:1], state_writes=states[1:])
    written = {member.name: flight.written(member).tolist() for member in pool.store.members}
    assert written == {"STATE": states[1:].tolist(), "SWA": tokens[:1].tolist(), "FULL": tokens[:1].tolist()}


def moved_under(pool: FastPool, flights: int) -> tuple[list[object], dict[str, int]]:
    """Launch, make a hole, close it: (flights, pages left pending in each member)."""
    ids = [pool.alloc(1).ids for _ in range(3)]  # type: ignore[union-attr]
    launched: list[object] = [pool.launch() for _ in range(flights)]
    pool.free(ids[1])
    pool.compact()
    return launched, pending(pool)


def pending(pool: FastPool) -> dict[str, int]:
    return {member.name: member.pending for member in pool.store.members}


def test_a_page_waits_until_the_last_of_its_readers_is_done() -> None:
    pool = FastPool(TRI)
    (first, second), left = moved_under(pool, 2)
    assert left == {"STATE": 0, "SWA": 1, "FULL": 1}
    pool.fire(second)  # type: ignore[arg-type]
    assert pending(pool) == left
    pool.fire(first)  # type: ignore[arg-type]
    assert pending(pool) == dict.fromkeys(left, 0)
    vacant = [int(member.vacant_np.sum()) for member in pool.store.members]
    assert vacant == [m.page_count - m.first_page - m.taken for m in pool.store.members]


def test_nothing_waits_where_nobody_reads() -> None:
    pool = FastPool(TRI)
    assert moved_under(pool, 0)[1] == {"STATE": 0, "SWA": 0, "FULL": 0}


def test_what_was_born_after_a_launch_leaves_nothing_behind() -> None:
    pool = FastPool(TRI)
    pool.launch()
    assert moved_under(pool, 0)[1] == {"STATE": 0, "SWA": 0, "FULL": 0}


def test_poll_fires_what_has_ended_and_firing_twice_is_refused() -> None:
    pool, event = FastPool(TRI), PlainEvent()
    flight, other = pool.launch(event), pool.launch(PlainEvent())
    assert pool.poll() == 0
    event.fire()
    assert pool.poll() == 1
    assert pool.store.flights.unfired == [other]
    with pytest.raises(NotInFlightError, match="flight 1 is not in flight"):
        pool.fire(flight)


def test_a_demand_waits_where_it_may_and_says_how_often() -> None:
    pool = FastPool(layout("swa2", 640, SWA=32, FULL=32))
    moved_under(pool, 1)
    waited: list[int] = []
    pool.launch(PlainEvent(on_wait=lambda: waited.append(1)))
    assert not pool.alloc(7, may_wait=False)
    assert not waited
    grant = pool.alloc(7)
    assert grant and grant.waited == 2 and waited == [1]
    assert pool.store.flights.unfired == []
