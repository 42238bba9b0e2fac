"""The prefix cache by example: splits, tail nodes, usable prefixes, tombstones and their restoring, locks."""

from itertools import count

import pytest

from poolproof_reference.errors import NameInUseError, UnknownNameError
from poolproof_reference.prefix_cache import PrefixCache
from poolproof_spec.geometry import Geometry, layout
from poolproof_spec.outcome import Step, StepKind
from poolproof_spec.state import Entry, Lock
from poolproof_spec.units import PageKey, VirtualId


def swa2(window_tokens: int = 1, page_tokens: int = 1) -> Geometry:
    return layout("swa2", 32 * 64, window_tokens=window_tokens, page_tokens=page_tokens, SWA=32, FULL=32)


TRI = layout("tri", 32 * 64, STATE=32, SWA=32, FULL=32)
MAMBA2 = layout("mamba2", 32 * 64, STATE=32, FULL=32)


class Filled:
    """A cache that is given fresh ids for what it misses, as the pool does; states have ids from 100 on."""

    def __init__(self, geometry: Geometry) -> None:
        self.cache = PrefixCache(geometry)
        self.ids, self.state_ids = count(1), count(100)

    def insert(self, *keys: int, state: bool = False) -> tuple[int, int, bool]:
        """Cache a prefix; what it missed."""
        missing = self.cache.missing(key(*keys), state)
        full, _, with_state = missing
        ids = [VirtualId(next(self.ids)) for _ in range(full)]
        self.cache.insert(key(*keys), ids, VirtualId(next(self.state_ids)) if with_state else None)
        return missing

    def evict(self, kind: StepKind, *keys: int) -> None:
        self.cache.evict(Step(kind=kind, key=key(*keys)))

    def match(self, *keys: int) -> int:
        return len(self.cache.match(key(*keys)))

    def lock(self, name: str, *keys: int) -> int:
        return len(self.cache.lock(name, key(*keys)))

    def entry(self, *keys: int) -> Entry:
        return next(entry for entry in self.cache.entries() if entry.key == key(*keys))

    @property
    def keys(self) -> list[tuple[PageKey, ...]]:
        return [entry.key for entry in self.cache.entries()]

    def locks(self, *keys: int) -> tuple[int, int, int]:
        entry = self.entry(*keys)
        return entry.full_locks, entry.swa_locks, entry.state_locks


def key(*keys: int) -> tuple[PageKey, ...]:
    return tuple(PageKey(k) for k in keys)


# The tree


def test_the_last_window_of_an_insert_is_a_node_of_its_own() -> None:
    cache = Filled(swa2(window_tokens=2))
    assert cache.insert(1, 2, 3, 4, 5) == (5, 5, False)
    assert [(e.key, e.ids) for e in cache.cache.entries()] == [(key(1, 2, 3), (1, 2, 3)), (key(1, 2, 3, 4, 5), (4, 5))]


def test_an_insert_within_the_window_is_one_node() -> None:
    cache = Filled(swa2(window_tokens=2))
    cache.insert(1, 2)
    assert cache.keys == [key(1, 2)]


def test_the_window_is_rounded_up_to_pages() -> None:
    cache = Filled(swa2(window_tokens=3, page_tokens=2))
    cache.insert(1, 2, 3)
    assert cache.keys == [key(1), key(1, 2, 3)]


def test_without_swa_there_is_no_tail_node() -> None:
    cache = Filled(MAMBA2)
    assert cache.insert(1, 2, 3) == (3, 0, False)
    assert cache.keys == [key(1, 2, 3)]


def test_only_new_pages_are_cut_at_the_window() -> None:
    cache = Filled(swa2(window_tokens=2))
    cache.insert(1, 2)
    assert cache.insert(1, 2, 3, 4, 5) == (3, 3, False)
    assert cache.keys == [key(1, 2), key(1, 2, 3), key(1, 2, 3, 4, 5)]


def test_a_node_is_split_where_prefixes_part() -> None:
    cache = Filled(swa2(window_tokens=4))
    cache.insert(1, 2, 3, 4)
    assert cache.insert(1, 2, 9) == (1, 1, False)
    found = [(e.key, e.ids) for e in cache.cache.entries()]
    assert found == [(key(1, 2), (1, 2)), (key(1, 2, 3, 4), (3, 4)), (key(1, 2, 9), (5,))]


def test_a_split_leaves_the_state_at_the_end_and_the_tombstone_on_both() -> None:
    cache = Filled(TRI)
    cache.insert(1, 2, 3, 4, state=True)
    cache.evict("tombstone", 1, 2, 3)
    cache.insert(1, 2, 3, 5, state=True)
    assert cache.entry(1, 2, 3).swa_ids == (1, 2, 3)
    cache.evict("tombstone", 1, 2, 3)
    assert cache.match(1, 2) == 0
    assert (cache.entry(1, 2).swa_ids, cache.entry(1, 2, 3).swa_ids) == ((), ())
    assert cache.entry(1, 2, 3, 4).state_id == 100
    cache = Filled(MAMBA2)
    cache.insert(1, 2, state=True)
    cache.match(1)
    assert (cache.entry(1).state_id, cache.entry(1, 2).state_id) == (None, 100)


def test_siblings_share_no_first_page() -> None:
    cache = Filled(swa2())
    cache.insert(1)
    cache.insert(2)
    assert cache.insert(2, 1) == (1, 1, False)
    assert cache.keys == [key(1), key(2), key(2, 1)]


# What a match finds


def test_a_match_ends_where_the_keys_part() -> None:
    cache = Filled(swa2())
    cache.insert(1, 2, 3)
    assert cache.match(1, 2, 9) == 2
    assert cache.match(1, 2, 3, 4) == 3
    assert cache.match(9) == 0


def test_a_match_needs_swa_over_the_last_window() -> None:
    cache = Filled(swa2(window_tokens=2))
    for length in range(1, 6):
        cache.insert(*range(1, length + 1))
    cache.evict("tombstone", 1, 2, 3)
    found = [cache.match(*range(1, length + 1)) for length in range(1, 6)]
    assert found == [1, 2, 2, 2, 5]


def test_a_match_needs_a_state_where_states_are_cached() -> None:
    cache = Filled(TRI)
    cache.insert(1, 2, state=True)
    cache.insert(1, 2, 3, state=False)
    assert cache.match(1, 2, 3) == 2
    cache.evict("state", 1, 2)
    assert cache.match(1, 2, 3) == 0


def test_pages_of_several_tokens_cache_no_states() -> None:
    cache = Filled(layout("mamba2", 2048, page_tokens=2, STATE=32, FULL=32))
    cache.insert(1)
    assert cache.match(1) == 1


def test_a_match_touches_what_it_found_and_its_ancestors() -> None:
    cache = Filled(swa2())
    cache.insert(1)
    cache.insert(1, 2)
    cache.insert(1, 2, 3)
    cache.insert(4)
    assert [e.last_use for e in cache.cache.entries()] == [3, 3, 3, 4]
    cache.match(1, 2)
    assert [e.last_use for e in cache.cache.entries()] == [5, 5, 3, 4]


def test_what_lies_beyond_the_usable_prefix_is_not_touched() -> None:
    cache = Filled(swa2())
    cache.insert(1)
    cache.insert(1, 2)
    cache.evict("tombstone", 1, 2)
    assert cache.match(1, 2) == 1
    assert [e.last_use for e in cache.cache.entries()] == [3, 2]


# Tombstones, and what an insert restores


def test_inserting_over_a_tombstone_asks_for_its_swa_pages() -> None:
    cache = Filled(swa2())
    cache.insert(1, 2, 3)
    cache.evict("tombstone", 1, 2)
    assert cache.entry(1, 2).ids == (1, 2)
    assert cache.entry(1, 2).swa_ids == ()
    assert cache.insert(1, 2, 3, 4) == (1, 3, False)
    assert cache.entry(1, 2).swa_ids == (1, 2)


def test_a_tombstone_takes_the_state_with_it() -> None:
    cache = Filled(TRI)
    cache.insert(1, state=True)
    cache.insert(1, 2, state=True)
    cache.evict("tombstone", 1)
    assert cache.entry(1).state_id is None
    assert cache.insert(1, state=True) == (0, 1, True)
    assert cache.entry(1).state_id == 102


def test_a_state_that_is_there_is_not_asked_for_again() -> None:
    cache = Filled(MAMBA2)
    assert cache.insert(1, state=True) == (1, 0, True)
    assert cache.insert(1, state=True) == (0, 0, False)
    cache.evict("state", 1)
    assert cache.insert(1, state=True) == (0, 0, True)


def test_a_leaf_goes_whole() -> None:
    cache = Filled(TRI)
    cache.insert(1, state=True)
    cache.evict("leaf", 1)
    assert cache.keys == []


# Locks


def test_a_lock_covers_the_path_the_window_and_the_state() -> None:
    cache = Filled(layout("tri", 2048, window_tokens=2, STATE=32, SWA=32, FULL=32))
    for length in range(1, 5):
        cache.insert(*range(1, length + 1), state=True)
    assert cache.lock("x", 1, 2, 3) == 3
    assert [cache.locks(*range(1, length + 1)) for length in range(1, 5)] == [
        (1, 0, 0),
        (1, 1, 0),
        (1, 1, 1),
        (0, 0, 0),
    ]


def test_a_lock_without_swa_or_states_is_on_full_alone() -> None:
    cache = Filled(layout("mamba2", 2048, page_tokens=2, STATE=32, FULL=32))
    cache.insert(1)
    cache.lock("x", 1)
    assert cache.locks(1) == (1, 0, 0)


def test_locks_add_up_and_are_given_back_one_by_one() -> None:
    cache = Filled(TRI)
    cache.insert(1, state=True)
    cache.lock("x", 1)
    cache.lock("y", 1)
    assert cache.locks(1) == (2, 2, 2)
    cache.cache.unlock("x", window_only=True)
    assert cache.locks(1) == (2, 1, 1)
    cache.cache.unlock("x", window_only=True)
    assert cache.locks(1) == (2, 1, 1)
    cache.cache.unlock("x")
    assert cache.locks(1) == (1, 1, 1)
    cache.cache.unlock("y")
    assert cache.locks(1) == (0, 0, 0)


def test_a_split_under_a_lock_keeps_the_window_locked_and_no_more() -> None:
    cache = Filled(swa2(window_tokens=2))
    cache.insert(1, 2)
    cache.insert(1, 2, 3, 4)
    cache.lock("x", 1, 2, 3, 4)
    assert cache.locks(1, 2, 3, 4) == (1, 1, 0)
    cache.insert(1, 2, 3, 9)
    assert cache.keys == [key(1, 2), key(1, 2, 3), key(1, 2, 3, 4), key(1, 2, 3, 9)]
    assert [cache.locks(*keys) for keys in ((1, 2), (1, 2, 3), (1, 2, 3, 4), (1, 2, 3, 9))] == [
        (1, 0, 0),
        (1, 1, 0),
        (1, 1, 0),
        (0, 0, 0),
    ]
    cache = Filled(swa2())
    cache.insert(1, 2, 3)
    cache.lock("x", 1, 2)
    assert cache.locks(1, 2) == (1, 1, 0)
    cache.insert(1, 9)
    assert cache.locks(1) == (1, 0, 0)
    assert cache.locks(1, 2) == (1, 1, 0)


def test_a_lock_that_finds_nothing_holds_nothing() -> None:
    cache = Filled(swa2())
    assert cache.lock("x", 1) == 0
    assert cache.cache.locks == {}
    cache.insert(1)
    assert cache.lock("x", 1) == 1
    assert cache.cache.locks == {"x": Lock(name="x", key=key(1))}


def test_names_of_locks_are_checked_before_anything_changes() -> None:
    cache = Filled(swa2())
    cache.insert(1, 2, 3)
    cache.lock("x", 1, 2, 3)
    before = (list(cache.cache.entries()), cache.cache.clock)
    with pytest.raises(NameInUseError, match="'x'"):
        cache.lock("x", 1)
    for window_only in (False, True):
        with pytest.raises(UnknownNameError, match="'y'"):
            cache.cache.unlock("y", window_only)
    assert (list(cache.cache.entries()), cache.cache.clock) == before
