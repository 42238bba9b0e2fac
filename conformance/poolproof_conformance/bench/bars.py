"""The bars that `fast` has to reach, each a ratio of medians of one run; one table, which the page repeats."""

from collections.abc import Sequence
from dataclasses import dataclass

from poolproof_conformance.bench.results import BarRow, Row

Cell = tuple[str, int]
SGLANG, VLLM = "sglang==0.5.23", "vllm==0.33.0"
ALLOC_1, ALLOC_4096, ROOM = ("alloc-free", 1), ("alloc-free", 4096), ("reserve-room", 100_000)
EVICT_1, EVICT_1000 = ("evict-1", 100_000), ("evict-1000", 100_000)
REFUSE, FLOAT, MEMORY = ("refuse", 100_000), ("float-move", 100_000), ("memory", 100_000)


@dataclass(frozen=True)
class Bar:
    """`measured` is one median by another, or a median where `by` is None."""

    text: str
    """What is asked for; the measured ratio is in its unit."""
    cell: Cell
    subject: str
    by: tuple[Cell, str] | None
    least: float | None = None
    """It must be at least this."""
    most: float | None = None
    """It must be at most this."""

    def measured(self, medians: dict[tuple[str, int, str], float]) -> float | None:
        """The figure; None where a median is missing."""
        over = medians.get((*self.cell, self.subject))
        if over is None or self.by is None:
            return over
        under = medians.get((*self.by[0], self.by[1]))
        return over / under if under else None

    def met(self, measured: float | None) -> bool | None:
        """Whether it is reached; None where it was not measured."""
        if measured is None:
            return None
        return (self.least is None or measured >= self.least) and (self.most is None or measured <= self.most)


def _faster(cell: Cell, engine: str, factor: float) -> Bar:
    words = f"no slower than {engine}" if factor == 1 else f"{factor:g}x faster than {engine}"
    return Bar(words, cell, engine, (cell, "fast"), least=factor)


def _own(text: str, cell: Cell, other: Cell, most: float) -> Bar:
    return Bar(text, cell, "fast", (other, "fast"), most=most)


BARS: tuple[Bar, ...] = (
    _faster(ALLOC_1, SGLANG, 5),
    _faster(ALLOC_1, VLLM, 1),
    _faster(ALLOC_4096, SGLANG, 2),
    _faster(ALLOC_4096, VLLM, 20),
    _faster(ROOM, SGLANG, 5),
    _faster(EVICT_1, SGLANG, 50),
    _faster(EVICT_1, VLLM, 1),
    _faster(EVICT_1000, SGLANG, 100),
    _faster(EVICT_1000, VLLM, 2),
    _own("at 1M entries at most 1.5 times its time at 10k", ("evict-1", 1_000_000), ("evict-1", 10_000), 1.5),
    _own("at 1M entries at most 1.5 times its time at 10k", ("evict-1000", 1_000_000), ("evict-1000", 10_000), 1.5),
    _faster(FLOAT, SGLANG, 50),
    _own("for 10 times the pages at most 15 times the time", FLOAT, ("float-move", 10_000), 15),
    _own("at most 1/10 of its own reservation of 1 page that is there", REFUSE, ROOM, 0.1),
    Bar("under 500 bytes", MEMORY, "fast", None, most=500),
)
"""All bars. A variant of a subject (eager, nothing cached, tables apart) is measured and shown, no bar is about it."""


def judged(rows: Sequence[Row]) -> tuple[BarRow, ...]:
    """Every bar with what was measured."""
    medians = {(row.work, row.size, row.subject): row.median_us for row in rows if row.median_us is not None}
    judged_bars = []
    for bar in BARS:
        measured = bar.measured(medians)
        work = f"{bar.cell[0]} {bar.cell[1]}"
        judged_bars.append(BarRow(work=work, bar=bar.text, measured=measured, met=bar.met(measured)))
    return tuple(judged_bars)
