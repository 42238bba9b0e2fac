"""The list of failures that are known, each with its link: what is on it does not turn a CI red, what is new does."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from poolproof_conformance.errors import PoolproofError
from poolproof_conformance.reporting.rows import Gathered, Kind, Sighting, operations_of
from poolproof_conformance.trace_format import Mode, TargetExpectation, TreeCore
from poolproof_conformance.traces import read_bytes
from poolproof_spec.catalogue import property_named
from poolproof_spec.verdict import Verdict

LARGEST_FILE_BYTES = 1_000_000
"""Far more than anybody keeps by hand."""


class ExpectedFileError(PoolproofError):
    """A list of expected failures that cannot be read."""


class KnownFailure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of the list."""

    property: str
    """Name or code of the property."""
    signature: str = "*"
    """Signature of the kind; * and ? stand for any text and any letter."""
    target: str = "*"
    """A target's name, or a range of releases: sglang>=0.5.22,<0.5.24; * for every target."""
    tree_core: TreeCore | Literal["any"] = "any"
    mode: Mode | Literal["any"] = "any"
    layout: str = "*"
    link: str
    """Where it is tracked."""
    note: str = ""

    def covers(self, name: str, signature: str, sighting: Sighting) -> bool:
        """Whether a kind, as seen there, is this one."""
        return (
            property_named(self.property).name == name
            and _is_like(signature, self.signature)
            and self.was_looked_for(sighting)
        )

    def was_looked_for(self, sighting: Sighting) -> bool:
        """Whether it would have been seen there."""
        variant = sighting.variant
        target = variant.target if self.target == "*" else self.target
        about = TargetExpectation(target=target, tree_core=self.tree_core, mode=self.mode)
        here = about.is_about(variant.target, variant.tree_core, variant.mode)
        return here and self.layout in ("*", sighting.layout)


class ExpectedList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file."""

    format: Literal[1]
    known: tuple[KnownFailure, ...] = ()


class JudgedKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind held against the list."""

    kind: Kind
    known: KnownFailure | None
    """The entry that covers all its sightings; None for a new kind."""
    new_in: tuple[Sighting, ...]
    """Where no entry covers it."""

    @property
    def is_new(self) -> bool:
        """Whether it turns a CI red."""
        return bool(self.new_in)


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The whole run held against the list."""

    kinds: tuple[JudgedKind, ...]
    """New ones first, then by length."""
    fixed: tuple[KnownFailure, ...]
    """Entries that were looked for and not seen: to be taken off the list."""
    untested: tuple[KnownFailure, ...]
    """Entries of which this run says nothing."""
    doubts: tuple[tuple[str, str], ...]
    """(variant, reason) of what is unknown."""

    @property
    def new(self) -> list[JudgedKind]:
        """The kinds that are on no list."""
        return [judged for judged in self.kinds if judged.is_new]

    @property
    def verdict(self) -> Verdict:
        """What the exit code tells: a new kind, else doubt, else nothing new."""
        if self.new:
            return "violated"
        return "unknown" if self.doubts else "holds"


def read_expected(path: Path) -> ExpectedList:
    """The list in a YAML or JSON file. Raises ExpectedFileError or TraceFileError."""
    data = read_bytes(path)
    if len(data) > LARGEST_FILE_BYTES:
        raise ExpectedFileError(f"{path}: more than {LARGEST_FILE_BYTES:,} bytes", "check that this is the list")
    try:
        document: Any = msgspec.json.decode(data) if path.suffix == ".json" else msgspec.yaml.decode(data)
        expected = msgspec.convert(document, ExpectedList)
        for known in expected.known:
            property_named(known.property)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        found = f"{path}: no list of expected failures: {_line(error)}"
        raise ExpectedFileError(found, "docs/report.md shows one; a kind's entry is in the report itself") from None
    except KeyError as error:
        raise ExpectedFileError(f"{path}: {error.args[0]}", "name a property as docs/spec.md does") from None
    return expected


def judge(gathered: Gathered, expected: ExpectedList) -> Judgement:
    """Which kinds are new, which entries are fixed, and what is unknown."""
    judged = [_judged(kind, expected.known) for kind in gathered.kinds]
    seen = {known for known in expected.known if any(_covers_any(known, kind) for kind in gathered.kinds)}
    fixed: list[KnownFailure] = []
    untested: list[KnownFailure] = []
    for known in expected.known:
        if known not in seen:
            looked = gathered.complete and _looked_for(gathered, known)
            (fixed if looked else untested).append(known)
    doubts = [(variant.title, reason) for variant in gathered.variants for reason in gathered.doubts(variant)]
    if not gathered.cells:
        doubts.append(("nothing", "no target was run"))
    if not gathered.complete:
        doubts.append(("the run", "it was cut short, or failures wait to be made small: go on with the same command"))
    return Judgement(
        kinds=tuple(
            sorted(judged, key=lambda j: (not j.is_new, operations_of(j.kind), j.kind.property, j.kind.signature))
        ),
        fixed=tuple(fixed),
        untested=tuple(untested),
        doubts=tuple(doubts),
    )


def _judged(kind: Kind, known: Sequence[KnownFailure]) -> JudgedKind:
    covering = [next((k for k in known if k.covers(kind.property, kind.signature, s)), None) for s in kind.sightings]
    new_in = tuple(s for s, entry in zip(kind.sightings, covering, strict=True) if entry is None)
    return JudgedKind(kind=kind, known=next((entry for entry in covering if entry), None), new_in=new_in)


def _place(judged: JudgedKind) -> tuple[bool, int, str, str]:
    kind = judged.kind
    return not judged.is_new, operations_of(kind), kind.property, kind.signature


def _covers_any(known: KnownFailure, kind: Kind) -> bool:
    return any(known.covers(kind.property, kind.signature, sighting) for sighting in kind.sightings)


def _looked_for(gathered: Gathered, known: KnownFailure) -> bool:
    """Whether some cell ran, without doubt, in which the entry would have shown."""
    name = property_named(known.property).name
    return any(
        cell.operations
        and not cell.reason
        and cell.verdict != "unknown"
        and name not in cell.unchecked
        and (cell.exercised is None or name in cell.exercised)
        and (cell.signature is None or _is_like(cell.signature, known.signature))
        and known.was_looked_for(Sighting(variant=cell.variant, layout=cell.layout))
        for cell in gathered.cells
    )


def _is_like(text: str, pattern: str) -> bool:
    """Only * and ? are special: a signature may hold brackets of its own."""
    escaped = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(escaped, text, re.DOTALL) is not None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
