"""Random conformance: Hypothesis draws histories, every step is judged, each kind of failure is shrunk."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, seed, settings

from poolproof_conformance.adapter import Adapter
from poolproof_conformance.generator import History, histories
from poolproof_conformance.run import HistoryRun, run_history
from poolproof_conformance.shrink import RUNS, Shrinker
from poolproof_spec.catalogue import PROPERTIES
from poolproof_spec.geometry import LAYOUTS
from poolproof_spec.transition import Transition
from poolproof_spec.verdict import Verdict

HISTORIES_A_SEARCH = 250
"""Histories that Hypothesis draws from one seed."""

Progress = Callable[[int, int], None]
"""(histories done, kinds of failure found so far)."""


@dataclass
class Failure:
    """One property that some history violates."""

    property: str
    count: int
    """Histories that violate it."""
    history: History
    """The shortest one found; after shrinking, the smallest."""
    message: str
    """What the rule found there."""


@dataclass
class Conformance:
    """What a run over many histories came to."""

    traces: int = 0
    """Histories that were run to their end."""
    operations: int = 0
    """Operations that were carried out and judged."""
    unbuilt: int = 0
    """Histories whose geometry the target cannot be built with; they are not counted above."""
    failures: dict[str, Failure] = field(default_factory=dict)
    doubts: Counter[str] = field(default_factory=Counter)
    """Why histories ended without an answer, and how often."""
    witnessed: Counter[str] = field(default_factory=Counter)
    """Name of each rule and how many steps exercised it."""

    @property
    def verdict(self) -> Verdict:
        """A violation is certain; then doubt, and nothing executed is doubt; then it holds."""
        if self.failures:
            return "violated"
        return "unknown" if self.doubts or not self.operations else "holds"


def conform(
    adapter: Adapter,
    *,
    traces: int,
    seed_number: int,
    layouts: Sequence[str] = tuple(LAYOUTS),
    level: int = 2,
    shrink_runs: int = RUNS,
    on_progress: Progress = lambda done, kinds: None,
) -> Conformance:
    """Run `traces` histories; the same seed gives the same ones. Each kind of failure is shrunk once at the end.

    KeyboardInterrupt is let through; what was found until then is lost with it.
    """
    result = Conformance()

    def witness(transition: Transition) -> None:
        result.operations += 1
        result.witnessed.update(rule.name for rule in PROPERTIES if rule.witness(transition))

    def judge(history: History) -> None:
        run = run_history(adapter, *history, level=level, on_transition=witness)
        note(result, history, run)
        on_progress(result.traces + result.unbuilt, len(result.failures))

    draw_histories(judge, traces=traces, seed_number=seed_number, layouts=layouts)
    for failure in result.failures.values():
        shrink_failure(adapter, failure, level, shrink_runs)
    return result


def draw_histories(
    use: Callable[[History], None], *, traces: int, seed_number: int, layouts: Sequence[str] = tuple(LAYOUTS)
) -> None:
    """Hand `traces` histories to `use`, in several searches: a long one mostly varies what it has found.

    The first n histories of a seed are the same for whatever number is drawn, as far as they fill whole searches.
    """
    for number, start in enumerate(range(0, traces, HISTORIES_A_SEARCH)):

        @seed(f"{seed_number}, search {number}")
        @settings(
            max_examples=min(HISTORIES_A_SEARCH, traces - start),
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(histories(layouts))
        def search(history: History) -> None:
            use(history)

        search()


def note(result: Conformance, history: History, run: HistoryRun) -> None:
    """Count a run and keep it where it is the shortest of its kind."""
    if not run.built:
        result.unbuilt += 1
        return
    result.traces += 1
    if run.reason and run.reason != "no operation was executed":
        result.doubts[run.reason] += 1
    for name, index in run.violated().items():
        shorter = (history[0], history[1][: index + 1])
        known = result.failures.get(name)
        if known is None:
            result.failures[name] = Failure(name, 1, shorter, message_of(run, name))
            continue
        known.count += 1
        if len(shorter[1]) < len(known.history[1]):
            known.history, known.message = shorter, message_of(run, name)


def message_of(run: HistoryRun, name: str) -> str:
    """What the rule first found in a run."""
    return next(finding.message for _, finding in run.findings if finding.property == name)


def shrink_failure(adapter: Adapter, failure: Failure, level: int, runs: int = RUNS) -> None:
    """Replace the failure's history by the smallest that still violates its property."""

    def fails(history: History) -> int | None:
        run = run_history(adapter, *history, level=level)
        index = run.violated().get(failure.property)
        if index is not None:
            failure.message = message_of(run, failure.property)
        return index

    failure.history = Shrinker(fails, runs).shrink(failure.history)
