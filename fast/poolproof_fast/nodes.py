"""The nodes of the prefix tree as a structure of arrays: plain columns that grow by doubling.

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
    """Where its run in the page columns begins (see `PageRuns`)."""
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
