"""Random histories on one target, from a seed to a report: failures are written as traces that replay."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from poolproof_conformance.adapter import Adapter
from poolproof_conformance.conform import Conformance, Failure, conform
from poolproof_conformance.explain import explain_demand, explanation_lines
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.replay import evicted_pages
from poolproof_conformance.report import ConformanceRow, ViolationRow, conformance_level
from poolproof_conformance.run import HistoryRun, checked_properties, run_history
from poolproof_conformance.target_names import Target
from poolproof_conformance.trace_format import FORMAT, Expected, ExpectedOutcome, TargetExpectation, Trace
from poolproof_conformance.traces import write_trace
from poolproof_conformance.wording import arena_words, call_words, plural
from poolproof_spec.catalogue import PROPERTIES
from poolproof_spec.outcome import Rejected


class FoundFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A violated property, with the smallest history found and how to see it again."""

    property: str
    histories: int
    """How many histories violate it."""
    operations: int
    """Length of the smallest."""
    message: str
    """What the rule finds there."""
    arena: str
    """The smallest one's arena in words."""
    calls: tuple[str, ...]
    """Its operations in words."""
    trace_file: str
    command: str
    """Replays the trace."""


class Campaign(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    title: str
    """The target and how it was run."""
    row: ConformanceRow
    failures: tuple[FoundFailure, ...]
    doubts: dict[str, int]
    """Why histories ended without an answer, and how many."""
    unbuilt: int
    """Histories whose geometry the target cannot be built with; not counted in the row."""
    not_exercised: tuple[str, ...]
    """Rules to which no step put a question: of these the run says nothing."""
    unchecked: tuple[str, ...] = ()
    """Rules that cannot be judged, as the target itself declares: of these the run says nothing either."""


def run_campaign(
    target: Target,
    adapter: Adapter,
    *,
    traces: int,
    seed: int,
    layouts: Sequence[str],
    folder: Path,
    on_progress: Callable[[int, int], None] = lambda done, kinds: None,
) -> Campaign:
    """Run, shrink, and write a trace for each violated property below `folder`. Raises OutputFileError."""
    for rule in PROPERTIES:
        # What an earlier run found must not be taken for what this one finds.
        _trace_path(folder, target, rule.name).unlink(missing_ok=True)
    result = conform(adapter, traces=traces, seed_number=seed, layouts=layouts, on_progress=on_progress)
    failures = [
        _written(target, adapter, result.failures[name], seed, _trace_path(folder, target, name))
        for name in sorted(result.failures)
    ]
    checked = checked_properties(adapter.describe())
    return Campaign(
        title=target.title,
        row=_row(target, result, failures),
        failures=tuple(failures),
        doubts=dict(result.doubts),
        unbuilt=result.unbuilt,
        not_exercised=tuple(rule.name for rule in checked if not result.witnessed[rule.name]),
        unchecked=tuple(rule.name for rule in PROPERTIES if rule not in checked),
    )


def slug(target: Target) -> str:
    """A folder name for a target: sglang-0.5.23-rust-eager."""
    name = Path(target.name).stem if target.command and "==" not in target.name else target.name.replace("==", "-")
    return "-".join(part for part in (name, target.tree_core, target.mode) if part)


def failure_trace(target: Target, adapter: Adapter, failure: Failure, seed: int) -> Trace:
    """The failure as a trace: what the reference does, what this target does, and the sweep's numbers."""
    geometry, operations = failure.history
    run = run_history(adapter, geometry, operations)
    right = run_history(ReferenceAdapter(), geometry, operations)
    known = TargetExpectation(
        target=target.name,
        tree_core=target.tree_core or "any",
        mode=target.mode or "any",
        outcomes=_last_outcome(run),
        violates=tuple(run.violated()),
    )
    return Trace(
        format=FORMAT,
        name=f"{failure.property} on {target.title}",
        source=f"random histories, seed {seed}",
        note=failure.message,
        explanation=_explanation(run),
        mode=target.mode,
        geometry=geometry,
        operations=operations,
        expected=Expected(outcomes={} if target.name == "reference" else _last_outcome(right), targets=(known,)),
    )


def replay_command(target: Target, path: Path) -> str:
    """The line to type to see a trace on a target again."""
    words = ["poolproof", "replay", str(path), "--target", target.name]
    words += ["--mode", target.mode] if target.mode else []
    words += ["--tree-core", target.tree_core] if target.tree_core else []
    return shlex.join(words)


def _trace_path(folder: Path, target: Target, property_name: str) -> Path:
    return folder / slug(target) / f"{property_name}.json"


def _written(target: Target, adapter: Adapter, failure: Failure, seed: int, path: Path) -> FoundFailure:
    write_trace(path, failure_trace(target, adapter, failure, seed))
    return FoundFailure(
        property=failure.property,
        histories=failure.count,
        operations=len(failure.history[1]),
        message=failure.message,
        arena=arena_words(failure.history[0]),
        calls=tuple(call_words(operation) for operation in failure.history[1]),
        trace_file=str(path),
        command=replay_command(target, path),
    )


def _row(target: Target, result: Conformance, failures: Sequence[FoundFailure]) -> ConformanceRow:
    return ConformanceRow(
        target=target.name,
        traces=result.traces,
        operations=result.operations,
        level=conformance_level(result.failures, result.verdict),
        verdict=result.verdict,
        violations=tuple(
            ViolationRow(property=found.property, trace_file=found.trace_file, operations=found.operations)
            for found in failures
        ),
    )


def _last_outcome(run: HistoryRun) -> dict[int, ExpectedOutcome]:
    """What the last operation came to, so that a later release that differs is noticed."""
    if not run.steps or run.steps[-1].outcome is None:
        return {}
    last = run.steps[-1]
    assert last.outcome is not None
    reason = last.outcome.reason if isinstance(last.outcome, Rejected) else None
    tag = last.outcome.__struct_config__.tag
    document = {
        "result": tag,
        "reason": None if reason is None else reason.__struct_config__.tag,
        "evicted_pages": evicted_pages(last),
    }
    return {last.index: msgspec.convert(document, ExpectedOutcome)}


def _explanation(run: HistoryRun) -> str:
    """Of a failing demand, why the model answers as it does in the target's state."""
    if not run.steps:
        return ""
    last = run.steps[-1]
    explained = explain_demand(last.before, last.operation)
    if explained is None:
        return ""
    found = plural(evicted_pages(last), "cached page")
    return f"The target: {found} lost. The model: " + " ".join(
        line.strip() for line in explanation_lines(explained) if line
    )
