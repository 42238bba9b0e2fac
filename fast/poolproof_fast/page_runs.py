"""The pages of the prefix tree's nodes: two columns, a run of them for each node."""

from array import array

import numpy as np

from poolproof_fast.nodes import Column, Int32s, Int64s, Nodes, grown, run_indices


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
