"""A benchmark runs only behind a green gate: figures of a pool that is wrong would be worth nothing."""

from collections.abc import Callable

from poolproof_conformance.errors import PoolproofError
from poolproof_conformance.target_names import resolve_target

HISTORIES = 200
QUICK_HISTORIES = 50
SEED = 1
LEVEL = 2


class RedGateError(PoolproofError):
    """The pool to be measured did not pass the conformance run that comes first."""


def pass_gate(histories: int, on_progress: Callable[[int, int], None] = lambda done, kinds: None) -> str:
    """What `fast` passed, in a line. Raises RedGateError, and TargetNameError where there is no such target."""
    target = resolve_target("fast")
    from poolproof_conformance.conform import conform  # Hypothesis takes its time to import.

    with target.opened() as adapter:
        done = conform(adapter, traces=histories, seed_number=SEED, level=LEVEL, shrink_runs=0, on_progress=on_progress)
    if done.verdict != "holds":
        what = ", ".join(sorted(done.failures)) or "; ".join(done.doubts) or "nothing was executed"
        raise RedGateError(
            f"fast does not pass {histories} random histories: {done.verdict} ({what}); nothing was measured",
            f"poolproof conform fast --traces {histories} --seed {SEED}",
        )
    return f"fast holds on {done.traces} random histories ({done.operations} operations), level {LEVEL}, seed {SEED}"
