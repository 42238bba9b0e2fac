"""What only a CUDA device can show; all of it is skipped where there is none (`make gpu` runs it)."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from tests.fast.devices import HAS_CUDA

from poolproof_fast import naive
from poolproof_fast.arena import Arena
from poolproof_fast.device_work import DeviceWork, device_work
from poolproof_fast.events import CudaEvent
from poolproof_fast.pool import FastPool
from poolproof_fast.staging import Staging
from poolproof_fast.tables import Tables
from poolproof_spec.geometry import derive, layout

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not HAS_CUDA, reason="no CUDA device")]

CUDA = torch.device("cuda")
GIB = 2**30
BUSY_CYCLES = 200_000_000
"""About a tenth of a second of device time: long enough to be seen unfinished by the host."""


@contextmanager
def no_sync() -> Iterator[None]:
    """PyTorch raises on whatever makes the host wait for the device."""
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")
        torch.cuda.synchronize()


@pytest.fixture(scope="module")
def kernels() -> DeviceWork:
    return device_work("triton")


@pytest.mark.parametrize("page_bytes", [1, 3, 48, 176, 4096, 4104, 65536])
@pytest.mark.parametrize("count", [1, 2, 127, 5000])
def test_copy_and_fill_equal_their_twins(kernels: DeviceWork, page_bytes: int, count: int) -> None:
    page_count = 2 * count + 5
    arena = torch.randint(0, 256, (page_count * page_bytes + 1,), dtype=torch.uint8, device=CUDA)
    twin = arena.clone()
    pages = torch.randperm(page_count, device=CUDA)[: 2 * count].int()
    for work, target in ((kernels, arena), (naive, twin)):
        work.copy_pages(target, page_bytes, pages[:count], pages[count:])
        work.fill_pages(target, page_bytes, pages[: count // 2], 0xFF)
    assert torch.equal(arena, twin)


def test_pages_beyond_4_gib_are_reached(kernels: DeviceWork) -> None:
    page_bytes = 65536
    arena = torch.zeros(5 * GIB, dtype=torch.uint8, device=CUDA)
    last = 5 * GIB // page_bytes - 1
    arena[last * page_bytes :] = 7
    source, target, filled = (torch.tensor([page], dtype=torch.int32, device=CUDA) for page in (last, 3, last - 1))
    kernels.copy_pages(arena, page_bytes, source, target)
    kernels.fill_pages(arena, page_bytes, filled, 9)
    assert bool((arena[3 * page_bytes : 4 * page_bytes] == 7).all())
    assert bool((arena[(last - 1) * page_bytes : last * page_bytes] == 9).all())
    assert int(arena.count_nonzero()) == 3 * page_bytes


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_scatter_and_translate_equal_their_twins(kernels: DeviceWork, dtype: torch.dtype) -> None:
    page_of = torch.zeros(100_000, dtype=torch.int32, device=CUDA)
    twin = page_of.clone()
    positions = torch.randperm(100_000, device=CUDA)[:70_001].to(dtype)
    values = torch.randint(0, 100_000, (70_001,), dtype=torch.int32, device=CUDA)
    for work, target in ((kernels, page_of), (naive, twin)):
        work.scatter(target, positions, values)
    assert torch.equal(page_of, twin)
    for count in (1, 1023, 1024, 1_000_003):
        ids = torch.randint(0, 16 * 100_000, (count,), dtype=dtype, device=CUDA)
        found, expected = torch.empty_like(ids), torch.empty_like(ids)
        kernels.translate(page_of, ids, 16, found)
        naive.translate(page_of, ids, 16, expected)
        assert torch.equal(found, expected)


@pytest.mark.parametrize("name", ["torch", "triton"])
def test_flushed_tables_equal_the_mirrors_without_waiting(name: str) -> None:
    sizes = [(5000, 6000), (5000, 7000)]
    tables = Tables(sizes, CUDA, kernels=name)  # type: ignore[arg-type]
    generator = np.random.default_rng(5)
    tables.touch(0, 1, 1)
    tables.flush()
    with no_sync():
        for _ in range(50):
            index, count = int(generator.integers(2)), int(generator.integers(1, 50))
            ids = generator.integers(1, sizes[index][0], count, dtype=np.int32)
            pages = generator.integers(1, sizes[index][1], count, dtype=np.int32)
            tables.page_of_np[index][ids] = generator.integers(1000, size=count)
            tables.id_at_np[index][pages] = generator.integers(1000, size=count)
            tables.touch(index, ids, pages)
            tables.flush()
    for index in range(2):
        np.testing.assert_array_equal(tables.device_page_of(index).cpu().numpy(), tables.page_of_np[index])
        np.testing.assert_array_equal(tables.device_id_at(index).cpu().numpy(), tables.id_at_np[index])
    assert (tables.copies, tables.launches, tables.waits) == (51, 51, 0)


def test_a_full_ring_waits_and_loses_nothing() -> None:
    staging = Staging(8, CUDA)
    kept = []
    torch.cuda._sleep(BUSY_CYCLES)
    for number in range(20):
        staging.room(3)[:] = number
        kept.append(staging.send().clone())
        staging.sent()
    assert staging.wait_count > 0
    assert [words.tolist() for words in kept] == [[number] * 3 for number in range(20)]


def test_a_ring_with_room_does_not_wait_for_a_busy_device() -> None:
    staging = Staging(1000, CUDA)
    busy = torch.cuda.Event()
    with no_sync():
        torch.cuda._sleep(BUSY_CYCLES)
        busy.record()
        for number in range(100):
            staging.room(10)[:] = number
            staging.send()
            staging.sent()
        assert not busy.query()
    assert staging.wait_count == 0


def test_deliveries_on_two_streams_keep_their_order() -> None:
    staging, table = Staging(16, CUDA), torch.zeros(4, dtype=torch.int32, device=CUDA)
    slow, other = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.synchronize()
    for stream, value in ((slow, 1), (other, 2)):
        with torch.cuda.stream(stream):
            if stream is slow:
                torch.cuda._sleep(BUSY_CYCLES)
            staging.room(4)[:] = value
            table.copy_(staging.send())
            staging.sent()
    torch.cuda.synchronize()
    assert table.tolist() == [2, 2, 2, 2]


def test_arena_batches_are_one_launch_each_and_never_wait() -> None:
    geometry = derive(2**20 * 48, [("SWA", "swa", 48, "up"), ("FULL", "full", 4096, "down")])
    arena, host = Arena(geometry, CUDA), Arena(geometry)
    content = np.random.default_rng(6).integers(0, 256, geometry.total_bytes, dtype=np.uint8)
    host.bytes.copy_(torch.from_numpy(content))
    arena.bytes.copy_(host.bytes)
    pages = np.random.default_rng(7).permutation(10_000).astype(np.int32) + 200
    for target in (arena, host):
        target.copy(0, pages[:10], pages[10:20])
        target.copy(1, 100, 101)
        target.fill(0, pages[:3], 0)
    with no_sync():
        arena.copy(0, pages[:5000], pages[5000:])
        arena.fill(0, pages[:700], 0xFF)
        arena.copy(1, 300, 301)
    host.copy(0, pages[:5000], pages[5000:])
    host.fill(0, pages[:700], 0xFF)
    host.copy(1, 300, 301)
    assert torch.equal(arena.bytes.cpu(), host.bytes)
    assert (arena.launches, arena.copied_bytes, arena.waits) == (6, host.copied_bytes, 0)
    arena.write_page(1, 7, b"x" * 4096)
    assert arena.read_page(1, 7) == b"x" * 4096


def test_a_captured_translation_sees_later_table_changes() -> None:
    tables, work = Tables([(100, 100)], CUDA, kernels="triton"), device_work("triton")
    ids = torch.arange(64, dtype=torch.int64, device=CUDA)
    slots = torch.empty_like(ids)
    work.translate(tables.device_page_of(0), ids, 16, slots)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work.translate(tables.device_page_of(0), ids, 16, slots)
    for pages in ([5, 9, 2, 7], [1, 3, 8, 6]):
        tables.page_of_np[0][:4] = pages
        tables.touch(0, np.arange(4, dtype=np.int32), np.empty(0, np.int32))
        tables.flush()
        graph.replay()
        assert slots.tolist() == [page * 16 + token for page in pages for token in range(16)]


def test_an_event_fires_when_its_stream_comes_past() -> None:
    slow, written = torch.cuda.Stream(), torch.zeros(1, dtype=torch.int32, device=CUDA)
    torch.cuda.synchronize()
    with torch.cuda.stream(slow):
        torch.cuda._sleep(BUSY_CYCLES)
        written.fill_(5)
        event = CudaEvent(slow)
    assert not event.query()
    with torch.cuda.stream(torch.cuda.Stream()):
        event.wait()
        seen = written.clone()
        assert not event.query()
    torch.cuda.synchronize()
    assert event.query()
    assert seen.item() == 5


def test_a_pool_on_the_gpu_never_waits_and_its_tables_follow() -> None:
    pool = FastPool(layout("tri", 2**24, STATE=4096, SWA=512, FULL=1024, page_tokens=16), device="cuda")
    first = pool.alloc(64)
    assert first
    pool.free(first.ids)
    with no_sync():
        for tokens in (1, 16, 4096, 300):
            grant = pool.alloc(tokens)
            assert grant
            grown = pool.decode([17, 33, 48])
            assert grown
            pool.free(grant.ids)
            assert pool.insert(list(range(tokens, tokens + 4)))
        # More than is free: cached prefixes are evicted.
        assert pool.alloc(16 * (pool.available_pages() + 4))
    for index, mirror in enumerate(pool.store.tables.page_of_np):
        assert torch.equal(pool.store.tables.device_page_of(index).cpu(), torch.from_numpy(mirror))
        assert torch.equal(
            pool.store.tables.device_id_at(index).cpu(), torch.from_numpy(pool.store.tables.id_at_np[index])
        )
    assert (pool.store.tables.waits, pool.store.arena.waits) == (0, 0)
