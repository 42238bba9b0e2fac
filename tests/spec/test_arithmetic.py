"""On ints the carrier gives what Python gives."""

import math

from hypothesis import given
from hypothesis import strategies as st

from poolproof_spec.arithmetic import INTEGERS


@given(st.integers(-99, 99), st.integers(1, 9))
def test_divisions_round_as_their_names_say(dividend: int, divisor: int) -> None:
    assert INTEGERS.floor_div(dividend, divisor) == math.floor(dividend / divisor)
    assert INTEGERS.ceil_div(dividend, divisor) == math.ceil(dividend / divisor)


@given(st.integers(), st.integers())
def test_maximum_and_minimum(left: int, right: int) -> None:
    assert INTEGERS.maximum(left, right) == max(left, right)
    assert INTEGERS.minimum(left, right) == min(left, right)


def test_choice_and_connectives() -> None:
    assert INTEGERS.where(True, 1, 2) == 1
    assert INTEGERS.where(False, 1, 2) == 2
    assert INTEGERS.all_of() is True
    assert INTEGERS.all_of(True, False) is False
    assert INTEGERS.any_of() is False
    assert INTEGERS.any_of(False, True) is True
    assert INTEGERS.negate(False) is True
