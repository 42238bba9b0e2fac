"""Eviction steps as a structure of arrays, in policy order."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from poolproof_fast.nodes import Int64s

LEAF, TOMBSTONE, STATE = 0, 1, 2
"""Kinds of a step: the whole node; its SWA pages and its state; its state alone."""


Row = tuple[int, int, int, int, int, int]
"""One step: kind, node, pages freed (FULL, SWA, state), and of a leaf the slot of the node above, else -1."""


class Victims:
    """Steps to take, in order; read only. A few are kept as rows, and are arrays only once these are asked for."""

    __slots__ = ("_rows", "_table")

    def __init__(self, table: Int64s | None = None, rows: list[Row] | None = None) -> None:
        """Either may be left out: `table` has the six numbers of a step as a column for each step."""
        self._table, self._rows = table, rows

    @property
    def table(self) -> Int64s:
        """Rows: kind, node, full, swa, state, parent; a column for each step."""
        if self._table is None:
            self._table = np.array(self._rows, dtype=np.int64).reshape(-1, 6).T
        return self._table

    def rows(self) -> list[Row]:
        """The steps one by one."""
        if self._rows is None:
            self._rows = [tuple(column) for column in self.table.T.tolist()]
        return self._rows

    @staticmethod
    def concatenate(portions: Sequence["Victims"]) -> "Victims":
        """All steps of the portions, at least one portion, in order."""
        if len(portions) == 1:
            return portions[0]
        return Victims(np.concatenate([portion.table for portion in portions], axis=1))

    def __len__(self) -> int:
        return len(self._rows) if self._table is None else self._table.shape[1]  # type: ignore[arg-type]

    def select(self, chosen: slice | NDArray[np.bool_] | NDArray[np.integer]) -> "Victims":
        """Some of the steps."""
        return Victims(self.table[:, chosen])

    def freed(self) -> list[int]:
        """Pages (FULL, SWA, state) that all the steps free."""
        if self._table is None:
            rows = self.rows()
            return [*rows[0][2:5]] if len(rows) == 1 else [sum(row[role] for row in rows) for role in (2, 3, 4)]
        total: list[int] = self._table[2:5].sum(axis=1).tolist()
        return total

    @property
    def kind(self) -> Int64s:
        """LEAF, TOMBSTONE or STATE."""
        return self._row(0)

    @property
    def node(self) -> Int64s:
        """Slot of the node."""
        return self._row(1)

    @property
    def full(self) -> Int64s:
        """FULL pages that the step frees."""
        return self._row(2)

    @property
    def swa(self) -> Int64s:
        """SWA pages that the step frees."""
        return self._row(3)

    @property
    def state(self) -> Int64s:
        """States that the step frees, 0 or 1."""
        return self._row(4)

    @property
    def parent(self) -> Int64s:
        """Of a leaf, the slot of the node above (0, the root, included); else -1."""
        return self._row(5)

    def _row(self, index: int) -> Int64s:
        row: Int64s = self.table[index]
        return row
