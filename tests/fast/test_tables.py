import numpy as np
import pytest
from tests.fast.devices import KERNEL_DEVICE

from poolproof_fast.device_work import Kernels
from poolproof_fast.tables import Tables

SIZES = [(40, 40), (40, 33), (9, 120)]


def assert_up_to_date(tables: Tables) -> None:
    for index in range(len(SIZES)):
        np.testing.assert_array_equal(tables.device_page_of(index).cpu().numpy(), tables.page_of_np[index])
        np.testing.assert_array_equal(tables.device_id_at(index).cpu().numpy(), tables.id_at_np[index])


@pytest.mark.parametrize("kernels", ["torch", "triton"])
def test_a_flush_brings_over_what_was_touched_with_one_copy_and_one_launch(kernels: Kernels) -> None:
    tables = Tables(SIZES, KERNEL_DEVICE if kernels == "triton" else "cpu", apart=True, kernels=kernels)
    generator = np.random.default_rng(1)
    for flushes in range(1, 9):
        for _ in range(generator.integers(1, 4)):
            index = int(generator.integers(len(SIZES)))
            ids = generator.integers(1, SIZES[index][0], generator.integers(4), dtype=np.int32)
            pages = generator.integers(1, SIZES[index][1], generator.integers(4), dtype=np.int32)
            tables.page_of_np[index][ids] = generator.integers(100, size=len(ids))
            tables.id_at_np[index][pages] = generator.integers(100, size=len(pages))
            tables.page_of[index][3], tables.id_at[index][4] = 7, int(generator.integers(100))
            tables.touch(index, ids, pages)
            tables.touch(index, 3, 4)
        tables.flush()
        assert_up_to_date(tables)
        assert (tables.copies, tables.launches, tables.waits) == (flushes, flushes, 0)


def test_without_a_touch_the_device_keeps_the_old_value() -> None:
    tables = Tables(SIZES, apart=True)
    tables.page_of[0][5] = 8
    tables.page_of[0][6] = 9
    tables.touch(0, 6, 0)
    assert tables.device_page_of(0)[6] == 0
    tables.flush()
    assert (tables.device_page_of(0)[5], tables.device_page_of(0)[6]) == (0, 9)


def test_the_value_at_the_flush_counts() -> None:
    tables = Tables(SIZES, apart=True)
    ids = np.array([2, 3], np.int32)
    tables.page_of_np[1][ids] = 5
    tables.touch(1, ids, np.empty(0, np.int32))
    tables.touch(1, 2, 0)
    ids[:] = 9
    tables.page_of[1][2] = 6
    tables.flush()
    assert tables.device_page_of(1)[:4].tolist() == [0, 0, 6, 5]


def test_nothing_touched_is_no_copy_and_no_launch() -> None:
    tables = Tables(SIZES, apart=True)
    tables.touch(0, np.empty(0, np.int32), np.empty(0, np.int32))
    tables.flush()
    assert (tables.copies, tables.launches) == (0, 0)


def test_many_changes_copy_everything_at_once_without_a_launch() -> None:
    tables = Tables(SIZES, apart=True)
    for _ in range(4):
        for index, (id_count, page_count) in enumerate(SIZES):
            tables.page_of_np[index][:] = np.arange(id_count)
            tables.id_at_np[index][:] = -np.arange(page_count)
            tables.touch(index, np.arange(id_count, dtype=np.int32), np.arange(page_count, dtype=np.int32))
    tables.flush()
    assert_up_to_date(tables)
    assert (tables.copies, tables.launches) == (1, 0)


def test_shared_tables_are_the_host_memory() -> None:
    tables = Tables(SIZES)
    tables.page_of[2][8] = 11
    tables.id_at_np[2][119] = 12
    tables.flush()
    assert_up_to_date(tables)
    assert (tables.device_page_of(2)[8], tables.device_id_at(2)[119]) == (11, 12)
    assert (tables.apart, tables.copies, tables.launches, tables.waits) == (False, 0, 0, 0)


@pytest.mark.parametrize("apart", [False, True])
def test_addresses_never_change(apart: bool) -> None:
    tables = Tables(SIZES, apart=apart)
    before = [tables.device_page_of(index).data_ptr() for index in range(len(SIZES))]
    tables.page_of_np[0][:] = 1
    tables.touch(0, np.arange(40, dtype=np.int32), np.arange(40, dtype=np.int32))
    tables.flush()
    assert [tables.device_page_of(index).data_ptr() for index in range(len(SIZES))] == before


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one id and one page"):
        Tables([(1, 1), (0, 4)])


def test_tables_on_a_gpu_are_apart() -> None:
    with pytest.raises(ValueError, match="only a CPU shares memory"):
        Tables(SIZES, device="cuda", apart=False)
