"""What a page holds, byte for byte: written and read in the engine's arena, at the place its own tables name.

A page is filled with 8-byte words, word k being stamp * 2^16 + k, so that a page copied in part, to a place off its
grid, or from somewhere else reads as no stamp at all. A page of zeros is one never written: the engine zeroes on
hand-out.
"""

from typing import Any

import numpy as np

WORD_BYTES = 8
INDEX_BITS = 16
"""Low bits of a word that number it within its page: pages up to 512 KiB."""
NEVER_WRITTEN = 0
"""Stamp that a page of zeros reads as."""
TORN = -1
"""Stamp that a page reads as whose words do not belong together."""


class Arena:
    """The engine's raw bytes, seen as pages of one size or another."""

    def __init__(self, raw: Any) -> None:
        self._bytes = raw.numpy()

    def _pages(self, page_bytes: int, page_count: int) -> Any:
        return self._bytes[: page_bytes * page_count].view(np.int64).reshape(page_count, page_bytes // WORD_BYTES)

    def fill(self, page_bytes: int, page_count: int, page: int, stamp: int) -> None:
        """Fill one page of a member's grid with the pattern of `stamp`."""
        words = self._pages(page_bytes, page_count)[page]
        words[:] = (stamp << INDEX_BITS) + np.arange(len(words))

    def stamps(self, page_bytes: int, page_count: int, pages: Any) -> list[int]:
        """The stamp that each of `pages` holds, NEVER_WRITTEN or TORN."""
        words = self._pages(page_bytes, page_count)[pages]
        stamps = words[:, 0] >> INDEX_BITS
        pattern = (stamps[:, None] << INDEX_BITS) + np.arange(words.shape[1])
        whole = (words == pattern).all(axis=1)
        blank = ~words.any(axis=1)
        return [int(s) for s in np.where(blank, NEVER_WRITTEN, np.where(whole, stamps, TORN))]
