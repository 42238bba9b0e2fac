"""Replay one trace on one target: judge every step, then compare with what the trace expects of that target."""

from collections.abc import Iterator, Sequence

import msgspec

from poolproof_conformance.adapter import Adapter, Description
from poolproof_conformance.child import TargetFailureError
from poolproof_conformance.run import StepRecord, run_history
from poolproof_conformance.trace_format import ExpectedOutcome, TargetExpectation, Trace
from poolproof_conformance.wording import call_words, plural, step_words
from poolproof_spec.catalogue import property_named
from poolproof_spec.outcome import Answer, Blocked, Granted, Refused, Rejected
from poolproof_spec.transition import cached_pages
from poolproof_spec.verdict import Verdict


class ReplayedStep(msgspec.Struct, frozen=True, kw_only=True):
    """One operation as it went."""

    index: int
    operation: str
    """One line: the call."""
    outcome: str
    """One line: the answer."""
    evicted_pages: int
    """Cached FULL pages that are gone after it."""
    findings: tuple[str, ...]
    """`property: what was found`, for each rule that does not hold."""


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """A trace on a target."""

    trace: str
    """The trace's name."""
    target: str
    details: dict[str, str]
    """What the target says of itself: tree core, mode."""
    verdict: Verdict
    reason: str
    """Why the verdict is unknown."""
    violated: tuple[str, ...]
    """Names of the violated properties, in the order in which they first show."""
    differences: tuple[str, ...]
    """Where the run departs from what the trace expects; empty if nowhere."""
    steps: tuple[ReplayedStep, ...]

    @property
    def as_expected(self) -> bool:
        """Whether the run was a proper one and everything in it was foretold."""
        return self.verdict != "unknown" and not self.differences


def replay(adapter: Adapter, trace: Trace, target: str, tree_core: str | None, mode: str | None) -> Replay:
    """Run and compare. A target that fails gives the verdict unknown."""
    try:
        description = adapter.describe()
    except TargetFailureError as error:
        return Replay(
            trace=trace.name,
            target=target,
            details={},
            verdict="unknown",
            reason=error.reason,
            violated=(),
            differences=(),
            steps=(),
        )
    run = run_history(adapter, trace.geometry, trace.operations)
    violated = tuple(run.violated())
    expectation = trace.expected.of(target, tree_core, mode)
    return Replay(
        trace=trace.name,
        target=target,
        details=description.details,
        verdict=run.verdict,
        reason=run.reason,
        violated=violated,
        differences=tuple(_differences(run.steps, expectation, violated, description)),
        steps=tuple(_replayed(step) for step in run.steps),
    )


def evicted_pages(step: StepRecord) -> int:
    """Cached FULL pages that are gone after the operation, however nodes are split."""
    return len(cached_pages(step.before).keys() - cached_pages(step.after).keys())


def _differences(
    steps: Sequence[StepRecord], expectation: TargetExpectation, violated: Sequence[str], description: Description
) -> Iterator[str]:
    by_index = {step.index: step for step in steps}
    for index, expected in sorted(expectation.outcomes.items()):
        if index not in by_index:
            yield f"operation {index}: not reached"
        else:
            yield from (f"operation {index}: {text}" for text in _differs(by_index[index], expected, description))
    foretold = {property_named(name).name for name in expectation.violates}
    yield from (f"{name}: violated, which is not expected" for name in violated if name not in foretold)
    yield from (f"{name}: expected to be violated, and is not" for name in sorted(foretold - set(violated)))


def _differs(step: StepRecord, expected: ExpectedOutcome, description: Description) -> Iterator[str]:
    """Each field that the trace gives and the target can tell."""
    outcome = step.outcome
    if outcome is None:
        yield f"{expected.result} expected, skipped: what it names does not exist in this target"
        return
    kind = str(outcome.__struct_config__.tag)
    if kind != expected.result:
        yield f"{expected.result} expected, {kind} found"
        return
    if isinstance(outcome, Rejected) and outcome.reason is not None:
        reason = str(outcome.reason.__struct_config__.tag)
        if expected.reason not in (None, reason):
            yield f"reason {expected.reason} expected, {reason} found"
        elif isinstance(outcome.reason, Blocked) and expected.by not in (None, outcome.reason.by):
            yield f"blocked by {_names(expected.by)} expected, by {_names(outcome.reason.by)} found"
    if isinstance(outcome, Refused) and expected.error not in (None, outcome.error):
        yield f"error {expected.error} expected, {outcome.error} found"
    if isinstance(outcome, Answer) and expected.token_pages not in (None, outcome.token_pages):
        yield f"{expected.token_pages} token pages expected, {outcome.token_pages} found"
    lost = evicted_pages(step)
    if expected.evicted_pages not in (None, lost):
        yield f"{plural(expected.evicted_pages or 0, 'evicted page')} expected, {lost} found"
    if expected.steps is not None and isinstance(outcome, Granted | Rejected):
        yield from _steps_differ(step, expected, description)


def _steps_differ(step: StepRecord, expected: ExpectedOutcome, description: Description) -> Iterator[str]:
    found = step.transition.steps if step.transition is not None else ()
    wanted = expected.steps or ()
    if "steps" in description.cannot:
        found, wanted = tuple(sorted(found, key=repr)), tuple(sorted(wanted, key=repr))
    if found != wanted:
        yield f"steps {step_words(wanted)} expected, {step_words(found)} found"


def _names(names: Sequence[str] | None) -> str:
    return " and ".join(names or ())


def _replayed(step: StepRecord) -> ReplayedStep:
    return ReplayedStep(
        index=step.index,
        operation=call_words(step.operation),
        outcome=_outcome_words(step),
        evicted_pages=evicted_pages(step),
        findings=tuple(
            f"{finding.property}: {finding.message}" if finding.verdict == "violated" else finding.message
            for finding in step.findings
        ),
    )


def _outcome_words(step: StepRecord) -> str:
    outcome = step.outcome
    if outcome is None:
        return "skipped"
    kind = str(outcome.__struct_config__.tag)
    lost = evicted_pages(step)
    cost = f", {plural(lost, 'cached page')} lost" if lost else ""
    match outcome:
        case Rejected(reason=reason) if reason is not None:
            by = f" by {_names(reason.by)}" if isinstance(reason, Blocked) else ""
            return f"rejected, {reason.__struct_config__.tag}{by}{cost}"
        case Answer():
            return f"{outcome.token_pages} token pages"
        case Refused():
            return f"refused, {outcome.error}: {outcome.message}"
        case _:
            return f"{kind}{cost}"
