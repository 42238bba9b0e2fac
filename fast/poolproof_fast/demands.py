"""The exact page counts that each kind of call demands: the specification's formulas, on lanes for whole batches."""

from collections.abc import Sequence

import numpy as np

from poolproof_fast.errors import SizeError
from poolproof_spec.demand import decode_pages, extend_pages, tail_pages
from poolproof_spec.lanes import LANES
from poolproof_spec.units import LARGEST_QUANTITY

SCALAR_REQUESTS = 16
"""Batches up to this size are counted one request at a time: less overhead than lanes."""


def check_size(*sizes: int) -> None:
    """Raises SizeError for a negative or absurd size."""
    for size in sizes:
        if not 0 <= size <= LARGEST_QUANTITY:
            raise SizeError(f"size {size}: must be between 0 and {LARGEST_QUANTITY}")


def _lanes(lengths: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    given = np.asarray(lengths)
    if given.dtype == np.object_:
        raise SizeError(f"a size of more than 64 bits: must be between 0 and {LARGEST_QUANTITY}")
    if given.dtype.kind not in "iu":
        raise SizeError(f"sizes of type {given.dtype}: must be integers between 0 and {LARGEST_QUANTITY}")
    lanes = given.astype(np.int64, copy=False)
    check_size(int(lanes.min()), int(lanes.max()))
    return lanes


def extend_demand(prefix_lens: Sequence[int], seq_lens: Sequence[int], page_tokens: int) -> int:
    """Pages of a prefill batch: request r grows from prefix_lens[r] to seq_lens[r] tokens. Raises SizeError."""
    if len(prefix_lens) != len(seq_lens):
        raise SizeError(f"{len(prefix_lens)} prefix lengths, {len(seq_lens)} sequence lengths: must be equally many")
    if len(seq_lens) > SCALAR_REQUESTS:
        prefixes, lengths = _lanes(prefix_lens), _lanes(seq_lens)
        if (prefixes > lengths).any():
            raise SizeError("a sequence is shorter than its prefix: extend only grows")
        return int(np.sum(extend_pages(prefixes, lengths, page_tokens, LANES)))
    pages = 0
    for prefix_len, seq_len in zip(prefix_lens, seq_lens, strict=True):
        check_size(prefix_len, seq_len)
        if prefix_len > seq_len:
            raise SizeError("a sequence is shorter than its prefix: extend only grows")
        pages += extend_pages(prefix_len, seq_len, page_tokens)
    return pages


def decode_demand(seq_lens: Sequence[int], page_tokens: int) -> int:
    """Pages of one decode step; lengths are those after it, in tokens. Raises SizeError."""
    if len(seq_lens) > SCALAR_REQUESTS:
        lengths = _lanes(seq_lens)
        check_size(int(lengths.min()) - 1)
        return int(np.sum(decode_pages(lengths, page_tokens, LANES)))
    pages = 0
    for seq_len in seq_lens:
        check_size(seq_len - 1)
        pages += decode_pages(seq_len, page_tokens)
    return pages


def tail_demand(prefix_len: int, seq_len: int, tail: int, page_tokens: int) -> tuple[int, int]:
    """(FULL, SWA) pages of a prefill of which only the last `tail` tokens need SWA pages. Raises SizeError."""
    check_size(prefix_len, seq_len, tail)
    if prefix_len > seq_len:
        raise SizeError("a sequence is shorter than its prefix: extend only grows")
    return extend_pages(prefix_len, seq_len, page_tokens), tail_pages(prefix_len, seq_len, tail, page_tokens)
