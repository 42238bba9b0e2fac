"""A cursor over the legal eviction steps in the order of the default policy (`policy_order` of the specification).

Leaves come in the order of the recency log: an ancestor is never older than a descendant, and a node without FULL
locks has no locked descendant, so by the time that the log comes to a node, all below it have gone. Then what is
FULL-locked is stripped: tombstones, then states, each least recently used first, deeper first among equals.
"""

import numpy as np

from poolproof_fast.nodes import Int32s, Int64s, Nodes
from poolproof_fast.recency import Recency
from poolproof_fast.victims import LEAF, STATE, TOMBSTONE, Row, Victims

FEW = 4
"""Up to so many steps are taken one by one."""
SMALLEST_SCAN = 64
"""Entries of the log that are looked at together at least, once more than FEW steps are asked for."""
NONE: Int32s = np.empty(0, dtype=np.int32)


class Walk:
    """Reads only; good until the cache changes."""

    __slots__ = ("_cursor", "_locked", "_nodes", "_pending", "_recency", "_rest")

    def __init__(self, nodes: Nodes, recency: Recency, locked: dict[int, None]) -> None:
        self._nodes, self._recency, self._locked = nodes, recency, locked
        self._cursor = recency.first
        self._pending: Int32s = NONE
        """Leaves found and not yet given out."""
        self._rest: Victims | None = None
        """The steps after the leaves; None while leaves are given out."""

    def take(self, count: int) -> Victims:
        """Up to `count` next steps; fewer only at the end."""
        if self._rest is None:
            leaves = self._few_leaves(count) if count <= FEW else self._leaves(count)
            if len(leaves) == count:
                return leaves
            self._rest = self._stripping()
            return Victims.concatenate([leaves, self._next_rest(count - len(leaves))])
        return self._next_rest(count)

    def next_row(self) -> Row | None:
        """The next step; None at the end."""
        if self._rest is None and (node := self._next_leaf()):
            return self._leaf_row(node)
        rows = self.take(1).rows()
        return rows[0] if rows else None

    def _next_rest(self, count: int) -> Victims:
        assert self._rest is not None, "the leaves have been given out"
        taken, self._rest = self._rest.select(slice(0, count)), self._rest.select(slice(count, None))
        return taken

    def _few_leaves(self, count: int) -> Victims:
        rows: list[Row] = []
        while len(rows) < count and (node := self._next_leaf()):
            rows.append(self._leaf_row(node))
        return Victims(rows=rows)

    def _leaf_row(self, node: int) -> Row:
        nodes = self._nodes
        length = nodes.length[node]
        return LEAF, node, length, length * nodes.has_swa[node], int(nodes.state_id[node] > 0), nodes.parent[node]

    def _next_leaf(self) -> int:
        """The next node without FULL locks, 0 at the end."""
        if len(self._pending):
            node, self._pending = int(self._pending[0]), self._pending[1:]
            return node
        recency, cursor = self._recency, self._cursor
        if cursor == recency.first:
            cursor = recency.advance()
        if cursor < recency.used:
            node = recency.log[cursor]
            if self._nodes.position[node] == cursor and not self._nodes.full_locks[node]:
                self._cursor = cursor + 1
                if self._nodes.after[node]:
                    self._pending = np.array(list(recency.behind(node)), dtype=np.int32)
                return node
        self._cursor = cursor
        found = self._scan(1)
        self._pending = found[1:]
        return int(found[0]) if len(found) else 0

    def _leaves(self, count: int) -> Victims:
        found = self._pending if len(self._pending) >= count else self._scan(count)
        chosen, self._pending = found[:count], found[count:]
        nodes = self._nodes
        table: Int64s = np.empty((6, len(chosen)), dtype=np.int64)
        table[0] = LEAF
        table[1] = chosen
        table[2] = nodes.length_view[chosen]
        table[3] = table[2] * nodes.has_swa_view[chosen]
        table[4] = nodes.state_id_view[chosen] != 0
        table[5] = nodes.parent_view[chosen]
        return Victims(table)

    def _scan(self, count: int) -> Int32s:
        """The pending leaves and more, at least `count` in all where there are so many; scans grow while they fail."""
        recency = self._recency
        if self._cursor == recency.first:
            self._cursor = recency.advance()
        found, size, step = [self._pending], len(self._pending), max(count, SMALLEST_SCAN)
        while size < count and self._cursor < recency.used:
            end = min(recency.used, self._cursor + step)
            heads = recency.log_view[self._cursor : end][recency.unlocked(self._cursor, end)]
            portion = recency.with_hanging(heads)
            found.append(portion)
            size += len(portion)
            self._cursor, step = end, 2 * step
        return np.concatenate(found)

    def _stripping(self) -> Victims:
        """All tombstone and state steps; the cost depends on the number of FULL-locked nodes alone."""
        nodes, count = self._nodes, len(self._locked)
        locked = np.fromiter(self._locked, np.int32, count)
        locked = locked[np.lexsort((-nodes.depth_view[locked], nodes.position_view[locked]))]
        has_swa, has_state = nodes.has_swa_view[locked] != 0, nodes.state_id_view[locked] != 0
        state_goes = has_state & (nodes.state_locks_view[locked] == 0)
        stripped = has_swa & (nodes.swa_locks_view[locked] == 0) & (state_goes | ~has_state)
        steps = []
        for kind, chosen in ((TOMBSTONE, stripped), (STATE, state_goes & ~stripped)):
            table: Int64s = np.zeros((6, int(np.count_nonzero(chosen))), dtype=np.int64)
            table[0] = kind
            table[1] = locked[chosen]
            if kind == TOMBSTONE:
                table[3] = nodes.length_view[locked[chosen]]
            table[4] = has_state[chosen]
            table[5] = -1
            steps.append(Victims(table))
        return Victims.concatenate(steps)
