"""What a report is about: which targets were run, which kinds of failure each showed, and a history for each kind."""

from collections.abc import Iterable

import msgspec

from poolproof_conformance.trace_format import Mode, Trace, TreeCore
from poolproof_spec.catalogue import PROPERTIES
from poolproof_spec.verdict import Verdict, worst

TARGET_ANSWERS = "target-answers"
"""The check that every run has beside the rules: a target that gives no usable answer is unknown."""


class Variant(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A target and how it is run: one column of the matrix."""

    target: str
    tree_core: TreeCore | None = None
    mode: Mode | None = None

    @property
    def title(self) -> str:
        """sglang==0.5.23 (rust core, eager)."""
        how = self.how
        return f"{self.target} ({how})" if how else self.target

    @property
    def how(self) -> str:
        """Tree core and mode in words; empty where there is but one."""
        return ", ".join(part for part in (self.tree_core and f"{self.tree_core} core", self.mode) if part)


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """What was run of one variant in one layout."""

    variant: Variant
    layout: str
    histories: int
    operations: int
    """Operations that were carried out and judged."""
    verdict: Verdict
    reason: str = ""
    """Why the verdict is unknown, or what else went wrong beside a violation."""
    unchecked: tuple[str, ...] = ()
    """Names of properties that cannot be judged of this target, by what it declares."""
    exercised: tuple[str, ...] | None = None
    """Names of properties to which some step put a question; None where that was not counted."""
    signature: str | None = None
    """Of a single trace: the signature that a failure in it has. None where many histories were run."""


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """Where a kind was seen."""

    variant: Variant
    layout: str
    histories: int = 1
    """How many histories showed it."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of failure: a property, and a signature of the cause."""

    property: str
    """Name of the violated property."""
    signature: str
    message: str
    """What the rule found in the smallest history."""
    trace: Trace
    """The smallest history."""
    trace_file: str
    """Where it lies as a file; empty where it lies in a database only."""
    sightings: tuple[Sighting, ...]
    found_on: Variant | None = None
    """Whose history the smallest is; None where that is the last sighting's."""


class Gathered(msgspec.Struct, frozen=True, kw_only=True):
    """All that a report is made from."""

    sources: tuple[str, ...]
    """Files that it was read from."""
    cells: tuple[Cell, ...]
    kinds: tuple[Kind, ...]
    complete: bool = True
    """False where the run was cut short: what it did not see may still be there."""

    @property
    def variants(self) -> list[Variant]:
        """The columns, in the order in which they come."""
        return list(dict.fromkeys(cell.variant for cell in self.cells))

    def cells_of(self, variant: Variant) -> list[Cell]:
        """What was run of a variant, by layout."""
        return [cell for cell in self.cells if cell.variant == variant]

    def property_verdict(self, variant: Variant, name: str) -> Verdict | None:
        """Of one property on one variant; None where it was not judged: see `unjudged`."""
        if any(kind.property == name and any(s.variant == variant for s in kind.sightings) for kind in self.kinds):
            return "violated"
        if self.unjudged(variant, name):
            return None
        return worst(_without_violation(cell) for cell in self.cells_of(variant))

    def unjudged(self, variant: Variant, name: str) -> str:
        """Why a property says nothing of a variant, though it was run; empty where it says something."""
        cells = self.cells_of(variant)
        judged = [cell for cell in cells if name not in cell.unchecked]
        if cells and not judged:
            return "not judged: the target declares that it does otherwise by design"
        if cells and all(cell.exercised is not None and name not in cell.exercised for cell in judged):
            return "not exercised: no step put a question to it"
        return ""

    def doubts(self, variant: Variant) -> list[str]:
        """Why something of this variant is unknown, each reason once."""
        return list(dict.fromkeys(_doubt(cell) for cell in self.cells_of(variant) if _doubt(cell)))


def operations_of(kind: Kind) -> int:
    """Length of the smallest history."""
    return len(kind.trace.operations)


def property_names(kinds: Iterable[Kind]) -> list[str]:
    """The catalogue's rules in its order, then whatever else the kinds name."""
    known = [rule.name for rule in PROPERTIES]
    return [*known, *sorted({kind.property for kind in kinds} - set(known))]


def _without_violation(cell: Cell) -> Verdict:
    """The verdict on a rule of which no violation was seen: doubt about the cell is doubt about each rule."""
    return "unknown" if _doubt(cell) else "holds"


def _doubt(cell: Cell) -> str:
    if cell.reason:
        return cell.reason
    if not cell.operations:
        return "no operation was executed"
    return "no verdict" if cell.verdict == "unknown" else ""
