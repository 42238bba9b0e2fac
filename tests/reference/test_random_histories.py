"""Ten thousand random histories of the reference, every step judged by all of W, P and G, level 2."""

from collections import Counter

import pytest

from poolproof_conformance.conform import draw_histories
from poolproof_conformance.generator import History
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.run import run_history
from poolproof_spec.verdict import worst

SEEDS = range(8)
HISTORIES_PER_SEED = 1250


@pytest.mark.parametrize("seed_number", SEEDS)
def test_the_reference_holds_every_rule(seed_number: int) -> None:
    seen: Counter[str] = Counter()
    verdicts = []

    def judge(history: History) -> None:
        run = run_history(ReferenceAdapter(), *history)
        assert not run.findings, (history, run.findings)
        verdicts.append(run.verdict)
        seen.update(type(record.outcome).__name__ for record in run.steps)

    draw_histories(judge, traces=HISTORIES_PER_SEED, seed_number=seed_number)
    assert len(verdicts) == HISTORIES_PER_SEED
    assert worst(verdicts) == "holds"
    assert min(seen["Granted"], seen["Rejected"], seen["Done"]) > 500
    assert seen["Answer"] > 50


def test_there_are_ten_thousand() -> None:
    assert len(SEEDS) * HISTORIES_PER_SEED >= 10_000
