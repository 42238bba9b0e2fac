"""Twenty thousand random histories of the fast pool, every step judged at level 2; five hundred more by the kernels."""

from collections import Counter

import pytest

from poolproof_conformance.adapter import Adapter
from poolproof_conformance.conform import draw_histories
from poolproof_conformance.fast_adapter import FastAdapter
from poolproof_conformance.generator import History
from poolproof_conformance.run import run_history
from poolproof_spec.verdict import worst

SEEDS = range(100, 116)
"""Not those of the reference's tests and of `poolproof check`: other histories."""
HISTORIES_PER_SEED = 1250
INTERPRETER_SEEDS = range(200, 204)
HISTORIES_PER_INTERPRETER_SEED = 125


def judged(adapter: Adapter, seed_number: int, traces: int) -> Counter[str]:
    """Runs the histories; what the pool answered, and how often."""
    seen: Counter[str] = Counter()
    verdicts = []

    def judge(history: History) -> None:
        run = run_history(adapter, *history)
        assert not run.findings, (history, run.findings)
        verdicts.append(run.verdict)
        seen.update(type(record.outcome).__name__ for record in run.steps)

    draw_histories(judge, traces=traces, seed_number=seed_number)
    assert len(verdicts) == traces
    assert worst(verdicts) == "holds"
    return seen


@pytest.mark.parametrize("seed_number", SEEDS)
def test_the_fast_pool_holds_every_rule(seed_number: int) -> None:
    seen = judged(FastAdapter(), seed_number, HISTORIES_PER_SEED)
    assert min(seen["Granted"], seen["Rejected"], seen["Done"]) > 500
    assert seen["Answer"] > 50


@pytest.mark.parametrize("seed_number", INTERPRETER_SEEDS)
def test_with_its_kernels_interpreted_too(seed_number: int) -> None:
    seen = judged(FastAdapter("interpreter"), seed_number, HISTORIES_PER_INTERPRETER_SEED)
    assert min(seen["Granted"], seen["Rejected"], seen["Done"]) > 50


def test_there_are_as_many_as_that() -> None:
    assert len(SEEDS) * HISTORIES_PER_SEED >= 20_000
    assert len(INTERPRETER_SEEDS) * HISTORIES_PER_INTERPRETER_SEED >= 500
