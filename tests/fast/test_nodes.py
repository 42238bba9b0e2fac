"""Node slots: growing, freeing and using again, against a plain dict."""

from array import array

import numpy as np
import pytest

from poolproof_fast.nodes import ROOT, Nodes, grown, key_array, run_indices


def test_run_indices_are_those_of_a_plain_loop() -> None:
    random = np.random.default_rng(1)
    for size in range(12):
        starts, lengths = random.integers(50, size=size), random.integers(4, size=size)
        plain = [start + i for start, length in zip(starts, lengths, strict=True) for i in range(length)]
        assert run_indices(starts, lengths).tolist() == plain


@pytest.mark.parametrize("key", [(3, 2**63 - 1), [3, 2**63 - 1], np.array([3, 2**63 - 1]), array("q", [3, 2**63 - 1])])
def test_keys_in_any_form(key: tuple[int, ...]) -> None:
    assert key_array(key) == array("q", [3, 2**63 - 1])


def test_a_narrower_array_of_keys_is_widened() -> None:
    assert key_array(np.array([1, 2, 3, 4], dtype=np.int32)[::2]) == array("q", [1, 3])
    assert key_array(array("i", [1, 2])).typecode == "q"


def test_growing_keeps_what_is_there() -> None:
    assert grown(array("i", [1, 2]), 4) == array("i", [1, 2, 0, 0])


def test_slots_are_never_given_twice_and_used_again() -> None:
    random, nodes = np.random.default_rng(2), Nodes(capacity=1)
    live: dict[int, int] = {}
    for number in range(1, 600):
        if live and random.random() < 0.4:
            gone = random.choice(list(live), size=random.integers(1, len(live) + 1), replace=False).astype(np.int32)
            nodes.position_view[gone] = -1
            if len(gone) == 1:
                nodes.free(int(gone[0]))
            else:
                nodes.free_all(gone)
            for slot in gone.tolist():
                del live[slot]
        slot = nodes.add(parent=ROOT, start=number, length=1, depth=1, has_swa=1)
        assert slot not in live and slot != ROOT
        nodes.position[slot] = number
        live[slot] = number
        assert nodes.live_slots().tolist() == sorted(live)
        assert {slot: nodes.start[slot] for slot in live} == live
    assert nodes.slots_used < 300
