"""One history on one target with a time limit; whatever happens, there is a HistoryRun."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass

from poolproof_conformance.adapter import Adapter
from poolproof_conformance.campaigns.deadline import limited
from poolproof_conformance.child import TargetFailureError
from poolproof_conformance.generator import History
from poolproof_conformance.run import HistoryRun, run_history
from poolproof_conformance.target_names import Target
from poolproof_spec.transition import Transition

NOTHING_RUN = "no operation was executed"
"""run_history's reason where every operation was one that the target has not: no doubt about the target."""


@dataclass(frozen=True)
class LimitedRun:
    """A run, and how it ended."""

    run: HistoryRun
    target_failed: bool
    """The target hung, died or talked nonsense: its process, if it has one, is a fresh one next time."""

    @property
    def doubt(self) -> str:
        """Why there is no answer; empty where there is one, or nothing was asked."""
        return "" if self.run.reason == NOTHING_RUN or not self.run.built else self.run.reason


def run_limited(
    adapter: Adapter,
    history: History,
    limit_s: float,
    on_transition: Callable[[Transition], None] | None = None,
) -> LimitedRun:
    """Run and judge. A fault in the judging itself, which a senseless state may cause, is a doubt as well."""
    try:
        with limited(limit_s):
            run = run_history(adapter, *history, on_transition=on_transition)
    except TargetFailureError as error:
        return LimitedRun(HistoryRun((), "unknown", error.reason), True)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"could not be judged: {type(error).__name__}: {error} ({frame.name}, line {frame.lineno})"
        return LimitedRun(HistoryRun((), "unknown", reason), False)
    said = {finding.message for _, finding in run.findings}
    return LimitedRun(run, run.built and bool(run.reason) and run.reason not in {*said, NOTHING_RUN})


def short_reason(reason: str, target: Target) -> str:
    """A doubt's first line, without the command of the target's process."""
    return reason.splitlines()[0].removeprefix(f"{' '.join(target.command)}: ")
