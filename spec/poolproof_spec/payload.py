"""The bytes that a page holds for a stamp: a harness writes them and reads them back through the page's id [W6]."""

STAMP_BYTES = 4
"""A stamp is written as this many bytes, repeated over the page."""

NOT_A_STAMP = -1
"""What reading a page gives whose bytes are not one stamp repeated."""


def stamped(stamp: int, page_bytes: int) -> bytes:
    """The content of a whole page for `stamp`, in [0, 2**32)."""
    pattern = stamp.to_bytes(STAMP_BYTES, "little")
    return (pattern * (page_bytes // STAMP_BYTES + 1))[:page_bytes]


def read_stamp(content: bytes) -> int:
    """The stamp that fills the page, or NOT_A_STAMP where some byte disagrees."""
    stamp = int.from_bytes(content[:STAMP_BYTES], "little")
    return stamp if stamped(stamp, len(content)) == content else NOT_A_STAMP


def largest_stamp(page_bytes: int) -> int:
    """The largest stamp that survives on a page of this size."""
    return int(2 ** (8 * min(STAMP_BYTES, page_bytes)) - 1)
