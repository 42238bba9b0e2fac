"""Small tables over sets of pages and of positions, as bits: made once for a model, looked up lane by lane."""

from __future__ import annotations

from collections.abc import Callable

from poolproof_conformance.explorer.packed.fields import Band, Model
from poolproof_conformance.explorer.packed.lanes import Column, NumPyBackend


class PageTables:
    """Of one member. A set of pages has the bit of each page's place among the usable ones; a code is place + 1."""

    def __init__(self, band: Band, backend: NumPyBackend) -> None:
        width, first = band.width, int(band.member.first_page)
        sets = range(1 << width)
        places = [[place for place in range(width) if pages >> place & 1] for pages in sets]
        self.width = width
        beyond = (1 << width.bit_length()) - 1 - width
        self.bit = backend.small([0, *(1 << place for place in range(width)), *[0] * beyond])
        """Code to the set of that page; empty for a code that no page has."""
        self.count = backend.small([len(found) for found in places])
        self.start = backend.small([found[0] + first if found else 0 for found in places])
        """Lowest page, as the sweep counts pages."""
        self.end = backend.small([found[-1] + 1 + first if found else 0 for found in places])
        """One past the highest."""
        self.lowest = backend.small([found[0] + 1 if found else 0 for found in places])
        """Code of the lowest page."""
        self.highest = backend.small([found[-1] + 1 if found else 0 for found in places])
        self.below = backend.small([(1 << place) - 1 for place in range(width + 1)])
        """Place to the set of all pages below it."""
        self.ranked = backend.small([found[r] + 1 if r < len(found) else 0 for found in places for r in range(width)])
        """(set, number) to the code of the page of that number in it, lowest first, at set * width + number."""


class PositionTables:
    """Of the prefix trie. A set of positions has bit p for position p."""

    def __init__(self, model: Model, backend: NumPyBackend) -> None:
        count = len(model.positions)
        self.sets = 1 << count
        ancestors = [self._up(model, p) for p in range(count)]
        self.above = backend.small([0, *(sum(1 << q for q in line) for line in ancestors)])
        """A lock's field to the positions that it locks: 0 for none, else one more than its position."""
        window = model.window_pages
        self.window = backend.small(
            [0, *(sum(1 << q for q in ancestors[p] if model.depth[q] > model.depth[p] - window) for p in range(count))]
        )
        """The same for SWA pages."""
        self.at = backend.small([0, *(1 << p for p in range(count))])
        """The same for states."""
        self.parents = self._over(backend, lambda cached: {model.parent[p] for p in cached} - {-1})
        """A set of cached positions to those with something cached below them."""
        self.node = backend.small([self._node(model, ends, p) for ends in range(self.sets) for p in range(count)])
        """(ends, position of an end) to the positions of its node, at ends * positions + position."""
        self.nodes = backend.small([self._nodes(model, e, kept) for e in range(self.sets) for kept in range(self.sets)])
        """(ends, some of them) to the positions of their nodes, at ends * sets + some."""
        ranks = count + 2
        self.ranks = ranks
        self.rank_bit = backend.small([0, *(1 << r for r in range(ranks))])
        self.rank = backend.small(
            [((used & ((1 << r) - 1)).bit_count() if r else 0) for used in range(1 << ranks) for r in range(ranks)]
        )
        """(set of ranks in use, a rank) to the rank without gaps, at set * ranks + rank."""

    def _over(self, backend: NumPyBackend, some: Callable[[list[int]], set[int]]) -> Column:
        count = self.sets.bit_length() - 1
        members = ([p for p in range(count) if pages >> p & 1] for pages in range(self.sets))
        return backend.small([sum(1 << p for p in some(found)) for found in members])

    @staticmethod
    def _up(model: Model, position: int) -> list[int]:
        line = []
        while position >= 0:
            line.append(position)
            position = model.parent[position]
        return line

    @classmethod
    def _node(cls, model: Model, ends: int, position: int) -> int:
        found = 1 << position
        for above in cls._up(model, position)[1:]:
            if ends >> above & 1:
                break
            found |= 1 << above
        return found

    @classmethod
    def _nodes(cls, model: Model, ends: int, kept: int) -> int:
        found = 0
        for position in range(len(model.positions)):
            if kept >> position & 1:
                found |= cls._node(model, ends, position)
        return found
