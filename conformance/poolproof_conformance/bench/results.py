"""What `poolproof bench --json` writes, and what the page, the plots and the table are made from."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from poolproof_conformance.errors import PoolproofError

Verdict = bool | None
"""Whether a bar is met; None where it was not measured."""


class ResultsFileError(PoolproofError):
    """A file of results that cannot be read."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One cell: a subject at one work of one size."""

    work: str
    size: int
    subject: str
    median_us: float | None
    """Microseconds of CPU time an operation; for the work `memory` bytes an entry. None where there is no figure."""
    min_us: float | None
    max_us: float | None
    runs: int
    ratio_to_fast: float | None
    """Its median by the median of `fast` in the same run of the benchmark."""
    cannot: str | None = None
    """The subject has no such work, and why."""
    unknown: str | None = None
    """It failed, or was not there, and why."""


class BarRow(msgspec.Struct, frozen=True, kw_only=True):
    """One bar that `fast` has to reach."""

    work: str
    bar: str
    measured: float | None
    """In the unit of the bar: a ratio, or bytes."""
    met: Verdict


class GpuFigure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of bench/gpu.py."""

    work: str
    size: str
    value: float | None
    """None where there is no GPU."""
    unit: str
    bound: float | None = None
    """What it is held against, in the same unit: a plain copy in the same run, or the number allowed."""
    ratio: float | None = None
    """value / bound, where the bound is a rate."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the benchmark."""

    machine: dict[str, str]
    versions: dict[str, dict[str, str]]
    """What really ran, for each subject; and `libraries`."""
    gate: str
    """The conformance run that `fast` passed before anything was timed."""
    rows: tuple[Row, ...]
    bars: tuple[BarRow, ...]
    gpu: tuple[GpuFigure, ...] = ()
    """What bench/gpu.py measured; empty without --gpu."""

    def row(self, work: str, size: int, subject: str) -> Row | None:
        """That cell, if it is there."""
        return next((r for r in self.rows if (r.work, r.size, r.subject) == (work, size, subject)), None)

    def subjects(self) -> list[str]:
        """All subjects, in the order of the rows."""
        return list(dict.fromkeys(row.subject for row in self.rows))

    def cells(self) -> list[tuple[str, int]]:
        """All (work, size), in the order of the rows."""
        return list(dict.fromkeys((row.work, row.size) for row in self.rows))


def with_ratios(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows, each with its ratio to `fast` at the same work and size."""
    own = {(row.work, row.size): row.median_us for row in rows if row.subject == "fast"}

    def ratio(row: Row) -> float | None:
        fast = own.get((row.work, row.size))
        return row.median_us / fast if row.median_us is not None and fast else None

    return tuple(msgspec.structs.replace(row, ratio_to_fast=ratio(row)) for row in rows)


def read_results(path: Path) -> Results:
    """Results that were written before. Raises ResultsFileError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Results)
    except (OSError, msgspec.MsgspecError) as error:
        raise ResultsFileError(f"{path}: no results of a benchmark: {error}", "poolproof bench --json FILE") from None


def to_json(results: Results) -> str:
    """The file's text."""
    return msgspec.json.format(msgspec.json.encode(results), indent=2).decode() + "\n"
