"""Traces run on targets, with every step kept; a target that is not there leaves the reference, and says so."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from poolproof_conformance.child import TargetFailureError
from poolproof_conformance.errors import TargetNameError, TargetNotInstalledError
from poolproof_conformance.reporting.rows import Variant
from poolproof_conformance.run import HistoryRun, StepRecord, checked_properties, run_history
from poolproof_conformance.target_names import KNOWN_TARGETS, Target, resolve_target
from poolproof_conformance.trace_format import Mode, Trace, TreeCore
from poolproof_spec.catalogue import PROPERTIES
from poolproof_spec.verdict import Verdict


@dataclass(frozen=True)
class TracedRun:
    """One trace on one target, step by step."""

    path: Path
    trace: Trace
    variant: Variant
    """What was to be run."""
    shown_on: str
    """What the steps are of: the variant, or the reference where that is not there."""
    steps: tuple[StepRecord, ...]
    verdict: Verdict
    reason: str
    """Why the verdict is unknown."""
    unchecked: tuple[str, ...] = ()

    @property
    def is_recorded(self) -> bool:
        """Whether the steps are the reference's, and what the target did is only told by the trace."""
        return self.shown_on != self.variant.title


def targets_of(trace: Trace, names: Sequence[str], tree_core: TreeCore, mode: Mode | None) -> list[Target | str]:
    """The targets to run a trace on: those named, else those that it expects something of, else the reference.

    A str is the title of one that is not installed. Raises TargetNameError.
    """
    mode = mode or trace.mode or "eager"
    chosen = list(names)
    if not chosen:
        known = [
            name for name in KNOWN_TARGETS if any(e.is_about(name, tree_core, mode) for e in trace.expected.targets)
        ]
        chosen = known or ["reference"]
    found: list[Target | str] = []
    for name in chosen:
        try:
            found.append(resolve_target(name, tree_core, mode))
        except TargetNotInstalledError:
            found.append(name)
    return found


def target_of(variant: Variant) -> Target | str:
    """The target of a database's variant; its name where it cannot be run here."""
    try:
        return resolve_target(variant.target, variant.tree_core or "rust", variant.mode or "eager")
    except (TargetNameError, TargetNotInstalledError):
        return variant.target


def variant_of(target: Target | str) -> Variant:
    """The column that a target stands for."""
    if isinstance(target, str):
        return Variant(target=target)
    return Variant(target=target.name, tree_core=target.tree_core, mode=target.mode)


def run_traces(
    asked: Sequence[tuple[Path, Trace, Target | str]],
    variants: Sequence[Variant] | None = None,
    on_run: Callable[[], None] = lambda: None,
) -> list[TracedRun]:
    """Run each trace on its target; one process for all neighbouring runs of a target."""
    given = variants or [variant_of(target) for _, _, target in asked]
    numbered = list(zip(asked, given, strict=True))
    done = []
    for _, group in groupby(numbered, key=lambda item: item[0][2]):
        for run in _runs(list(group)):
            done.append(run)
            on_run()
    return done


def _runs(group: Sequence[tuple[tuple[Path, Trace, Target | str], Variant]]) -> Iterator[TracedRun]:
    target = group[0][0][2]
    if isinstance(target, str):
        with Target("reference").opened() as adapter:
            for (path, trace, _), variant in group:
                run = run_history(adapter, trace.geometry, trace.operations)
                reason = f"{variant.target} cannot be run here; poolproof targets install {variant.target}"
                yield TracedRun(path, trace, variant, "reference", run.steps, "unknown", reason)
        return
    with target.opened() as adapter:
        for (path, trace, _), variant in group:
            try:
                rules = {rule.name for rule in checked_properties(adapter.describe())}
                run = run_history(adapter, trace.geometry, trace.operations)
            except TargetFailureError as error:
                rules, run = set(), HistoryRun((), "unknown", error.reason)
            unchecked = tuple(rule.name for rule in PROPERTIES if rules and rule.name not in rules)
            yield TracedRun(path, trace, variant, variant.title, run.steps, run.verdict, run.reason, unchecked)
