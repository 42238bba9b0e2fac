import numpy as np
import pytest
from tests.fast.devices import KERNEL_DEVICE

from poolproof_fast import arena as arena_module
from poolproof_fast.arena import Arena
from poolproof_fast.device_work import Kernels
from poolproof_spec.geometry import Geometry, derive


def two_members(small_bytes: int, large_bytes: int, total_bytes: int) -> Geometry:
    return derive(total_bytes, [("SWA", "swa", small_bytes, "up"), ("FULL", "full", large_bytes, "down")])


def naive_copy(content: bytearray, page_bytes: int, sources: list[int], destinations: list[int]) -> None:
    for source, destination in zip(sources, destinations, strict=True):
        page = content[source * page_bytes : (source + 1) * page_bytes]
        content[destination * page_bytes : (destination + 1) * page_bytes] = page


def naive_fill(content: bytearray, page_bytes: int, pages: list[int], value: int) -> None:
    for page in pages:
        content[page * page_bytes : (page + 1) * page_bytes] = bytes([value]) * page_bytes


def random_batch(generator: np.random.Generator, page_count: int) -> tuple[np.ndarray, np.ndarray]:
    """Disjoint sources and destinations: scattered, in runs up or down, or half and half."""
    count = int(generator.integers(1, page_count // 2))
    pages = generator.permutation(page_count).astype(np.int32)
    match generator.integers(4):
        case 0:
            sources, destinations = pages[:count], pages[count : 2 * count]
        case 1:
            sources, destinations = np.sort(pages)[:count], np.sort(pages)[-count:]
        case 2:
            sources, destinations = np.sort(pages)[:count][::-1], np.sort(pages)[-count:][::-1]
        case _:
            sources, destinations = np.sort(pages[:count]), np.sort(pages[count : 2 * count])
    return sources, destinations


@pytest.mark.parametrize("kernels", ["torch", "triton"])
@pytest.mark.parametrize(("small_bytes", "large_bytes"), [(1, 3), (48, 176), (8, 64), (30, 4104), (12, 16400)])
def test_batches_equal_the_naive_ones(
    kernels: Kernels, small_bytes: int, large_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arena_module, "STAGING_BYTES", 100)
    geometry = two_members(small_bytes, large_bytes, 23 * large_bytes + 5)
    arena, twin = (
        Arena(geometry, KERNEL_DEVICE if kernels == "triton" else "cpu", kernels),
        bytearray(geometry.total_bytes),
    )
    generator = np.random.default_rng(3)
    for page in range(23):
        data = generator.bytes(large_bytes)
        arena.write_page(1, page, data)
        twin[page * large_bytes : (page + 1) * large_bytes] = data
    copied = filled = 0
    for index, page_bytes in ((0, small_bytes), (1, large_bytes)) * (10 if kernels == "torch" else 2):
        sources, destinations = random_batch(generator, min(geometry.members[index].page_count, 60))
        arena.copy(index, sources, destinations)
        naive_copy(twin, page_bytes, sources.tolist(), destinations.tolist())
        copied += len(sources) * page_bytes
        pages, value = random_batch(generator, 20)[0], int(generator.integers(256))
        arena.fill(index, pages, value)
        naive_fill(twin, page_bytes, pages.tolist(), value)
        filled += len(pages) * page_bytes
        arena.copy(index, 2, 5)
        naive_copy(twin, page_bytes, [2], [5])
        copied += page_bytes
        arena.fill(index, 4, 0xAB)
        naive_fill(twin, page_bytes, [4], 0xAB)
        filled += page_bytes
        assert arena.bytes.cpu().numpy().tobytes() == twin
    assert arena.launches == 4 * (20 if kernels == "torch" else 4)
    assert (arena.copied_bytes, arena.filled_bytes, arena.waits) == (copied, filled, 0)
    assert arena.read_page(1, 7) == twin[7 * large_bytes : 8 * large_bytes]


def test_a_fresh_arena_is_zero_and_empty_batches_do_nothing() -> None:
    arena, none = Arena(two_members(4, 8, 100)), np.empty(0, np.int32)
    arena.copy(0, none, none)
    arena.fill(1, none, 7)
    assert not arena.bytes.any()
    assert (arena.launches, arena.copied_bytes, arena.filled_bytes) == (0, 0, 0)


def test_batches_that_do_not_match_are_refused() -> None:
    arena = Arena(two_members(4, 8, 100))
    with pytest.raises(ValueError, match="copy of 2 pages to 1; expected as many"):
        arena.copy(0, np.array([1, 2], np.int32), np.array([3], np.int32))
    with pytest.raises(ValueError, match="3 bytes for page 2; expected its size, 4"):
        arena.write_page(0, 2, b"abc")


def test_runs_break_where_either_side_jumps() -> None:
    sources, destinations = np.array([3, 4, 5, 9, 10], np.int32), np.array([20, 21, 30, 31, 32], np.int32)
    assert arena_module.run_starts(sources, destinations).tolist() == [0, 2, 3]
