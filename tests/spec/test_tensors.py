"""On tensors each element has what ints give in its place."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from poolproof_spec.tensors import TENSORS  # noqa: E402

from .test_lanes import check_counts, check_operations, check_sweep  # noqa: E402


def test_the_sweep_element_by_element() -> None:
    fitting, elements = check_sweep(TENSORS, torch.tensor, 30)
    assert 0.2 < fitting / elements < 0.8


def test_the_counts_of_a_demand_element_by_element() -> None:
    check_counts(TENSORS, torch.tensor)


def test_operations_on_tensors_and_what_is_mixed_in() -> None:
    check_operations(TENSORS, torch.tensor)


def test_the_rules_themselves_need_no_torch() -> None:
    lines = "import sys, poolproof_spec.source_text, poolproof_spec.lanes, poolproof_spec.properties"
    subprocess.run([sys.executable, "-c", f"{lines}; assert 'torch' not in sys.modules"], check=True)
