from hypothesis import given
from hypothesis import strategies as st

from poolproof_spec.units import ceil_div, pages_for_tokens


@given(st.integers(-1000, 1000), st.integers(1, 50))
def test_ceil_div_is_the_least_multiple_not_below(dividend: int, divisor: int) -> None:
    quotient = ceil_div(dividend, divisor)
    assert (quotient - 1) * divisor < dividend <= quotient * divisor


def test_pages_for_tokens_counts_a_partly_filled_page() -> None:
    assert [pages_for_tokens(tokens, 4) for tokens in (0, 1, 4, 5, 8)] == [0, 1, 1, 2, 2]
