"""The quantities of the model, a type for each, and the named conversions between them."""

from typing import NewType

PageId = NewType("PageId", int)
"""A physical page of one member: page p occupies bytes [p * page_bytes, (p + 1) * page_bytes) of the arena."""

VirtualId = NewType("VirtualId", int)
"""The name by which a page's owner knows it; it stays when the page moves."""

PageCount = NewType("PageCount", int)
TokenCount = NewType("TokenCount", int)
ByteCount = NewType("ByteCount", int)
ByteOffset = NewType("ByteOffset", int)
"""A position in the arena, in bytes from its low end."""

PageKey = NewType("PageKey", int)
"""The content of one page of a prefix, as the prefix tree compares it."""

LARGEST_QUANTITY = 2**48
"""Sizes and lengths above this are refused as absurd: no arena and no request is that large."""


def ceil_div(dividend: int, divisor: int) -> int:
    """The least integer not below dividend / divisor, for a positive divisor."""
    return -(-dividend // divisor)


def pages_for_tokens(tokens: int, page_tokens: int) -> PageCount:
    """Pages that hold `tokens` tokens: the last page may be partly filled."""
    return PageCount(ceil_div(tokens, page_tokens))
