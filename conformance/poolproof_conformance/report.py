"""The JSON that `check` and `conform` write; others rely on these names and shapes."""

from collections.abc import Iterable, Sequence

import msgspec

from poolproof_spec.catalogue import PROPERTIES, property_named
from poolproof_spec.verdict import Verdict, worst

HIGHEST_LEVEL = max(rule.level for rule in PROPERTIES)


class SeedCaseRow(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of the seed's table."""

    target: str
    tree_core: str | None
    mode: str | None
    case: str
    """fullswa-6, tri-4 or tri-200."""
    granted: bool | None
    """None where the target gave no answer."""
    evicted_tokens: int


class AgreementRow(msgspec.Struct, frozen=True, kw_only=True):
    """Two readings of one rule, held against each other on every state of a family."""

    name: str
    states: int
    verdict: Verdict


class ViolationRow(msgspec.Struct, frozen=True, kw_only=True):
    """One violated property with the smallest history found."""

    property: str
    trace_file: str | None
    operations: int
    """Length of that history."""


class ConformanceRow(msgspec.Struct, frozen=True, kw_only=True):
    """Random histories on one target."""

    target: str
    traces: int
    operations: int
    level: int | None
    """The highest level at which nothing was violated; None where not even level 0 holds, or nothing is known."""
    verdict: Verdict
    violations: tuple[ViolationRow, ...]


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `poolproof check --json` writes."""

    verdict: Verdict
    seed_cases: tuple[SeedCaseRow, ...]
    agreements: tuple[AgreementRow, ...]
    conformance: tuple[ConformanceRow, ...]


def merged(rows: Sequence[ConformanceRow]) -> ConformanceRow:
    """Several runs on one target as one: of each violation the smallest history, of verdicts and levels the worst."""
    smallest: dict[str, ViolationRow] = {}
    for violation in (violation for row in rows for violation in row.violations):
        known = smallest.setdefault(violation.property, violation)
        if violation.operations < known.operations:
            smallest[violation.property] = violation
    verdict = worst(row.verdict for row in rows)
    return ConformanceRow(
        target=rows[0].target,
        traces=sum(row.traces for row in rows),
        operations=sum(row.operations for row in rows),
        level=conformance_level(smallest, verdict),
        verdict=verdict,
        violations=tuple(smallest[name] for name in sorted(smallest)),
    )


def conformance_level(violated: Iterable[str], verdict: Verdict) -> int | None:
    """The highest level below which no rule is violated; None where that is none, or nothing is known."""
    levels = [property_named(name).level for name in violated]
    if verdict == "unknown" or 0 in levels:
        return None
    return min(levels, default=HIGHEST_LEVEL + 1) - 1
