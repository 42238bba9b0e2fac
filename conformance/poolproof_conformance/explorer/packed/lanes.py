"""States side by side, one lane each: their fields as columns, unpacked when asked for, packed by what has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from poolproof_conformance.explorer.packed.fields import Field, Model
from poolproof_spec.arithmetic import Arithmetic
from poolproof_spec.lanes import LANES

Column = Any
"""An array of 16-bit integers, or of bools, one for each lane; on whatever device the backend has."""


class NumPyBackend:
    """Arrays of NumPy. A state in two words is a complex number, whose order is that of the pairs."""

    carrier: Arithmetic = LANES
    most_words = 2
    spills = True
    """Whether what was seen can lie on disk and be looked up there."""

    def small(self, values: Any) -> Column:
        """A table, or a column made of Python ints."""
        return np.asarray(values, dtype=np.int16)

    def look_up(self, table: Column, index: Column) -> Column:
        """table[index], lane by lane; an int for an int."""
        return int(table[index]) if isinstance(index, int) else table.take(index)

    def rows(self, column: Column, rows: Column) -> Column:
        """Some lanes of a column."""
        return column.take(rows)

    def where(self, condition: Column, then: Any, otherwise: Any) -> Column:
        """Lane by lane; what is 16 bits wide stays so."""
        return np.where(condition, then, otherwise)

    def which(self, mask: Column) -> Column:
        """Rows of the lanes in which the mask holds."""
        return np.flatnonzero(mask)

    def full(self, count: int, value: int) -> Column:
        """The same in every lane."""
        return np.full(count, value, dtype=np.int16)

    def yes(self, count: int, value: bool) -> Column:
        """The same truth in every lane."""
        return np.full(count, value, dtype=bool)

    def bits(self, word: Column, field: Field) -> Column:
        """A field of packed words."""
        return ((word >> field.shift) & ((1 << field.bits) - 1)).astype(np.int16)

    def as_small(self, mask: Column) -> Column:
        """Bools as 0 and 1."""
        return mask.astype(np.int16)

    def difference(self, new: Column, old: Column, shift: int) -> Column:
        """What a changed field adds to its word."""
        return (new - old).astype(np.int64) << shift

    def split(self, states: Column, words: int) -> list[Column]:
        """The words of stored states."""
        return [states] if words == 1 else [states.real.astype(np.int64), states.imag.astype(np.int64)]

    def join(self, words: list[Column]) -> Column:
        """Stored states from their words."""
        return words[0] if len(words) == 1 else words[0] + 1j * words[1]

    def least(self, one: Column, other: Column) -> Column:
        """Lane by lane the lesser of two stored states."""
        return np.where(other < one, other, one) if one.dtype == np.complex128 else np.minimum(one, other)

    def concat(self, parts: list[Column]) -> Column:
        """One after the other."""
        return np.concatenate(parts)

    def unique(self, states: Column) -> Column:
        """Sorted, each once."""
        states = np.sort(states)
        return states[np.concatenate(([True], states[1:] != states[:-1]))] if len(states) else states

    def merged(self, one: Column, other: Column) -> Column:
        """Two sorted arrays as one."""
        return np.sort(np.concatenate((one, other)), kind="stable")

    def absent(self, states: Column, sorted_states: Column) -> Column:
        """Which of the states are not among the sorted ones."""
        if not len(sorted_states):
            return np.ones(len(states), dtype=bool)
        at = np.minimum(np.searchsorted(sorted_states, states), len(sorted_states) - 1)
        return np.asarray(sorted_states[at] != states)

    def to_numpy(self, states: Column) -> Any:
        """For files and for words about a state."""
        return states

    def from_numpy(self, states: Any) -> Column:
        """Back from a file."""
        return states

    def zero_word(self) -> Column:
        """One word of zeros."""
        return np.zeros(1, dtype=np.int64)

    def any(self, mask: Column) -> bool:
        """Whether it holds in some lane."""
        return bool(mask.any())


class Chunk:
    """The lanes of a part of a frontier, as they are stored."""

    def __init__(self, model: Model, backend: NumPyBackend, states: Column, derive: dict[str, Derive]) -> None:
        self.model, self.backend, self.derive = model, backend, derive
        self.states, self.words = states, backend.split(states, model.words)
        self.columns: dict[str, Column] = {}

    def column(self, name: str) -> Column:
        """A field of each state."""
        if name not in self.columns:
            field = self.model.fields[name]
            self.columns[name] = self.backend.bits(self.words[field.word], field)
        return self.columns[name]


Derive = Any
"""A function of lanes that computes a column which is no field."""


class Lanes:
    """Some lanes of a chunk, with fields changed; `drop` what is derived from them when they change."""

    def __init__(self, chunk: Chunk, rows: Column | None = None, above: Lanes | None = None) -> None:
        self.chunk, self.backend, self.model = chunk, chunk.backend, chunk.model
        self._rows, self._above, self._within = rows, above, rows
        if above is not None and above._rows is not None and rows is not None:
            self._rows = self.backend.rows(above._rows, rows)
        self._columns: dict[str, Column] = {}
        self._changed: set[str] = set() if above is None else set(above._changed)
        self._stale: set[str] = set() if above is None else set(above._stale)

    def __len__(self) -> int:
        return len(self.chunk.states) if self._rows is None else len(self._rows)

    def __getitem__(self, name: str) -> Column:
        if name not in self._columns:
            self._columns[name] = self._computed(name)
        return self._columns[name]

    def __setitem__(self, name: str, column: Column) -> None:
        self._columns[name] = column
        if name in self.model.fields:
            self._changed.add(name)
        self._stale.discard(name)

    def __contains__(self, name: str) -> bool:
        return name in self.model.fields

    def _computed(self, name: str) -> Column:
        if name in self._stale:
            self._stale.discard(name)
            return self.chunk.derive[name](self)
        if self._above is not None:
            column = self._above[name]
            return column if self._within is None else self.backend.rows(column, self._within)
        if name in self.model.fields:
            column = self.chunk.column(name)
            return column if self._rows is None else self.backend.rows(column, self._rows)
        return self.chunk.derive[name](self)

    def some(self, rows: Column) -> Lanes:
        """Some of these lanes, to be changed by themselves."""
        return Lanes(self.chunk, rows, self)

    def chunk_rows(self, rows: Column) -> Column:
        """Where these lanes are in the chunk."""
        return rows if self._rows is None else self.backend.rows(self._rows, rows)

    def drop(self, *names: str) -> None:
        """These derived columns are to be computed anew."""
        for name in names:
            self._columns.pop(name, None)
            self._stale.add(name)

    def of_chunk(self, name: str) -> Column:
        """A field as it was in the chunk."""
        column = self.chunk.column(name)
        return column if self._rows is None else self.backend.rows(column, self._rows)

    def packed(self) -> Column:
        """The lanes as stored states."""
        words = [w if self._rows is None else self.backend.rows(w, self._rows) for w in self.chunk.words]
        for name in self._changed:
            field = self.model.fields[name]
            words[field.word] = words[field.word] + self.backend.difference(
                self[name], self.of_chunk(name), field.shift
            )
        return self.backend.join(words)

    def changed_states(self) -> Column:
        """The stored states, less those that are as they were."""
        states = self.packed()
        old = self.chunk.states if self._rows is None else self.backend.rows(self.chunk.states, self._rows)
        return self.backend.rows(states, self.backend.which(states != old))

    def number(self, value: int) -> Column:
        """The same number in every lane."""
        return self.backend.full(len(self), value)


def either(backend: NumPyBackend, masks: Iterable[Column], none: Callable[[], Column]) -> Column:
    """The union of sets of bits; `none` where there is nothing to unite."""
    found: Column | None = None
    for mask in masks:
        found = mask if found is None else found | mask
    return none() if found is None else found
