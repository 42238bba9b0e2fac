"""Three values, and the honest reason on small pools where one thing after another stands in the way."""

from collections import Counter
from itertools import combinations
from random import Random

import pytest
from msgspec.structs import replace

from poolproof_spec.demand import Demand
from poolproof_spec.fits import fits
from poolproof_spec.outcome import Blocked, BlockerKind, Impossible
from poolproof_spec.state import Flight, PoolState
from poolproof_spec.verdict import (
    BLOCKERS,
    Verdict,
    after_events,
    everything_freed,
    failing_bound,
    fits_after_lifting,
    honest_reason,
    lift,
    unfired_events,
    worst,
)

from .builders import entry, hold, ids, key, pool, swa2, tri
from .random_states import random_demand, random_tree


@pytest.mark.parametrize(
    ("verdicts", "whole"),
    [
        ([], "unknown"),
        (["holds"], "holds"),
        (["holds", "holds"], "holds"),
        (["holds", "unknown"], "unknown"),
        (["unknown"], "unknown"),
        (["violated"], "violated"),
        (["unknown", "holds", "violated"], "violated"),
    ],
)
def test_a_whole_is_as_bad_as_its_worst_part(verdicts: list[Verdict], whole: Verdict) -> None:
    assert worst(verdicts) == whole
    assert worst(iter(verdicts)) == whole


def both(pages: int, *, may_wait: bool = True) -> Demand:
    return Demand(full_pages=pages, swa_pages=pages, may_wait=may_wait)


LOCKED = (1, 1, 0)
EMPTY = pool(swa2(4))
CACHED = pool(swa2(4), entry(key(1, 2), [1, 2]))
KEPT = pool(swa2(4), entry(key(1, 2), [1, 2], locks=LOCKED))
IN_THE_WAY = pool(swa2(4), holds=[hold("r", [1, 2, 3], swa=False)])
"""FULL pages 2 to 4 of [1, 5), of which the two upper ones are given up below."""


def one_page_at(page: int, *, gate_open: bool = True, flight: bool = False) -> PoolState:
    """One FULL page held in the middle of the arena."""
    state = pool(swa2(4), holds=[hold("r", [1], swa=False)], gate_open=gate_open)
    swa, full = state.members
    moved = replace(full, bindings=((ids(1)[0], page),))
    flights = (Flight(event="e", reads=(("FULL", ids(1)[0]),)),) if flight else ()
    return replace(state, members=(swa, moved), flights=flights)


TWO_AND_ONE = Demand(full_pages=1, swa_pages=2, may_wait=False)


def test_what_fits_once_unlocked_entries_are_freed_has_no_reason() -> None:
    assert honest_reason(EMPTY, both(2)) is None
    assert honest_reason(CACHED, both(2)) is None
    assert not fits(CACHED, both(2))


def test_impossible_for_want_of_ids() -> None:
    assert honest_reason(CACHED, Demand(full_pages=5)) == Impossible(bound="ids", where="token", needed=5, available=4)
    held = pool(tri(12), holds=[hold("r", states=[1, 2])])
    assert honest_reason(held, Demand(state_pages=10)) == Impossible(bound="ids", where="state", needed=10, available=9)


def test_impossible_for_want_of_bytes_names_the_least_window_that_fails() -> None:
    found = honest_reason(KEPT, both(3))
    assert found == Impossible(bound="bytes", where="FULL", needed=7, available=5)
    assert honest_reason(EMPTY, Demand(swa_pages=5)) == Impossible(bound="bytes", where="SWA", needed=6, available=5)


def test_ids_are_told_before_bytes() -> None:
    found = failing_bound(EMPTY, both(9))
    assert found is not None
    assert found.bound == "ids"


def test_blocked_by_locks() -> None:
    assert honest_reason(KEPT, both(2)) == Blocked(by=("locks",))


def test_blocked_by_gates() -> None:
    assert honest_reason(one_page_at(2, gate_open=False), TWO_AND_ONE) == Blocked(by=("gates",))
    assert honest_reason(one_page_at(2), TWO_AND_ONE) is None


def test_blocked_by_events_only_where_the_caller_does_not_wait() -> None:
    read = one_page_at(2, flight=True)
    assert honest_reason(read, TWO_AND_ONE) == Blocked(by=("events",))
    assert honest_reason(read, replace(TWO_AND_ONE, may_wait=True)) is None
    left = pool(swa2(4), pending={"FULL": {2: "e"}})
    assert honest_reason(left, both(2, may_wait=False)) == Blocked(by=("events",))


def test_blocked_by_several_things_names_them_all_and_no_more() -> None:
    shut = one_page_at(2, gate_open=False, flight=True)
    assert honest_reason(shut, TWO_AND_ONE) == Blocked(by=("events", "gates"))
    kept = entry(key(9), [4], locks=LOCKED)
    state = pool(swa2(6), kept, holds=[hold("r", [1], swa=False)], gate_open=False)
    swa, full = state.members
    state = replace(state, members=(swa, replace(full, bindings=((ids(1)[0], 3), (ids(4)[0], 6)))))
    assert honest_reason(state, Demand(full_pages=2, swa_pages=3)) == Blocked(by=("gates", "locks"))


def test_lifting_fires_opens_and_unlocks_what_is_named() -> None:
    read = Flight(event="f", reads=(("FULL", ids(1)[0]),))
    state = pool(
        swa2(6), entry(key(1), [1], locks=(2, 1, 1)), gate_open=False, flights=[read], pending={"FULL": {4: "e"}}
    )
    assert unfired_events(state) == {"e", "f"}
    assert lift(state, []) == state
    fired = lift(state, ["events"])
    assert (fired.flights, fired.members[1].pending, unfired_events(fired)) == ((), (), set())
    assert [member.gate_open for member in lift(state, ["gates"]).members] == [True, True]
    assert lift(state, ["locks"]).entries == (entry(key(1), [1]),)
    assert after_events(state, ["e"]).flights == (read,)
    assert after_events(state, ["f"]).members[1].pending == ((4, "e"),)


def test_everything_freed_leaves_what_is_locked_or_held() -> None:
    kept = entry(key(1), [1], locks=(1, 0, 0))
    state = pool(tri(20), kept, entry(key(1, 2), [2], state=1), holds=[hold("r", [3])])
    assert everything_freed(state).entries == (entry(key(1), [1], swa=False, locks=(1, 0, 0)),)
    assert [member.live_ids for member in everything_freed(state).members] == [frozenset(), {3}, {1, 3}]


def random_pool(rng: Random) -> tuple[PoolState, Demand]:
    """A random tree in an arena with little room, some of it pinned."""
    tree = random_tree(rng)
    geometry = tri(rng.randint(24, 40), state_bytes=rng.choice((1, 2)))
    held = hold("r", [20], swa=rng.random() < 0.5)
    state = pool(
        geometry,
        *tree.values(),
        holds=[held] if 20 in geometry.id_range("full") else [],
        gate_open=rng.random() < 0.5,
    )
    bound = [(m.name, i) for m, now in zip(geometry.members, state.members, strict=True) for i, _ in now.bindings]
    read = tuple(page for page in bound if rng.random() < 0.2)
    state = replace(state, flights=(Flight(event="e", reads=read),) if read else ())
    return state, random_demand(rng, state, most=rng.choice((4, 12, 40)))


def test_impossible_stays_impossible_and_blocked_names_the_fewest() -> None:
    """[T10] Unlocking, opening a gate and firing an event never cure an impossible demand."""
    rng, seen = Random(10), Counter[str]()
    subsets = [named for size in range(4) for named in combinations(BLOCKERS, size)]
    for _ in range(1500):
        state, demand = random_pool(rng)
        reason = honest_reason(state, demand)
        enough = [named for named in subsets if fits_after_lifting(state, demand, named)]
        match reason:
            case None:
                assert () in enough
                assert fits(everything_freed(state), demand)
                seen["none"] += 1
            case Blocked(by=by):
                assert by == enough[0]
                assert not any(set(named) < set(by) for named in enough)
                seen["blocked", *by] += 1  # type: ignore[index]
            case Impossible() as bound:
                assert not enough
                assert bound.needed > bound.available
                assert all(honest_reason(lift(state, named), demand) == bound for named in subsets)
                assert not fits(everything_freed(state), demand)
                seen[bound.bound] += 1
    assert min(seen["none"], seen["ids"], seen["bytes"]) > 20
    assert all(seen["blocked", kind] for kind in BLOCKERS)  # type: ignore[index]


def test_the_order_of_what_is_lifted_does_not_matter() -> None:
    rng = Random(11)
    for _ in range(100):
        state, _ = random_pool(rng)
        named: list[BlockerKind] = [*BLOCKERS]
        rng.shuffle(named)
        assert lift(state, named) == lift(state, BLOCKERS)
