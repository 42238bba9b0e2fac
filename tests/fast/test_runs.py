"""Where to look: a slice exactly where the positions are an unbroken run, and the same elements in any case."""

import numpy as np
import pytest

from poolproof_fast.runs import where


@pytest.mark.parametrize(
    ("positions", "is_run"),
    [
        ([5], True),
        ([5, 6, 7], True),
        ([7, 6, 5], True),
        ([3, 2, 1], True),
        ([1, 3, 2, 4], False),
        ([5, 7], False),
        ([5, 8, 6, 7, 9], False),
        ([4, 4, 6, 7, 8], False),
        ([2, 1, 0], False),
    ],
)
def test_it_picks_these_positions_in_this_order(positions: list[int], is_run: bool) -> None:
    column = np.arange(100, 120)
    given = np.array(positions, dtype=np.int32)
    assert isinstance(where(given), slice) == is_run
    assert column[where(given)].tolist() == [100 + position for position in positions]


def test_random_positions_are_picked_as_they_are() -> None:
    random, column = np.random.default_rng(0), np.arange(1000, 1040)
    for _ in range(2000):
        start, count = int(random.integers(1, 20)), int(random.integers(1, 6))
        given = np.arange(start, start + count, dtype=np.int32)
        if random.random() < 0.5:
            given = given[::-1].copy()
        if random.random() < 0.5:
            given[random.integers(count)] = random.integers(1, 40)
        assert column[where(given)].tolist() == (given + 1000).tolist()
