"""The nodes of the prefix tree and their pages as structures of arrays: plain columns that grow by doubling.

Every column is an `array.array` for scalar access with a NumPy view over the same memory for bulk work. Growing
replaces both, so nobody may keep a column across a call that can allocate.
"""

from array import array
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Column: TypeAlias = "array[int]"
Int32s: TypeAlias = NDArray[np.int32]
Int64s: TypeAlias = NDArray[np.int64]

ROOT = 0
"""Slot of the root: it has no pages, depth 0, is in no log and is never freed; as a link it means "none"."""

SCALAR_BELOW = 32
"""Below this many elements a plain loop is faster than NumPy."""


def grown(column: Column, capacity: int) -> Column:
    """A copy of `column` with `capacity` elements, the new ones 0."""
    larger = array(column.typecode, [0]) * capacity
    larger[: len(column)] = column
    return larger


def key_array(key: Sequence[int] | NDArray[np.integer]) -> Column:
    """Page keys (0 <= key < 2**63 each) as an array of 64-bit ints; one that is such an array is returned as it is."""
    if isinstance(key, array):
        return key if key.typecode == "q" else array("q", key)
    if isinstance(key, np.ndarray):
        keys = array("q")
        keys.frombytes(np.ascontiguousarray(key, np.int64).tobytes())
        return keys
    return array("q", key)


def run_indices(starts: NDArray[np.integer], lengths: NDArray[np.integer]) -> Int64s:
    """The indices of every element of the runs [start, start + length), one run after the other."""
    ends = np.cumsum(lengths, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) + np.repeat(starts - (ends - lengths), lengths)


class Nodes:
    """One slot a node; a slot that was freed is used again, last freed first."""

    TYPECODES = dict.fromkeys(("parent", "start", "length", "depth", "state_id", "full_locks", "swa_locks"), "i") | {
        "state_locks": "i",
        "position": "i",
        "after": "i",
        "last_use": "q",
        "has_swa": "B",
    }

    parent: Column
    """Slot of the node above; of a free slot, the next free one."""
    start: Column
    """Where its run in `PageRuns` begins."""
    length: Column
    """Pages of its own."""
    depth: Column
    """Pages from the root to its end."""
    has_swa: Column
    """1 where its pages hold SWA pages too; 0 once tombstoned."""
    state_id: Column
    """The state cached at its end; 0 for none."""
    full_locks: Column
    """Handles on it or on a node below it."""
    swa_locks: Column
    """Those of them, window not released, whose last window reaches into it."""
    state_locks: Column
    """Those of them, window not released, that end at it."""
    last_use: Column
    """Tick of its last touch."""
    position: Column
    """Its index in the recency log; -1 for the root and for a free slot."""
    after: Column
    """The node that hangs behind it in the recency order (see `Recency`); 0 for none."""

    parent_view: Int32s
    start_view: Int32s
    length_view: Int32s
    depth_view: Int32s
    has_swa_view: NDArray[np.uint8]
    state_id_view: Int32s
    full_locks_view: Int32s
    swa_locks_view: Int32s
    state_locks_view: Int32s
    last_use_view: Int64s
    position_view: Int32s
    after_view: Int32s

    def __init__(self, capacity: int) -> None:
        self.capacity = 0
        self.slots_used = 1
        """Slots from here on were never used."""
        self.first_free = ROOT
        """Head of the list of freed slots; ROOT at its end."""
        self._resize(max(2, capacity))
        self.position[ROOT] = -1

    def _resize(self, capacity: int) -> None:
        for name, typecode in self.TYPECODES.items():
            column = grown(getattr(self, name, array(typecode)), capacity)
            setattr(self, name, column)
            setattr(self, f"{name}_view", np.frombuffer(column, dtype=typecode))
        self.capacity = capacity

    def live_slots(self) -> Int64s:
        """Slots of all nodes but the root, ascending."""
        return np.flatnonzero(self.position_view[: self.slots_used] >= 0)

    def add(self, parent: int, start: int, length: int, depth: int, has_swa: int) -> int:
        """A new node without state, locks or recency; its slot."""
        slot = self.first_free
        if slot:
            self.first_free = self.parent[slot]
        else:
            if self.slots_used == self.capacity:
                self._resize(2 * self.capacity)
            slot = self.slots_used
            self.slots_used += 1
        self.parent[slot] = parent
        self.start[slot] = start
        self.length[slot] = length
        self.depth[slot] = depth
        self.has_swa[slot] = has_swa
        self.state_id[slot] = self.full_locks[slot] = self.swa_locks[slot] = self.state_locks[slot] = 0
        self.after[slot] = 0
        self.position[slot] = -1
        return slot

    def free(self, slot: int) -> None:
        """Give a slot back; it must be out of the recency log."""
        self.parent[slot] = self.first_free
        self.first_free = slot

    def free_all(self, slots: Int32s) -> None:
        """Give many slots back, none twice; they must be out of the recency log."""
        self.parent_view[slots[:-1]] = slots[1:]
        self.parent[int(slots[-1])] = self.first_free
        self.first_free = int(slots[0])


class PageRuns:
    """Key and id of every cached page, in two columns; the pages of a node are one run, so that a split moves nothing.

    Runs of evicted nodes are garbage. When the columns are full they are rewritten without it, and made larger only
    where less than a third would be free then: between two rewritings at least a third of the capacity was appended,
    so rewriting is O(1) a page in the long run, and never happens in an eviction.
    """

    def __init__(self, nodes: Nodes, capacity: int) -> None:
        self.nodes = nodes
        self.used = 0
        self.garbage = 0
        """Pages among the `used` that no node has any more."""
        self.keys: Column = array("q")
        self.ids: Column = array("i")
        self._resize(max(1, capacity))

    def _resize(self, capacity: int) -> None:
        self.keys, self.ids = grown(self.keys, capacity), grown(self.ids, capacity)
        self.keys_view: Int64s = np.frombuffer(self.keys, dtype=np.int64)
        self.ids_view: Int32s = np.frombuffer(self.ids, dtype=np.int32)

    def append(self, keys: Column, ids: Int32s) -> int:
        """Store a run of pages; its start."""
        count = len(ids)
        if self.used + count > len(self.keys):
            self._rewrite(count)
        start = self.used
        self.used += count
        if count == 1:
            self.keys[start] = keys[0]
            self.ids[start] = int(ids[0])
        else:
            self.keys_view[start : self.used] = np.frombuffer(keys, dtype=np.int64)
            self.ids_view[start : self.used] = ids
        return start

    def _rewrite(self, room: int) -> None:
        """Close up the live runs, and leave at least `room` free."""
        nodes = self.nodes
        slots = nodes.live_slots()
        slots = slots[np.argsort(nodes.start_view[slots])]
        starts, lengths = nodes.start_view[slots], nodes.length_view[slots]
        self.used, self.garbage = self.used - self.garbage, 0
        if len(starts) and self.used != int(starts[-1] + lengths[-1]):
            indices = run_indices(starts, lengths)
            self.keys_view[: self.used] = self.keys_view[indices]
            self.ids_view[: self.used] = self.ids_view[indices]
            nodes.start_view[slots] = np.cumsum(lengths) - lengths
        needed = self.used + room
        if 3 * needed > 2 * len(self.keys):
            self._resize(2 * needed)

    def shared(self, slot: int, key: Column, at: int) -> int:
        """How many of a node's pages the key has from index `at` on; the first is known to be the same."""
        start, count = self.nodes.start[slot], min(self.nodes.length[slot], len(key) - at)
        if count == 1 or self.keys[start : start + count] == key[at : at + count]:
            return count
        other = np.frombuffer(key, dtype=np.int64)[at : at + count]
        return int((self.keys_view[start : start + count] != other).argmax())
