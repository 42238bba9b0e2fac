"""Eviction steps as a structure of arrays, in policy order."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from poolproof_fast.nodes import Int64s

LEAF, TOMBSTONE, STATE = 0, 1, 2
"""Kinds of a step: the whole node; its SWA pages and its state; its state alone."""


class Victims:
    """Steps to take, in order. The columns are views of one table; read only."""

    __slots__ = ("table",)

    def __init__(self, table: Int64s) -> None:
        self.table = table
        """Rows: kind, node, full, swa, state, parent; a column for each step."""

    @staticmethod
    def of_values(values: Sequence[int]) -> "Victims":
        """A few steps: the kind, node, full, swa, state and parent of one after the other."""
        return Victims(np.array(values, dtype=np.int64).reshape(-1, 6).T)

    @staticmethod
    def concatenate(portions: Sequence["Victims"]) -> "Victims":
        """All steps of the portions, at least one portion, in order."""
        if len(portions) == 1:
            return portions[0]
        return Victims(np.concatenate([portion.table for portion in portions], axis=1))

    def __len__(self) -> int:
        return int(self.table.shape[1])

    def select(self, chosen: slice | NDArray[np.bool_] | NDArray[np.integer]) -> "Victims":
        """Some of the steps."""
        return Victims(self.table[:, chosen])

    def freed(self) -> list[int]:
        """Pages (FULL, SWA, state) that all the steps free."""
        columns = self.table[2:5]
        total: list[int] = (columns[:, 0] if columns.shape[1] == 1 else columns.sum(axis=1)).tolist()
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
