"""Where the operations of a history take their pages: runs, one after the other, nothing freed in between.

Two ways for a float: as the reference (nearest to its own pages, on both sides), and as released engines (in the
middle of an empty band, else all on the roomier side). ENDs grow from their ends.
"""

from collections.abc import Sequence
from typing import NamedTuple

from poolproof_spec.arithmetic import Arithmetic, Quantity, Truth
from poolproof_spec.occupancy import Occupancy
from poolproof_spec.policies import Band
from poolproof_spec.smt.histories import HOLD, INSERT, STATES, Script, Shape
from poolproof_spec.sweep import sweep


class Run(NamedTuple):
    """Pages of one owner in one member: so many, all in [low, high)."""

    count: Quantity
    low: Quantity
    high: Quantity


class Placement:
    """Runs of pages, taken one operation after the other; nothing is freed in between."""

    def __init__(self, shape: Shape, script: Script, a: Arithmetic) -> None:
        self.shape, self.script, self.a = shape, script, a
        tokens = sum(size for size, (_, role, _) in zip(shape.page_bytes, shape.chain, strict=True) if role != "state")
        state = sum(size for size, (_, role, _) in zip(shape.page_bytes, shape.chain, strict=True) if role == "state")
        self.total_bytes = script.token_pages * tokens + script.states * state
        self.counts = [a.floor_div(self.total_bytes, size) for size in shape.page_bytes]
        self.live: list[Quantity] = [0 for _ in shape.chain]
        self.low: list[Quantity] = list(self.counts)
        self.high: list[Quantity] = [0 for _ in shape.chain]
        self.whole: list[tuple[Run, ...]] = []
        """Of each operation: all that it took, in each member."""
        self.head: list[tuple[Run, ...]] = []
        """Of an insert: the part before the last window."""
        self.tail: list[tuple[Run, ...]] = []
        self.conditions: list[Truth] = [self.total_bytes >= shape.least_bytes]
        self.conditions += [first < count for first, count in zip(shape.first_pages, self.counts, strict=True)]

    def bands(self) -> tuple[Band, ...]:
        """The members as a policy sees them."""
        return tuple(
            Band(role, kind, size, first, count, name in self.shape.anchored, low, high)
            for (name, role, kind), size, first, count, low, high in zip(
                self.shape.chain,
                self.shape.page_bytes,
                self.shape.first_pages,
                self.counts,
                self.low,
                self.high,
                strict=True,
            )
        )

    def take(self, index: int) -> None:
        """Give an operation its pages; record where they are."""
        a, kind, size = self.a, self.script.kinds[index], self.script.sizes[index]
        tokens = a.where(a.any_of(kind == INSERT, kind == HOLD), size, 0)
        states = a.where(kind == STATES, size, a.where(kind == INSERT, int(self.shape.caches_states), 0))
        new = [states if role == "state" else tokens for _, role, _ in self.shape.chain]
        tail = a.minimum(size, self.script.window) if self.shape.has("swa") else size
        heads = [0 if role == "state" else a.where(kind == INSERT, size - tail, 0) for _, role, _ in self.shape.chain]
        room = self._room(new)
        runs = [self._runs(i, new[i], heads[i], room) for i in range(len(new))]
        self.whole.append(tuple(run[0] for run in runs))
        self.head.append(tuple(run[1] for run in runs))
        self.tail.append(tuple(run[2] for run in runs))
        for i, (run, _, _) in enumerate(runs):
            some = run.count > 0
            self.low[i] = a.where(some, a.minimum(self.low[i], run.low), self.low[i])
            self.high[i] = a.where(some, a.maximum(self.high[i], run.high), self.high[i])
            self.live[i] = self.live[i] + run.count
        if self.shape.one_sided:
            self._ends_apart()

    def _room(self, new: Sequence[Quantity]) -> tuple[Quantity, Quantity]:
        """[start, end) in which a float takes its new pages; for the rest it only has to fit."""
        a, shape = self.a, self.shape
        if shape.one_sided:
            return self._between_frontiers(new)
        needs = [
            Occupancy(
                page_bytes=shape.page_bytes[i],
                first_page=shape.first_pages[i],
                page_count=self.counts[i],
                pinned_count=self.live[i],
                pinned_start=self.low[i],
                pinned_end=self.high[i],
                loose_count=new[i],
            )
            for i in range(len(new))
        ]
        found = sweep(needs, a)
        self.conditions.append(a.any_of(a.all_of(*(count == 0 for count in new)), found.fits))
        if len(new) < 3:
            return 0, 0
        above = a.floor_div(found.windows[2].start * shape.page_bytes[2], shape.page_bytes[1])
        return found.windows[1].start, a.minimum(self.counts[1], above)

    def _between_frontiers(self, new: Sequence[Quantity]) -> tuple[Quantity, Quantity]:
        """Between the states as they are and FULL with its new pages."""
        if len(new) < 3:
            return 0, 0
        a, sizes, firsts = self.a, self.shape.page_bytes, self.shape.first_pages
        below = (firsts[0] + self.live[0]) * sizes[0]
        above = (self.counts[2] - self.live[2] - new[2]) * sizes[2]
        start = a.maximum(firsts[1], a.ceil_div(below, sizes[1]))
        return start, a.minimum(self.counts[1], a.floor_div(above, sizes[1]))

    def _ends_apart(self) -> None:
        """What was taken lies in order: then an engine with these frontiers took it so, moving nothing."""
        sizes, firsts = self.shape.page_bytes, self.shape.first_pages
        base_high = (firsts[0] + self.live[0]) * sizes[0]
        full_low = self.counts[-1] - self.live[-1]
        self.conditions += [full_low >= firsts[-1], firsts[0] + self.live[0] <= self.counts[0]]
        self.conditions.append(base_high <= full_low * sizes[-1])
        if len(sizes) == 3:
            empty = self.live[1] == 0
            self.conditions.append(self.a.any_of(empty, base_high <= self.low[1] * sizes[1]))
            self.conditions.append(self.a.any_of(empty, self.high[1] * sizes[1] <= full_low * sizes[2]))

    def _runs(self, i: int, new: Quantity, head: Quantity, room: tuple[Quantity, Quantity]) -> tuple[Run, Run, Run]:
        """(all, head, tail) of `new` pages in member i, the first `head` of them the head's."""
        kind, first, tail = self.shape.chain[i][2], self.shape.first_pages[i], new - head
        if kind == "up":
            start = first + self.live[i]
            cut, end = start + head, start + new
            return Run(new, start, end), Run(head, start, cut), Run(tail, cut, end)
        if kind == "down":
            end = self.counts[i] - self.live[i]
            cut, start = end - head, end - new
            return Run(new, start, end), Run(head, cut, end), Run(tail, start, cut)
        return self._one_side(i, new, head, room) if self.shape.one_sided else self._nearest(i, new, head, room)

    def _one_side(self, i: int, new: Quantity, head: Quantity, room: tuple[Quantity, Quantity]) -> tuple[Run, Run, Run]:
        """In the middle of an empty band; else all on the roomier side that has the room, upwards."""
        a, (start, end) = self.a, room
        empty, above, below = self.live[i] == 0, end - self.high[i], self.low[i] - start
        upwards = a.any_of(a.all_of(above >= below, new <= above), a.negate(new <= below))
        beside = a.where(upwards, self.high[i], self.low[i] - new)
        at = a.where(empty, start + a.floor_div(end - start - new, 2), beside)
        fitting = a.where(empty, new <= end - start, a.any_of(new <= above, new <= below))
        self.conditions.append(a.any_of(new == 0, fitting))
        return Run(new, at, at + new), Run(head, at, at + head), Run(new - head, at + head, at + new)

    def _nearest(self, i: int, new: Quantity, head: Quantity, room: tuple[Quantity, Quantity]) -> tuple[Run, Run, Run]:
        """Nearest to the band's own pages on both sides, the lower of two; around the middle of an empty one's room."""
        whole, part = self._spread(i, new, room), self._spread(i, head, room)
        a = self.a
        tail_low = a.where(whole.low < part.low, whole.low, part.high)
        tail_high = a.where(whole.high > part.high, whole.high, part.low)
        return self._own(i, new, whole), self._own(i, head, part), Run(new - head, tail_low, tail_high)

    def _spread(self, i: int, new: Quantity, room: tuple[Quantity, Quantity]) -> Run:
        """The band's extent once the nearest `new` pages are its own."""
        a, (start, end) = self.a, room
        middle = a.floor_div(start + end, 2)
        centred = a.maximum(start, a.minimum(middle - a.floor_div(new, 2), end - new))
        below, above = self.low[i] - start, end - self.high[i]
        down = a.minimum(below, a.maximum(a.ceil_div(new, 2), new - above))
        empty = self.live[i] == 0
        low = a.where(empty, centred, self.low[i] - down)
        return Run(new, low, a.where(empty, centred + new, self.high[i] + new - down))

    def _own(self, i: int, new: Quantity, spread: Run) -> Run:
        """Of the band's extent, what the new pages alone span."""
        a, empty = self.a, self.live[i] == 0
        low = a.where(a.any_of(empty, spread.low < self.low[i]), spread.low, self.high[i])
        high = a.where(a.any_of(empty, spread.high > self.high[i]), spread.high, self.low[i])
        return Run(new, low, high)
