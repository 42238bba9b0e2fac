"""The prefix cache: a page-keyed tree, recency, tombstones and locks, at a cost that does not depend on its size.

It does what the reference's `PrefixCache` does, with the same splits at the same moments, and offers the legal
eviction steps in the order of `policy_order`.
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from poolproof_fast.adoption import Adopted, adopt
from poolproof_fast.eviction import freed_ids, freed_steps, take_steps
from poolproof_fast.locks import Handle, Locks
from poolproof_fast.nodes import Column, Int32s, Int64s, key_array, run_indices
from poolproof_fast.tree import Tree
from poolproof_fast.victims import Victims
from poolproof_fast.walk import Walk
from poolproof_spec.geometry import Geometry
from poolproof_spec.state import Entry
from poolproof_spec.units import PageKey, VirtualId, pages_for_tokens

__all__ = ["Adopted", "Handle", "PrefixCache", "Victims", "Walk"]

Key: TypeAlias = Sequence[int] | NDArray[np.integer]
"""Page keys, 0 <= key < 2**63 each; cheapest as an `array.array("q")`, then as an int64 array."""


class PrefixCache:
    """A node is named by its slot; 0 is the root, which stands for "none". Counts are in the order FULL, SWA, state."""

    FIRST_CAPACITY: ClassVar[int] = 1024
    """Elements in each column at first."""

    def __init__(self, geometry: Geometry) -> None:
        self.caches_swa = geometry.has_role("swa")
        self.caches_states = geometry.has_role("state") and geometry.page_tokens == 1
        self.window_pages = pages_for_tokens(geometry.window_tokens, geometry.page_tokens)
        self.cached = [0, 0, 0]
        """Pages that the cache holds."""
        self.evictable = [0, 0, 0]
        """Those of them that taking every step of `walk()` would free."""
        self.tree = Tree(self.FIRST_CAPACITY)
        window_pages = self.window_pages if self.caches_swa else 0
        self.locks = Locks(self.tree.nodes, self.tree.recency, self.evictable, window_pages, self.caches_states)

    @property
    def entry_count(self) -> int:
        """Nodes, the root not counted."""
        return len(self.tree.children)

    # Finding

    def path(self, key: Key) -> list[int]:
        """The nodes that `key` runs through, root side first; the last is split where the two part."""
        path, matched = self.tree.descend(key_array(key))
        if path and (rest := self.tree.nodes.depth[path[-1]] - matched):
            path[-1] = self.split(path[-1], self.tree.nodes.length[path[-1]] - rest)
        return path

    def split(self, node: int, own: int) -> int:
        """Cut the first `own` pages of a node (fewer than all) off it, as a node above it; the slot of that one."""
        locks, nodes = self.locks, self.tree.nodes
        if not nodes.full_locks[node]:
            return self.tree.cut(node, own)
        before = locks.evictable_swa(node)
        upper = self.tree.cut(node, own)
        locks.inherit(upper, node)
        self.evictable[1] += locks.evictable_swa(node) + locks.evictable_swa(upper) - before
        return upper

    def match(self, key: Key) -> int:
        """The end of the longest usable prefix, which is touched; 0 where there is none.

        Usable: FULL all the way, SWA over the last window, a state where states are cached.
        """
        path = self.path(key)
        count = self._usable(path) if self.caches_swa or self.caches_states else len(path)
        self.tree.recency.touch(path[:count])
        return path[count - 1] if count else 0

    def _usable(self, path: list[int]) -> int:
        """How many nodes of the path the longest usable prefix has."""
        nodes, window = self.tree.nodes, self.window_pages
        caches_swa, caches_states = self.caches_swa, self.caches_states
        length, depth, has_swa, state_id = nodes.length, nodes.depth, nodes.has_swa, nodes.state_id
        usable = covered = 0
        for count, node in enumerate(path, 1):
            covered = covered + length[node] if has_swa[node] else 0
            if (not caches_swa or covered >= window or covered >= depth[node]) and (
                not caches_states or state_id[node]
            ):
                usable = count
        return usable

    def depth_of(self, node: int) -> int:
        """Pages from the root to the end of a node; 0 for no node."""
        return self.tree.nodes.depth[node]

    def ids_of(self, node: int) -> Int32s:
        """FULL ids from the root to the end of a node: the pages of a prefix hit."""
        return self.tree.ids_along(self.tree.path_to(node))

    def state_of(self, node: int) -> int:
        """The state cached at the end of a node; 0 for none."""
        return self.tree.nodes.state_id[node]

    def key_of(self, node: int) -> tuple[int, ...]:
        """Page keys from the root to the end of a node."""
        return self.tree.key_of(node)

    # Adding

    def missing(self, key: Key, with_state: bool) -> tuple[int, int, bool]:
        """(FULL pages, SWA pages, whether a state) that caching `key` needs: tombstones on its path are restored."""
        nodes = self.tree.nodes
        path, matched = self.tree.descend(key_array(key))
        new_pages, tombstoned = len(key) - matched, 0
        if self.caches_swa and path:
            tombstoned = sum(nodes.length[node] for node in path if not nodes.has_swa[node])
            if not nodes.has_swa[path[-1]]:
                tombstoned -= nodes.depth[path[-1]] - matched
        has_state = bool(path and not new_pages and nodes.depth[path[-1]] == matched and nodes.state_id[path[-1]])
        return new_pages, new_pages * self.caches_swa + tombstoned, with_state and not has_state

    def bare_ids(self, key: Key) -> Int32s:
        """FULL ids of the tombstoned nodes that `key` runs through; the path is split as an insert would split it."""
        path, has_swa = self.path(key), self.tree.nodes.has_swa
        return self.tree.ids_along([node for node in path if not has_swa[node]] if self.caches_swa else [])

    def insert(self, key: Key, ids: Int32s, state_id: int) -> None:
        """Add the missing pages (`ids`), the last window of them as a node of its own; restore what was tombstoned.

        Where SWA is cached, every new or restored id has an SWA page. `state_id` is 0 for none.
        """
        keys = key_array(key)
        path, new_pages = self.path(keys), len(ids)
        if self.caches_swa:
            for node in path:
                if not self.tree.nodes.has_swa[node]:
                    self.restore(node)
        if new_pages:
            first_cut = len(keys) - self.window_pages if self.caches_swa and new_pages > self.window_pages else 0
            self.append(path, keys, ids, [(first_cut, self.caches_swa), (len(keys), self.caches_swa)])
        if state_id:
            self.set_state(path[-1], state_id)
        self.tree.recency.touch(path)

    def restore(self, node: int) -> None:
        """The pages of a tombstoned node have SWA pages again."""
        self.tree.nodes.has_swa[node] = 1
        self.cached[1] += self.tree.nodes.length[node]
        self.evictable[1] += self.locks.evictable_swa(node)

    def append(self, path: list[int], keys: Column, ids: Int32s, parts: Sequence[tuple[int, bool]]) -> None:
        """Nodes for the last pages of a key, below its path, which they are added to.

        `parts`, root side first: (depth of the end of a node, whether it has SWA pages); what has no pages is no node.
        """
        depth = len(keys) - len(ids)
        start = self.tree.pages.append(keys[depth:], ids)
        for end, has_swa in parts:
            if end > depth:
                count = end - depth
                path.append(self.tree.add(path[-1] if path else 0, start, count, has_swa))
                for totals in (self.cached, self.evictable):
                    totals[0] += count
                    totals[1] += count * has_swa
                start, depth = start + count, end

    def set_state(self, node: int, state_id: int) -> None:
        """Cache a state at the end of a node that has none."""
        locks = self.locks
        swa, state = locks.evictable_swa(node), locks.evictable_state(node)
        self.tree.nodes.state_id[node] = state_id
        self.cached[2] += 1
        self.evictable[1] += locks.evictable_swa(node) - swa
        self.evictable[2] += locks.evictable_state(node) - state

    def adopt(self, key: Key, ids: Int32s, swa_ids_from: int, state_id: int) -> Adopted:
        """Take over the pages of a finished request (see `adoption.adopt`). Raises AdoptError, nothing changed."""
        return adopt(self, key_array(key), ids, swa_ids_from, state_id)

    # Locks

    def lock(self, key: Key) -> Handle | None:
        """Match and lock; None where nothing is usable."""
        node = self.match(key)
        return self.locks.lock(node) if node else None

    def unlock(self, handle: Handle) -> None:
        """Give a lock back. Raises NotLockedError."""
        self.locks.unlock(handle)

    def unlock_window(self, handle: Handle) -> None:
        """Give the SWA and state part of a lock back. Raises NotLockedError."""
        self.locks.unlock_window(handle)

    # Eviction

    def walk(self) -> Walk:
        """A cursor over the legal steps in policy order; good until the cache changes."""
        return Walk(self.tree.nodes, self.tree.recency, self.locks.locked)

    def freed_ids(self, victims: Victims) -> tuple[Int32s, Int32s, Int32s]:
        """(FULL ids, SWA ids, state ids) that the steps give up, in step order; to be asked before they are taken."""
        return freed_ids(self.tree, victims)

    def freed_steps(self, victims: Victims) -> tuple[Int64s, Int64s, Int64s]:
        """For each of `freed_ids`, the index of the step that gives it up."""
        return freed_steps(victims)

    def evict(self, victims: Victims) -> None:
        """Take the steps: legal ones, in policy order; nodes and flags only, the pages are the pool's to free."""
        full, swa, state = take_steps(self.tree, victims)
        for totals in (self.cached, self.evictable):
            totals[0] -= full
            totals[1] -= swa
            totals[2] -= state

    # Observing

    def all_ids(self) -> tuple[Int32s, Int32s, Int32s]:
        """(FULL ids, SWA ids, state ids) that the cache holds."""
        nodes, ids = self.tree.nodes, self.tree.pages.ids_view
        slots = nodes.live_slots()
        full, swa = (
            ids[run_indices(nodes.start_view[some], nodes.length_view[some])]
            for some in (slots, slots[nodes.has_swa_view[slots] != 0])
        )
        states = nodes.state_id_view[slots]
        return full, swa, states[states != 0]

    def entries(self) -> Iterator[Entry]:
        """The tree as seen from outside, sorted by key."""
        nodes = self.tree.nodes
        keyed = sorted((self.key_of(node), node) for node in nodes.live_slots().tolist())
        for key, node in keyed:
            ids = tuple(VirtualId(i) for i in self.tree.ids_along([node]).tolist())
            yield Entry(
                key=tuple(PageKey(k) for k in key),
                ids=ids,
                swa_ids=ids if nodes.has_swa[node] else (),
                state_id=VirtualId(nodes.state_id[node]) if nodes.state_id[node] else None,
                full_locks=nodes.full_locks[node],
                swa_locks=nodes.swa_locks[node],
                state_locks=nodes.state_locks[node],
                last_use=nodes.last_use[node],
            )
