"""The JSON that `check` and `conform` write; others rely on these names and shapes."""

import msgspec

from poolproof_spec.verdict import Verdict, worst


class SeedCase(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of the seed's table."""

    target: str
    tree_core: str | None
    mode: str | None
    case: str
    """fullswa-6, tri-4 or tri-200."""
    granted: bool
    evicted_tokens: int


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """Two readings of one rule, held against each other on every state of a family."""

    name: str
    states: int
    verdict: Verdict


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One violated property with the smallest history found."""

    property: str
    trace_file: str | None
    operations: int
    """Length of that history."""


class Conformance(msgspec.Struct, frozen=True, kw_only=True):
    """Random histories on one target."""

    target: str
    traces: int
    operations: int
    level: int | None
    """The highest level at which nothing was violated; None where not even level 0 holds, or nothing is known."""
    verdict: Verdict
    violations: tuple[Violation, ...]


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `poolproof check --json` writes."""

    verdict: Verdict
    seed_cases: tuple[SeedCase, ...]
    agreements: tuple[Agreement, ...]
    conformance: tuple[Conformance, ...]


def check_verdict(seed_figures: Verdict, agreements: tuple[Agreement, ...], reference: Conformance) -> Verdict:
    """What must hold: the seed's figures, the agreements and the reference. A violation in a released engine is a
    finding and does not count here.
    """
    return worst([seed_figures, worst(agreement.verdict for agreement in agreements), reference.verdict])
