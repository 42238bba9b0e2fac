"""The page counts of every kind of call are the specification's, for small batches and for lanes."""

from collections.abc import Callable

import numpy as np
import pytest

from poolproof_fast.demands import SCALAR_REQUESTS, check_size, decode_demand, extend_demand, tail_demand
from poolproof_fast.errors import SizeError
from poolproof_spec.demand import decode_pages, extend_pages, tail_pages
from poolproof_spec.units import LARGEST_QUANTITY

SIZES = [1, 2, SCALAR_REQUESTS, SCALAR_REQUESTS + 1, 300]
BATCH = SCALAR_REQUESTS + 1


@pytest.mark.parametrize("requests", SIZES)
def test_batches_are_the_sums_of_their_requests(requests: int) -> None:
    generator = np.random.default_rng(requests)
    for page_tokens in (1, 2, 16):
        prefixes = generator.integers(0, 100, requests).tolist()
        lengths = [prefix + more for prefix, more in zip(prefixes, generator.integers(1, 40, requests), strict=True)]
        pairs = list(zip(prefixes, lengths, strict=True))
        assert extend_demand(prefixes, lengths, page_tokens) == sum(extend_pages(a, b, page_tokens) for a, b in pairs)
        assert decode_demand(lengths, page_tokens) == sum(decode_pages(length, page_tokens) for length in lengths)
        for prefix, length in pairs:
            for tail in (0, 1, length - prefix, length):
                pages = extend_pages(prefix, length, page_tokens), tail_pages(prefix, length, tail, page_tokens)
                assert tail_demand(prefix, length, tail, page_tokens) == pages


def test_nothing_demands_nothing() -> None:
    assert extend_demand([], [], 16) == decode_demand([], 16) == 0
    assert tail_demand(0, 0, 0, 16) == (0, 0)


@pytest.mark.parametrize("size", [-1, LARGEST_QUANTITY + 1, 2**70])
@pytest.mark.parametrize(
    "call",
    [
        check_size,
        lambda size: extend_demand([0], [size], 4),
        lambda size: extend_demand([0] * BATCH, [1] * (BATCH - 1) + [size], 4),
        lambda size: decode_demand([size + 1 if size > 0 else 0], 4),
        lambda size: decode_demand([1] * (BATCH - 1) + [size + 1 if size > 0 else 0], 4),
        lambda size: tail_demand(0, 1, size, 4),
    ],
)
def test_absurd_sizes_are_refused(call: Callable[[int], object], size: int) -> None:
    with pytest.raises(SizeError, match="must be between 0 and"):
        call(size)


@pytest.mark.parametrize("requests", [1, BATCH])
def test_lengths_must_pair_up_and_grow(requests: int) -> None:
    with pytest.raises(SizeError, match=f"{requests} prefix lengths, {requests + 1} sequence lengths"):
        extend_demand([0] * requests, [1] * (requests + 1), 4)
    with pytest.raises(SizeError, match="extend only grows"):
        extend_demand([2] * requests, [2] * (requests - 1) + [1], 4)
    with pytest.raises(SizeError, match="extend only grows"):
        tail_demand(2, 1, 1, 4)
