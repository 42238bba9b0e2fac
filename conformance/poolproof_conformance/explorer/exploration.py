"""What came of an exploration: counts, verdict, violations; also the JSON that `poolproof explore` writes."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from poolproof_spec.operation import AnyOperation
from poolproof_spec.verdict import Verdict

Engine = Literal["reference", "packed"]


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """A violated rule with the shortest history that shows it."""

    property: str
    message: str
    """What the rule finds at the last operation."""
    operations: int
    """Length of the history."""
    trace_file: str = ""
    """Where it is written; empty where it is not."""


class Exploration(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration explored with one policy."""

    config: str
    policy: str
    engine: Engine
    distinct: int
    """States, the empty pool among them."""
    transitions: int
    """Operations carried out, those that lead nowhere new among them."""
    depth: int
    """Operations from the empty pool to the farthest state."""
    seconds: float
    transitions_per_s: float
    symmetry: bool
    """Whether states that differ in names alone count as one."""
    verdict: Verdict
    reason: str = ""
    """Why the verdict is unknown, or what else was not seen."""
    violations: tuple[Violation, ...] = ()
    witnesses_reached: tuple[str, ...] = ()
    """Rules to which some transition put a question."""
    witnesses_unreached: tuple[str, ...] = ()
    """The others: of them the run says nothing."""
    checked: tuple[str, ...] = ()
    """Rules that were evaluated at every transition."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A violation as an engine finds it."""

    property: str
    message: str
    operations: tuple[AnyOperation, ...]
    """From the empty pool; the last one violates the rule."""


class Counts(msgspec.Struct, kw_only=True):
    """How far a run is."""

    distinct: int = 0
    transitions: int = 0
    depth: int = 0
    waiting: int = 0
    """States that are found and not yet expanded."""


def verdict_of(violated: bool, reason: str, executed: int) -> tuple[Verdict, str]:
    """A violation is certain whatever else; then doubt; a run that executed nothing is doubt too."""
    if not executed:
        reason = reason or "no operation was executed"
    if violated:
        return "violated", reason
    return ("unknown", reason) if reason else ("holds", "")


def rate(transitions: int, seconds: float) -> float:
    """Transitions a second, to one decimal."""
    return round(transitions / max(seconds, 1e-9), 1)


def names(rules: Sequence[object]) -> tuple[str, ...]:
    """Names of rules."""
    return tuple(str(getattr(rule, "name", rule)) for rule in rules)
