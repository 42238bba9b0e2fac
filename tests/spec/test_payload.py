import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolproof_spec.payload import NOT_A_STAMP, STAMP_BYTES, largest_stamp, read_stamp, stamped


@given(st.integers(0, 2**32 - 1), st.integers(STAMP_BYTES, 70))
def test_a_stamp_is_read_back_from_a_full_page(stamp: int, page_bytes: int) -> None:
    content = stamped(stamp, page_bytes)
    assert len(content) == page_bytes
    assert read_stamp(content) == stamp


@given(st.data(), st.integers(1, 3))
def test_a_small_page_keeps_stamps_up_to_its_largest(data: st.DataObject, page_bytes: int) -> None:
    stamp = data.draw(st.integers(0, largest_stamp(page_bytes)))
    assert read_stamp(stamped(stamp, page_bytes)) == stamp


@given(st.data(), st.integers(0, 2**32 - 1), st.integers(STAMP_BYTES + 1, 70), st.integers(1, 255))
def test_one_wrong_byte_past_the_first_stamp_is_seen(
    data: st.DataObject, stamp: int, page_bytes: int, flipped: int
) -> None:
    content = bytearray(stamped(stamp, page_bytes))
    content[data.draw(st.integers(STAMP_BYTES, page_bytes - 1))] ^= flipped
    assert read_stamp(bytes(content)) == NOT_A_STAMP


@pytest.mark.parametrize("byte", range(STAMP_BYTES))
def test_one_wrong_byte_of_the_first_stamp_is_seen(byte: int) -> None:
    content = bytearray(stamped(7, 3 * STAMP_BYTES))
    content[byte] ^= 1
    assert read_stamp(bytes(content)) == NOT_A_STAMP


def test_largest_stamps() -> None:
    assert [largest_stamp(page_bytes) for page_bytes in (1, 2, 4, 5)] == [255, 2**16 - 1, 2**32 - 1, 2**32 - 1]
