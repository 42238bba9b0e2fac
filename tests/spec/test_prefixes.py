"""What a prefix cache owes its callers: on transitions made by hand."""

import pytest
from msgspec.structs import replace

from poolproof_spec import operation as op
from poolproof_spec.outcome import Done, Granted
from poolproof_spec.prefixes import usable_pages
from poolproof_spec.state import Lock, PoolState

from .builders import FULL_ARENA, NEW, OLD, ROOMY, alloc, entry, found, grant, hold, key, pool, step, swa2, tri

WHOLE = entry(key(1, 2, 3), [1, 2, 3])
BROKEN = [entry(key(1), [1]), entry(key(1, 2), [2], swa=False), entry(key(1, 2, 3), [3])]
"""The window of its second page is gone."""


def window(pages: int, state: PoolState) -> PoolState:
    return replace(state, geometry=replace(state.geometry, window_tokens=pages))


@pytest.mark.parametrize(("pages", "usable"), [(1, 3), (2, 1), (3, 1)])
def test_a_prefix_can_be_used_where_its_last_window_is_there(pages: int, usable: int) -> None:
    broken, whole = pool(swa2(12), *BROKEN), pool(swa2(12), WHOLE)
    assert usable_pages(window(pages, broken), key(1, 2, 3), False) == usable
    assert usable_pages(window(pages, whole), key(1, 2, 3, 4), False) == 3
    assert usable_pages(whole, key(2), False) == 0


def test_a_prefix_can_be_used_where_its_state_is_there() -> None:
    state = pool(tri(30), entry(key(1), [1], state=1), entry(key(1, 2), [2]))
    assert usable_pages(state, key(1, 2), True) == 1
    assert usable_pages(state, key(1, 2), False) == 2


# G4


@pytest.mark.parametrize(("pages", "found_pages"), [(1, 3), (2, 1)])
@pytest.mark.parametrize("operation", [op.Match(key=key(1, 2, 3)), op.LockPrefix(name="x", key=key(1, 2, 3))])
def test_a_match_finds_the_longest_usable_prefix(operation: op.Match, pages: int, found_pages: int) -> None:
    state = window(pages, pool(swa2(12), *BROKEN))
    for claimed in range(4):
        broken = found(state, operation, Done(matched_pages=claimed), state)
        assert ("match-usable" in broken) == (claimed != found_pages)


# G5

LOCKED = pool(swa2(8), replace(OLD, full_locks=1, swa_locks=1), NEW)
(HANDLE,) = LOCKED.locks
FREE = pool(swa2(8), OLD, NEW)


def test_a_lock_is_held_until_it_is_given_back() -> None:
    lock, unlock, early = (
        op.LockPrefix(name=HANDLE.name, key=key(1)),
        op.Unlock(name=HANDLE.name),
        op.UnlockWindow(name=HANDLE.name),
    )
    used = replace(LOCKED, entries=(replace(LOCKED.entries[0], last_use=3), NEW))
    half = pool(swa2(8), replace(OLD, full_locks=1), NEW)
    assert found(FREE, lock, Done(matched_pages=1), used) == {}
    assert found(LOCKED, unlock, Done(), FREE) == {}
    assert found(LOCKED, early, Done(), half) == {}
    assert set(found(FREE, lock, Done(matched_pages=1), pool(swa2(8), replace(OLD, last_use=3), NEW))) == {
        "handles-exact"
    }
    assert set(found(LOCKED, unlock, Done(), LOCKED)) == {"handles-exact"}
    assert set(found(LOCKED, early, Done(), FREE)) == {"handles-exact"}
    assert set(found(LOCKED, early, Done(), LOCKED)) == {"handles-exact"}
    assert set(found(LOCKED, op.Compact(), Done(), FREE)) == {"handles-exact"}


def test_a_lock_that_found_nothing_holds_nothing() -> None:
    lock = op.LockPrefix(name="x", key=key(7))
    assert found(FREE, lock, Done(matched_pages=0), FREE) == {}
    holding = replace(FREE, locks=(Lock(name="x", key=key(7)),))
    assert set(found(FREE, lock, Done(matched_pages=0), holding)) == {"handles-exact"}


@pytest.mark.parametrize(
    ("upper", "lower", "message"),
    [
        ((1, 0, 0), (1, 1, 0), None),
        ((0, 0, 0), (1, 1, 0), "entry [1]: FULL has 0 locks, handles ['x'] hold it"),
        ((1, 0, 0), (1, 0, 0), "entry [1, 2]: SWA has 0 locks, handles ['x'] hold it"),
        ((1, 1, 0), (1, 1, 0), "entry [1]: SWA has 1 locks, handles [] hold it"),
    ],
)
def test_what_a_handle_holds_is_locked_and_nothing_else(
    upper: tuple[int, int, int], lower: tuple[int, int, int], message: str | None
) -> None:
    state = pool(swa2(8), entry(key(1), [1], locks=upper), entry(key(1, 2), [2], locks=lower))
    state = replace(state, locks=(Lock(name="x", key=key(1, 2)),))
    assert found(state, op.Compact(), Done(), state) == ({"handles-exact": message} if message else {})


def test_a_state_is_locked_where_the_prefix_ends() -> None:
    state = pool(tri(30), entry(key(1), [1], state=1, locks=(1, 1, 1)))
    assert found(state, op.Compact(), Done(), state) == {}
    unlocked = replace(state, entries=(replace(state.entries[0], state_locks=0),))
    assert set(found(unlocked, op.Compact(), Done(), unlocked)) == {"handles-exact"}


def test_what_is_held_stays_cached() -> None:
    gone = replace(pool(swa2(8), NEW), locks=LOCKED.locks)
    broken = found(gone, op.Compact(), Done(), gone)
    assert broken == {"handles-exact": f"lock {HANDLE.name} holds [1], which is not cached"}


# G6


@pytest.mark.parametrize(
    ("operation", "outcome"),
    [
        (op.Match(key=key(1)), Done(matched_pages=1)),
        (op.Insert(key=key(1)), Done()),
    ],
    ids=["match", "insert"],
)
def test_what_is_used_is_the_newest(operation: op.AnyOperation, outcome: Done) -> None:
    assert found(ROOMY, operation, outcome, pool(swa2(8), replace(OLD, last_use=3), NEW)) == {}
    assert found(ROOMY, operation, outcome, ROOMY) == {"recency-exact": "[1] was used, and is not the newest"}
    level = pool(swa2(8), replace(OLD, last_use=2), NEW)
    assert set(found(ROOMY, operation, outcome, level)) == {"recency-exact"}


def test_what_is_not_used_keeps_its_place() -> None:
    turned = pool(swa2(8), replace(OLD, last_use=5), NEW)
    message = {"recency-exact": "[1] and [2] changed their order of recency"}
    assert found(ROOMY, op.Match(key=key(3)), Done(matched_pages=0), turned) == message
    assert found(ROOMY, op.Compact(), Done(), pool(swa2(8), replace(OLD, last_use=2), NEW)) == message
    assert found(ROOMY, op.Compact(), Done(), pool(swa2(8), replace(OLD, last_use=4), replace(NEW, last_use=9))) == {}


def test_an_eviction_makes_nothing_newer() -> None:
    third = entry(key(3), [3], last_use=3)
    before = pool(swa2(6), OLD, NEW, third)
    after = pool(swa2(6), replace(NEW, last_use=4), third, holds=[hold("r", [1])])
    assert set(found(before, alloc(1), grant(step("leaf", 1)), after)) == {"recency-exact"}


def test_a_split_does_not_matter() -> None:
    before = pool(swa2(12), replace(WHOLE, last_use=1), entry(key(4), [4], last_use=2))
    split = [
        entry(key(1), [1], last_use=3),
        entry(key(1, 2, 3), [2, 3], last_use=1),
        entry(key(4), [4], last_use=2),
    ]
    assert found(before, op.Match(key=key(1)), Done(matched_pages=1), pool(swa2(12), *split)) == {}


def test_a_grant_without_steps_leaves_the_cache_alone() -> None:
    assert found(FULL_ARENA, alloc(0), Granted(), FULL_ARENA) == {}
