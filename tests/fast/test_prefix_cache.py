"""The prefix cache in lockstep with the reference's and the specification's policy order, on random operations."""

from itertools import count
from typing import NamedTuple

import numpy as np
import pytest

from poolproof_fast.adoption import AdoptError
from poolproof_fast.errors import NotLockedError
from poolproof_fast.prefix_cache import Handle, PrefixCache, Victims
from poolproof_reference.prefix_cache import Node
from poolproof_reference.prefix_cache import PrefixCache as ReferenceCache
from poolproof_spec.geometry import Geometry, derive, layout
from poolproof_spec.outcome import Step
from poolproof_spec.state import Entry
from poolproof_spec.steps import Key, after_step, freed_by, policy_order, spared
from poolproof_spec.units import PageKey, VirtualId

KINDS = ("leaf", "tombstone", "state")


def tri(window_tokens: int, page_tokens: int = 1) -> Geometry:
    return layout("tri", 4096, STATE=32, SWA=32, FULL=32, window_tokens=window_tokens, page_tokens=page_tokens)


def swa2(window_tokens: int, page_tokens: int = 1) -> Geometry:
    return layout("swa2", 4096, SWA=32, FULL=32, window_tokens=window_tokens, page_tokens=page_tokens)


GEOMETRIES = {
    "full only": derive(4096, [("FULL", "full", 32, "up")]),
    "swa, window of one page": swa2(1),
    "swa, window of three pages": swa2(3),
    "swa, window of a page and a half": swa2(3, page_tokens=2),
    "states": layout("mamba2", 4096, STATE=32, FULL=32),
    "swa and states, window of one page": tri(1),
    "swa and states, window of two pages": tri(2),
    "swa, states not cached": tri(4, page_tokens=2),
}


class SmallCache(PrefixCache):
    """Columns so small that they grow and are rewritten all the time."""

    FIRST_CAPACITY = 2


class Given(NamedTuple):
    """What an adoption handed back."""

    full: list[int]
    swa: list[int]
    state: int


def naive_adopt(cache: ReferenceCache, key: Key, ids: list[int], swa_from: int, state_id: int) -> Given:
    """Position by position."""
    own_from, given = len(key) - len(ids), Given([], [], 0)
    matched = sum(shared for _, shared in cache.walk(key))
    path = cache.path(key)
    has_swa = [cache.caches_swa and position >= swa_from for position in range(len(key))]
    for node_key in list(path):
        node, begin = cache.nodes[node_key], len(node_key) - len(cache.nodes[node_key].ids)
        locked = any(lock.key[: len(node_key)] == node_key for lock in cache.locks.values())
        own = range(max(begin, own_from), len(node_key))
        swapped = [position for position in own if has_swa[position] and not node.has_swa and not locked]
        for position in own:
            mine = VirtualId(ids[position - own_from])
            if position in swapped:
                given.full.append(node.ids[position - begin])
                node.ids[position - begin] = mine
            else:
                given.full.append(mine)
                given.swa.extend([mine] if has_swa[position] else [])
        if swapped:
            if swapped[0] > begin:
                cache.split(node_key, swapped[0])
                path.append(node_key[: swapped[0]])
            node.has_swa = True
    begin = matched
    for end in range(matched + 1, len(key) + 1):
        in_window = end == len(key) - cache.window_pages and cache.caches_swa
        if end == len(key) or in_window or has_swa[end] != has_swa[end - 1]:
            new = [VirtualId(i) for i in ids[begin - own_from : end - own_from]]
            cache.nodes[key[:end]] = Node(new, has_swa[end - 1], None, 0)
            path.append(key[:end])
            begin = end
    end_node = cache.nodes[key]
    if state_id and cache.caches_states and end_node.state_id is None:
        end_node.state_id, state_id = VirtualId(state_id), 0
    cache.touch(path)
    return given._replace(state=state_id)


class Pair:
    """Both caches, given the same operations; what each answers and what is then to be seen must be the same."""

    def __init__(self, geometry: Geometry, seed: int, letters: int) -> None:
        self.fast = SmallCache(geometry) if seed % 2 else PrefixCache(geometry)
        self.reference = ReferenceCache(geometry)
        self.random = np.random.default_rng(seed)
        self.letters = letters
        self.handles: dict[str, Handle] = {}
        self.released: set[str] = set()
        self.numbers = count(1)
        self.seen: set[str] = set()
        """What happened, so that a test can tell that it tested something."""

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def draw_key(self, longest: int = 8) -> Key:
        """A new key, or a node's, cut short or made longer."""
        nodes = list(self.reference.nodes)
        stem: Key = nodes[self.random.integers(len(nodes))] if nodes and self.chance(0.7) else ()
        stem = stem[: self.random.integers(len(stem) + 1)] if self.chance(0.5) else stem
        more = self.random.integers(self.letters, size=self.random.integers(0 if stem else 1, longest))
        return (*stem, *(PageKey(int(letter)) for letter in more))

    def bare_key(self) -> Key:
        """A tombstoned node's, where there is one: rare, as what is tombstoned was locked."""
        bare = [key for key, node in self.reference.nodes.items() if not node.has_swa]
        return bare[self.random.integers(len(bare))] if bare else self.draw_key()

    def argument(self, key: Key) -> tuple[int, ...] | np.ndarray:
        """The key in one of the forms in which it may be given."""
        return np.array(key, dtype=np.int64) if self.chance(0.3) else key

    def new_ids(self, size: int) -> list[VirtualId]:
        return [VirtualId(next(self.numbers)) for _ in range(size)]

    # Operations

    def insert(self, key: Key) -> None:
        missing = self.reference.missing(key, with_state := self.reference.caches_states and self.chance(0.8))
        assert self.fast.missing(self.argument(key), with_state) == missing
        if self.chance(0.7):
            path = [self.reference.nodes[k] for k in self.reference.path(key)]
            bare = [i for node in path if self.reference.caches_swa and not node.has_swa for i in node.ids]
            assert self.fast.bare_ids(key).tolist() == bare
            self.seen |= {"restored"} if bare else set()
        ids, state_id = self.new_ids(missing[0]), next(self.numbers) if missing[2] else 0
        self.reference.insert(key, list(ids), VirtualId(state_id) if state_id else None)
        self.fast.insert(self.argument(key), np.array(ids, dtype=np.int32), state_id)

    def match(self, key: Key) -> None:
        usable = self.reference.match(key)
        node = self.fast.match(self.argument(key))
        assert self.fast.depth_of(node) == len(usable) and (node > 0) == bool(usable)
        assert self.fast.ids_of(node).tolist() == [i for k, _ in self.reference.walk(usable) for i in self.ids(k)]
        assert self.fast.key_of(node) == usable
        if usable:
            assert self.fast.state_of(node) == (self.reference.nodes[usable].state_id or 0)

    def ids(self, key: Key) -> list[VirtualId]:
        return self.reference.nodes[key].ids

    def lock(self, key: Key) -> None:
        name = str(next(self.numbers))
        usable = self.reference.lock(name, key)
        handle = self.fast.lock(key)
        assert (handle is None) == (not usable)
        if handle is not None:
            self.handles[name] = handle

    def unlock(self, window_only: bool) -> None:
        names = sorted(self.handles)
        if names:
            name = names[self.random.integers(len(names))]
            self.reference.unlock(name, window_only)
            if window_only:
                self.fast.unlock_window(self.handles[name])
            else:
                self.fast.unlock(self.handles.pop(name))

    def evict(self) -> None:
        """The first steps, perhaps less one that is spared."""
        order = policy_order(self.tree())
        size = int(self.random.integers(1, 4 if self.chance(0.3) else len(order) + 2))
        steps, victims = order[:size], self.fast.walk().take(size)
        if len(steps) > 1 and self.chance(0.5):
            chosen = spared(steps, steps[self.random.integers(len(steps))])
            victims = victims.select(np.array([step in chosen for step in steps]))
            steps = chosen
        self.check_freed(steps, victims)
        for step in steps:
            self.reference.evict(step)
            self.seen.add(step.kind)
        self.fast.evict(victims)

    def adopt(self, key: Key) -> None:
        matched = sum(shared for _, shared in self.reference.walk(key))
        own_from = int(self.random.integers(matched + 1)) if self.chance(0.3) else 0
        ids, state_id = self.new_ids(len(key) - own_from), next(self.numbers) if self.chance(0.5) else 0
        swa_from = int(self.random.integers(len(key) + 2)) if self.chance(0.5) else 0
        expected = naive_adopt(self.reference, key, list(ids), swa_from, state_id)
        adopted = self.fast.adopt(self.argument(key), np.array(ids, dtype=np.int32), swa_from, state_id)
        assert adopted.duplicates_full.tolist() == expected.full
        assert adopted.duplicates_swa.tolist() == expected.swa
        assert adopted.duplicate_state == expected.state
        self.seen |= {"exchanged"} if set(expected.full) - set(ids) else set()

    # What is to be seen

    def tree(self) -> dict[Key, Entry]:
        return {entry.key: entry for entry in self.reference.entries()}

    def check(self) -> None:
        """Everything that can be observed is the same in both."""
        entries = list(self.reference.entries())
        assert list(self.fast.entries()) == entries
        assert self.fast.entry_count == len(entries)
        full = [i for entry in entries for i in entry.ids]
        swa = [i for entry in entries for i in entry.swa_ids]
        states = [entry.state_id for entry in entries if entry.state_id is not None]
        assert self.fast.cached == [len(full), len(swa), len(states)]
        assert [sorted(ids.tolist()) for ids in self.fast.all_ids()] == [sorted(full), sorted(swa), sorted(states)]
        order, victims = policy_order(self.tree()), self.walked()
        assert [(KINDS[k], self.fast.key_of(n)) for k, n in zip(victims.kind, victims.node.tolist(), strict=True)] == [
            (step.kind, step.key) for step in order
        ]
        freed = self.check_freed(order, victims)
        assert self.fast.evictable == [len(ids) for ids in freed]

    def walked(self) -> Victims:
        """The whole walk, in random portions."""
        walk, portions = self.fast.walk(), [self.fast.walk().take(0)]
        while len(portion := walk.take(size := int(self.random.integers(1, 9)))) == size:
            portions.append(portion)
        assert not len(walk.take(3))
        return Victims.concatenate([*portions, portion])

    def check_freed(self, order: list[Step], victims: Victims) -> list[list[int]]:
        """The pages that the steps free are those of the specification; all the ids."""
        tree, freed = self.tree(), [[], [], []]
        steps: list[list[int]] = [[], [], []]
        for index, step in enumerate(order):
            hold = freed_by(tree, step)
            parts = [list(hold.ids), list(hold.swa_ids), list(hold.state_ids)]
            assert [victims.full[index], victims.swa[index], victims.state[index]] == [len(ids) for ids in parts]
            if step.kind == "leaf":
                assert self.fast.key_of(int(victims.parent[index])) == tree[step.key].parent_key
            else:
                assert victims.parent[index] == -1
            tree = after_step(tree, step)
            for role, ids in enumerate(parts):
                freed[role] += ids
                steps[role] += [index] * len(ids)
        assert [ids.tolist() for ids in self.fast.freed_ids(victims)] == freed
        assert [of.tolist() for of in self.fast.freed_steps(victims)] == steps
        return freed

    def any_operation(self, longest: int = 8) -> None:
        key = self.draw_key(longest)
        match int(self.random.integers(15)):
            case 0 | 1 | 2:
                self.insert(key)
            case 3 | 4:
                self.match(key)
            case 5 | 6 | 7:
                self.lock(key)
            case 8 | 9:
                self.unlock(window_only=True)
            case 10:
                self.unlock(window_only=False)
            case 11 | 12:
                self.evict()
            case _:
                self.adopt(self.bare_key() if self.chance(0.5) else key)


def episode(geometry: Geometry, seed: int, operations: int = 60, longest: int = 8) -> Pair:
    """Random operations on two empty caches; small alphabets, so that keys meet and part all the time."""
    pair = Pair(geometry, seed, letters=2 + seed % 3)
    for _ in range(operations):
        pair.any_operation(longest)
        pair.check()
    return pair


@pytest.mark.parametrize("name", GEOMETRIES)
def test_random_operations_in_lockstep_with_the_reference(name: str) -> None:
    geometry = GEOMETRIES[name]
    seen = set().union(*(episode(geometry, seed).seen for seed in range(12)))
    expected = {"leaf"}
    if geometry.has_role("swa"):
        expected |= {"tombstone", "restored", "exchanged"}
    if name in ("states", "swa and states, window of two pages"):
        expected |= {"state"}
    assert seen >= expected


@pytest.mark.parametrize("name", ["swa, window of three pages", "states", "swa and states, window of two pages"])
@pytest.mark.parametrize("seed", [0, 1])
def test_long_paths_of_small_nodes(name: str, seed: int) -> None:
    pair = Pair(GEOMETRIES[name], seed, letters=3)
    key = tuple(PageKey(int(letter)) for letter in pair.random.integers(3, size=80))
    for end in range(1, len(key) + 1):
        pair.insert(key[:end])
    pair.check()
    for locked in (key[:70], key[:45], key[:50]):
        pair.lock(locked)
    for end in range(40, 80, 5):
        pair.insert((*key[:end], PageKey(7), PageKey(8)))
        pair.match(key[:end])
    pair.check()
    for _ in range(20):
        pair.any_operation(longest=3)
    pair.check()
    for name in sorted(pair.handles):
        pair.reference.unlock(name)
        pair.fast.unlock(pair.handles.pop(name))
        pair.check()
    while pair.reference.nodes:
        pair.evict()
    pair.check()
    assert pair.fast.evictable == pair.fast.cached == [0, 0, 0]


def test_a_walk_reads_only() -> None:
    pair = episode(GEOMETRIES["swa and states, window of two pages"], seed=1)
    pair.walked()
    pair.check()


def test_an_unlocked_handle_is_refused() -> None:
    cache = PrefixCache(GEOMETRIES["full only"])
    cache.insert((1, 2), np.array([1, 2], dtype=np.int32), 0)
    handle = cache.lock((1, 2))
    assert handle is not None
    cache.unlock(handle)
    for give_back in (cache.unlock, cache.unlock_window):
        with pytest.raises(NotLockedError):
            give_back(handle)
    assert not np.count_nonzero(cache.tree.nodes.swa_locks_view)


def test_keys_may_be_as_large_as_63_bits() -> None:
    cache, key = PrefixCache(GEOMETRIES["full only"]), (2**63 - 1, 2**63 - 1, 0)
    cache.insert(key, np.array([1, 2, 3], dtype=np.int32), 0)
    assert cache.key_of(cache.match((*key[:2], 5))) == key[:2]
    assert cache.match((0,)) == cache.match((2**62,)) == 0


# Adoption by example; test_random_operations_in_lockstep_with_the_reference has the rest


def adopting(*keys: int, tombstoned: bool) -> PrefixCache:
    """A cache with one prefix in it, with ids from 1 on."""
    cache = PrefixCache(GEOMETRIES["swa, window of three pages"])
    cache.adopt(keys, np.arange(1, len(keys) + 1, dtype=np.int32), len(keys) if tombstoned else 0, 0)
    return cache


def test_adopted_pages_are_cached_and_what_was_cached_is_handed_back() -> None:
    cache = adopting(5, 6, 7, tombstoned=False)
    adopted = cache.adopt((5, 6, 7, 8), np.array([11, 12, 13], dtype=np.int32), 2, 0)
    assert adopted.duplicates_full.tolist() == [11, 12]
    assert adopted.duplicates_swa.tolist() == [12]
    assert cache.ids_of(cache.match((5, 6, 7, 8))).tolist() == [1, 2, 3, 13]


def test_adoption_restores_a_tombstone_with_the_requests_own_pages() -> None:
    cache = adopting(5, 6, 7, tombstoned=True)
    adopted = cache.adopt((5, 6, 7), np.array([11, 12, 13], dtype=np.int32), 1, 0)
    assert (adopted.duplicates_full.tolist(), adopted.duplicates_swa.tolist()) == ([11, 2, 3], [])
    assert [(entry.ids, entry.swa_ids) for entry in cache.entries()] == [((1,), ()), ((12, 13), (12, 13))]


def test_adoption_leaves_the_ids_of_locked_nodes_alone() -> None:
    cache = adopting(5, 6, 7, 8, tombstoned=False)
    handle = cache.lock((5, 6, 7, 8))
    assert handle is not None
    cache.evict(cache.walk().take(9))
    adopted = cache.adopt((5,), np.array([11], dtype=np.int32), 0, 0)
    assert (adopted.duplicates_full.tolist(), adopted.duplicates_swa.tolist()) == ([11], [11])
    assert cache.ids_of(cache.match((5, 6, 7, 8))).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("key", [(), (5, 6, 7), (9, 8), (5,)])
def test_adoption_needs_the_leading_pages_cached(key: tuple[int, ...]) -> None:
    cache = adopting(5, tombstoned=False)
    before = list(cache.entries())
    own = np.array([11, 12] if key == (5,) else [11], dtype=np.int32)
    with pytest.raises(AdoptError, match="must be cached"):
        cache.adopt(key, own, 0, 0)
    assert list(cache.entries()) == before
