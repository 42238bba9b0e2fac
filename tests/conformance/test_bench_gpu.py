import pytest

torch = pytest.importorskip("torch")

from poolproof_conformance.bench.gpu import GpuRow, measure_gpu, pool_rows  # noqa: E402
from poolproof_fast.pool import FastPool  # noqa: E402


@pytest.mark.skipif(torch.cuda.is_available(), reason="only without a GPU is nothing measured")
def test_without_a_gpu_the_only_row_says_so() -> None:
    assert measure_gpu() == [GpuRow(work="gpu", size="", value=None, unit="not measured: no CUDA device")]


def test_each_operation_of_a_pool_is_one_copy_and_one_launch() -> None:
    rows = list(pool_rows(lambda geometry: FastPool(geometry, tables_apart=True)))
    assert {row.work for row in rows} == {"alloc 1", "alloc 4096", "free 4096", "decode 64", "reserve that evicts"}
    for row in rows:
        assert row.value == row.bound, row


def test_a_pool_that_flushes_twice_is_noticed() -> None:
    class Wasteful(FastPool):
        def _done(self) -> None:
            self.store.tables.flush()
            self.store.tables.touch(0, 1, 1)
            super()._done()

    rows = list(pool_rows(lambda geometry: Wasteful(geometry, tables_apart=True)))
    assert any(row.unit == "launches" and row.value == 2 for row in rows)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_all_is_measured_on_a_gpu() -> None:
    rows = measure_gpu()
    assert all(row.value is not None for row in rows)
    assert all(row.value == 0 for row in rows if row.unit == "waits for the device")
