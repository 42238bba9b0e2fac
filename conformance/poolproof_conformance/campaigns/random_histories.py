"""The random stage: histories of growing depth, the same for every target from one seed."""

from collections.abc import Callable

from hypothesis import HealthCheck, Phase, given, seed, settings

from poolproof_conformance.generator import History, histories

HISTORIES_A_JOB = 40
SHORTEST, LONGEST = 2, 12
"""Phrases of a history: at first at most SHORTEST + 1, one more with each job up to LONGEST."""


def draw(use: Callable[[History], None], *, layout: str, seed_number: int, number: int) -> None:
    """Hand the histories of the random job `number` on one layout to `use`."""
    longest = min(SHORTEST + 1 + number, LONGEST)

    @seed(f"{seed_number}, {layout}, job {number}")
    @settings(
        max_examples=HISTORIES_A_JOB,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(histories((layout,), shortest=min(SHORTEST, longest), longest=longest))
    def search(history: History) -> None:
        use(history)

    search()
