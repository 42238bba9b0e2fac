"""What a campaign's file tells: cells, doubts, kinds and their totals, as typed rows."""

from typing import Literal

import msgspec

from poolproof_conformance.trace_format import Mode, TreeCore
from poolproof_spec.verdict import Verdict

RunState = Literal["complete", "partial"]


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One way to run one target on one layout."""

    target: str
    core: TreeCore | None
    """Tree core; None where the target has but one."""
    mode: Mode | None
    """Compaction mode; None where the target has but one."""
    layout: str

    @property
    def title(self) -> str:
        """In words, for a line of a report."""
        how = [part for part in (self.core and f"{self.core} core", self.mode, self.layout) if part]
        return f"{self.target} ({', '.join(how)})"


class CellTotals(msgspec.Struct, frozen=True, kw_only=True):
    """All jobs of one cell together."""

    cell: Cell
    jobs: int
    histories: int
    operations: int
    """Carried out and judged."""
    unbuilt: int
    """Histories with a geometry that the target cannot be built with; not among `histories`."""
    violating: dict[str, int]
    """Name of a violated rule: number of (history, signature) pairs that violate it."""
    witnessed: dict[str, int]
    """Name of a rule: number of steps that put a question to it; rules without one are not listed."""
    unchecked: tuple[str, ...]
    """Rules that cannot be judged, as the target itself declares."""
    doubts: dict[str, int]
    """Why histories ended without an answer: how many."""

    @property
    def verdict(self) -> Verdict:
        """A violation is certain; then doubt, and nothing executed is doubt; then it holds."""
        if self.violating:
            return "violated"
        return "unknown" if self.doubts or not self.operations else "holds"


class KindRow(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of failure in one cell: what was found first of it, shrunk."""

    cell: Cell
    property: str
    signature: str
    """Of the cause (signature.py); with `property` it tells kinds apart."""
    histories: int
    """How many histories of the cell show it."""
    operations: int
    """Length of the smallest history."""
    message: str
    """What the rule finds there."""
    trace: str
    """Text of the trace file: traces.parse_trace(row.trace.encode(), where)."""
    trace_file: str
    """Path of the file, relative to the campaign's folder of traces."""
