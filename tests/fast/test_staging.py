import numpy as np
import pytest
import torch

from poolproof_fast.staging import Staging

CPU = torch.device("cpu")


def test_deliveries_arrive_one_copy_each_around_the_ring() -> None:
    staging = Staging(10, CPU)
    generator = np.random.default_rng(2)
    for copies in range(1, 50):
        words = generator.integers(1000, size=generator.integers(1, 11), dtype=np.int32)
        staging.room(len(words))[:] = words
        np.testing.assert_array_equal(staging.send().numpy(), words)
        staging.sent()
        assert (staging.copy_count, staging.wait_count) == (copies, 0)


def test_a_delivery_larger_than_the_ring_is_refused() -> None:
    with pytest.raises(ValueError, match="delivery of 11 words; the staging ring has 10"):
        Staging(10, CPU).room(11)


class FakeEvent:
    """A mark on a stream that has passed when the test says so."""

    def __init__(self) -> None:
        self.passed = False

    def query(self) -> bool:
        return self.passed

    def synchronize(self) -> None:
        self.passed = True


def deliver(staging: Staging, count: int) -> FakeEvent:
    """What a delivery does on a GPU, with a mark of ours in place of CUDA's."""
    staging.room(count)
    event = FakeEvent()
    staging._under_way.append((*staging._open, event))  # type: ignore[arg-type]
    return event


def test_a_part_is_reused_only_once_its_mark_has_passed() -> None:
    staging = Staging(10, CPU)
    first, second, third = deliver(staging, 4), deliver(staging, 4), deliver(staging, 2)
    first.passed = True
    deliver(staging, 4)
    assert (staging.wait_count, second.passed, third.passed) == (0, False, False)
    deliver(staging, 3)
    assert (staging.wait_count, second.passed, third.passed) == (1, True, False)


def test_the_oldest_mark_is_waited_for_first_and_no_more_than_needed() -> None:
    staging = Staging(10, CPU)
    events = [deliver(staging, 2) for _ in range(5)]
    deliver(staging, 3)
    assert [event.passed for event in events] == [True, True, False, False, False]
    assert staging.wait_count == 2


def test_parts_that_share_one_word_are_not_in_use_at_once() -> None:
    staging = Staging(3, CPU)
    first, second = deliver(staging, 1), deliver(staging, 2)
    deliver(staging, 1)
    assert (staging.wait_count, first.passed, second.passed) == (1, True, False)
    deliver(staging, 1)
    assert (staging.wait_count, second.passed) == (2, True)


def test_what_wraps_early_keeps_clear_of_the_tail() -> None:
    staging = Staging(10, CPU)
    first, second = deliver(staging, 3), deliver(staging, 4)
    first.passed = second.passed = True
    third = deliver(staging, 3)
    deliver(staging, 7)
    assert (staging.wait_count, third.passed) == (0, False)
