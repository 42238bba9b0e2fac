"""Format 1 of a trace: one history, what the model says of it, and what known targets do (docs/traces.md)."""

from typing import Final, Literal

import msgspec
from packaging.requirements import InvalidRequirement, Requirement

from poolproof_spec.geometry import Geometry
from poolproof_spec.operation import AnyOperation
from poolproof_spec.outcome import BlockerKind, Step

FORMAT: Final = 1
"""The version that is read and written here."""

Mode = Literal["eager", "lazy"]
TreeCore = Literal["rust", "python"]


class ExpectedOutcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an operation must come to. A field that is left out is not compared."""

    result: Literal["granted", "rejected", "done", "answer", "refused", "crashed", "unsupported"]
    """The kind of outcome."""
    reason: Literal["impossible", "blocked"] | None = None
    """Of a rejection; compared only with targets that give reasons."""
    by: tuple[BlockerKind, ...] | None = None
    """What a `blocked` rejection must name."""
    error: str | None = None
    """Class name of a refusal."""
    steps: tuple[Step, ...] | None = None
    """The eviction steps; in this order where the target tells the order."""
    evicted_pages: int | None = None
    """Cached FULL pages that are gone after the operation."""
    token_pages: int | None = None
    """What a query or capacity must answer."""


class TargetExpectation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a known target is known to depart from the model."""

    target: str
    """A target's name; of a release also a range: sglang==0.5.23, sglang>=0.5.22,<0.5.24."""
    tree_core: TreeCore | Literal["any"] = "any"
    mode: Mode | Literal["any"] = "any"
    outcomes: dict[int, ExpectedOutcome] = {}
    """By index of the operation, from 0; they replace the model's."""
    violates: tuple[str, ...] = ()
    """Names of the properties that the history shows violated, and no others."""

    def is_about(self, target: str, tree_core: str | None, mode: str | None) -> bool:
        """Whether this tells of that target, run in that way."""
        return (
            _matches(self.target, target)
            and (self.tree_core == "any" or tree_core in (None, self.tree_core))
            and (self.mode == "any" or mode in (None, self.mode))
        )


class Expected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a replay is compared with."""

    outcomes: dict[int, ExpectedOutcome] = {}
    """What the model says, by index of the operation, from 0; holds for every target that is not listed."""
    targets: tuple[TargetExpectation, ...] = ()

    def of(self, target: str, tree_core: str | None, mode: str | None) -> TargetExpectation:
        """What to expect of one target: the model's outcomes and no violation, unless it is listed."""
        for known in self.targets:
            if known.is_about(target, tree_core, mode):
                return msgspec.structs.replace(known, outcomes={**self.outcomes, **known.outcomes})
        return TargetExpectation(target=target, outcomes=self.outcomes)


class Trace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file: a history with all that is needed to replay and to understand it."""

    format: Literal[1]
    name: str
    """Short, unique among the traces that are kept together: V1-float-edge."""
    source: str = ""
    """Where it comes from: a public report, a run with its seed, a case of the specification."""
    note: str = ""
    """One line: what happens."""
    explanation: str = ""
    """Why, with the numbers."""
    mode: Mode | None = None
    """Compaction mode of an engine that has several; None where it makes no difference."""
    geometry: Geometry
    operations: tuple[AnyOperation, ...]
    expected: Expected = Expected()


def _matches(pattern: str, target: str) -> bool:
    """Whether a target's name is the pattern, or its release lies in the pattern's range."""
    if pattern == target:
        return True
    name, equal, version = target.partition("==")
    try:
        wanted = Requirement(pattern)
    except InvalidRequirement:
        return False
    return bool(equal) and wanted.name == name and wanted.specifier.contains(version, prereleases=True)
