"""Recency as an append-only log of nodes: the order of the log is the order in which the policy evicts leaves."""

from array import array
from collections.abc import Iterator, Sequence

import numpy as np

from poolproof_fast.nodes import SCALAR_BELOW, Column, Int32s, Nodes, grown


class Recency:
    """Who was used when: an entry of the log is valid iff its node's `position` is its index.

    A touch appends a path deepest node first, so the log is sorted by (last use, deeper first), as the policy wants
    it. No node is ever older than one below it, so a node comes after all that are below it.

    The upper part that a split cuts off is as recent as the lower and comes right behind it: it hangs behind it
    (`after`) and has the same position, until a touch gives it a slot of its own. What hangs behind a node is above
    it, so it outlives it, and a touch of the node touches it too: links that a touch made stale are known by their
    unequal positions. It has the same FULL locks too: whoever locks it alone touches it.

    A full log is rewritten without its invalid entries, and made larger where less than half would be free then, so
    that rewriting is O(1) a touch in the long run.
    """

    def __init__(self, nodes: Nodes, capacity: int) -> None:
        self.nodes = nodes
        self.clock = 0
        """Tick of the last touch."""
        self.used = 0
        """Entries in the log."""
        self.first = 0
        """Before it, no entry is both valid and of a node without FULL locks."""
        self.chain_count = 0
        """Nodes with something in `after`, stale links included."""
        self._replace(grown(array("i"), max(1, capacity)))

    def _replace(self, log: Column) -> None:
        self.log = log
        self.log_view: Int32s = np.frombuffer(log, dtype=np.int32)

    def touch(self, path: Sequence[int]) -> None:
        """Make the nodes, root side first, the most recently used; every node above one of them is among them."""
        self.clock += 1
        count = len(path)
        if self.used + count > len(self.log):
            self.rewrite(count)
        if count >= SCALAR_BELOW:
            self._touch_many(np.fromiter(path, np.int32, count)[::-1])
            return
        log, index, clock = self.log, self.used, self.clock
        position, last_use, after = self.nodes.position, self.nodes.last_use, self.nodes.after
        for node in reversed(path):
            log[index] = node
            position[node] = index
            last_use[node] = clock
            if after[node]:
                after[node] = 0
                self.chain_count -= 1
            index += 1
        self.used = index

    def _touch_many(self, path: Int32s) -> None:
        nodes, end = self.nodes, self.used + len(path)
        self.log_view[self.used : end] = path
        nodes.position_view[path] = np.arange(self.used, end, dtype=np.int32)
        nodes.last_use_view[path] = self.clock
        if self.chain_count:
            self.chain_count -= int(np.count_nonzero(nodes.after_view[path]))
            nodes.after_view[path] = 0
        self.used = end

    def hang(self, upper: int, lower: int) -> None:
        """A split cut `upper` off the top of `lower`: as recent, right behind it."""
        nodes = self.nodes
        nodes.position[upper], nodes.last_use[upper] = nodes.position[lower], nodes.last_use[lower]
        nodes.after[upper], nodes.after[lower] = nodes.after[lower], upper
        self.chain_count += 1

    def behind(self, node: int) -> Iterator[int]:
        """What hangs behind a node, in order."""
        position, after = self.nodes.position, self.nodes.after
        place, link = position[node], after[node]
        while link and position[link] == place:
            yield link
            link = after[link]

    def with_hanging(self, nodes: Int32s) -> Int32s:
        """The nodes, each with what hangs behind it."""
        if not self.chain_count:
            return nodes
        places: list[int] = []
        hanging: list[int] = []
        for index in np.flatnonzero(self.nodes.after_view[nodes]).tolist():
            found = list(self.behind(int(nodes[index])))
            hanging += found
            places += [index + 1] * len(found)
        return np.insert(nodes, places, hanging) if hanging else nodes

    def remove(self, node: int) -> None:
        """Take a node out; nothing below it is left, so it has the slot of the log, and hands it to what hangs on."""
        nodes = self.nodes
        link = nodes.after[node]
        if link:
            nodes.after[node] = 0
            self.chain_count -= 1
            self.log[nodes.position[node]] = link  # an invalid entry where the link was stale
        nodes.position[node] = -1

    def remove_all(self, nodes: Int32s) -> None:
        """Take nodes out, in policy order."""
        if self.chain_count:
            for node in nodes[self.nodes.after_view[nodes] != 0].tolist():
                self.remove(node)
        self.nodes.position_view[nodes] = -1

    def lower(self, node: int) -> None:
        """The node has no FULL locks any more."""
        self.first = min(self.first, self.nodes.position[node])

    def advance(self) -> int:
        """Move `first` on to the least recently used node without FULL locks, or to the end; its index."""
        log, position, full_locks = self.log, self.nodes.position, self.nodes.full_locks
        index = self.first
        for index in range(self.first, min(self.used, self.first + SCALAR_BELOW)):
            node = log[index]
            if position[node] == index and not full_locks[node]:
                self.first = index
                return index
        self.first, step = min(self.used, self.first + SCALAR_BELOW), SCALAR_BELOW
        while self.first < self.used:
            step *= 2
            found = np.flatnonzero(self.unlocked(self.first, min(self.used, self.first + step)))
            if len(found):
                self.first += int(found[0])
                return self.first
            self.first = min(self.used, self.first + step)
        return self.first

    def unlocked(self, begin: int, end: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which entries of log[begin:end] are valid and of nodes without FULL locks."""
        entries = self.log_view[begin:end]
        valid = self.nodes.position_view[entries] == np.arange(begin, end, dtype=np.int32)
        result: np.ndarray[tuple[int], np.dtype[np.bool_]] = valid & (self.nodes.full_locks_view[entries] == 0)
        return result

    def rewrite(self, room: int) -> None:
        """Drop the invalid entries, give what hangs slots of its own, and leave at least `room` free."""
        nodes, entries = self.nodes, self.log_view[: self.used]
        valid = nodes.position_view[entries] == np.arange(self.used, dtype=np.int32)
        order = self.with_hanging(entries[valid])
        count = len(order)
        if 2 * (count + room) > len(self.log):
            self._replace(grown(array("i"), 2 * (count + room)))
        self.log_view[:count] = order
        nodes.position_view[order] = np.arange(count, dtype=np.int32)
        nodes.after_view[order] = 0
        self.used, self.first, self.chain_count = count, 0, 0
