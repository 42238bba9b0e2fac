"""What the device does for the fast pool, measured on a GPU: rates against a plain copy, launches, and no waiting."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median

import msgspec
import torch

from poolproof_fast.device_work import DeviceWork, device_work
from poolproof_fast.grants import Grant, Refusal
from poolproof_fast.pool import FastPool
from poolproof_spec.geometry import Geometry, layout

REPEATS = 20
"""Timed runs of each work; their median counts."""

WARM_UPS = 3
"""Runs before the timed ones: kernels are compiled in the first."""

LEAST_BYTES = 64 * 2**20
"""A batch of pages is at least this large, so that a launch is small beside it."""

LEAST_PAGES = 5000
"""A batch has at least this many pages."""

PAGE_BYTES = (64, 4096, 65536)
"""Sizes of the pages that are copied."""

TRANSLATED_IDS = 1_000_000
"""Ids of one translation."""

PAGE_TOKENS = 16
"""Tokens of a page in the translation and in the pool."""

CACHED_PREFIXES = 64
"""Prefixes in the cache of the pool that evicts."""


class GpuRow(msgspec.Struct, frozen=True, kw_only=True):
    """One figure."""

    work: str
    size: str
    value: float | None
    """None where it was not measured."""
    unit: str
    bound: float | None = None
    """What the figure is held against, in the same unit: a plain copy in the same run, or the number allowed."""
    ratio: float | None = None
    """value / bound, where the bound is a rate."""


def measure_gpu(make_pool: Callable[[Geometry], FastPool] | None = None) -> list[GpuRow]:
    """All figures; a single row that says so where there is no GPU. `make_pool` None: FastPool on the first GPU.

    A rate counts bytes read and bytes written, of data only, not of page numbers or tables.
    """
    if not torch.cuda.is_available():
        return [GpuRow(work="gpu", size="", value=None, unit="not measured: no CUDA device")]
    work = device_work("triton")
    return [
        *(_copied(work, size) for size in PAGE_BYTES),
        *(_translated(work, dtype) for dtype in (torch.int32, torch.int64)),
        *pool_rows(make_pool or (lambda geometry: FastPool(geometry, device="cuda"))),
    ]


def _copied(work: DeviceWork, page_bytes: int) -> GpuRow:
    """Scattered pages to scattered places in one launch, against one copy of as many bytes that lie together."""
    count = max(LEAST_PAGES, LEAST_BYTES // page_bytes)
    arena = torch.zeros(3 * count * page_bytes, dtype=torch.uint8, device="cuda")
    pages = torch.randperm(3 * count, device="cuda")[: 2 * count].int()
    sources, destinations = pages[:count].contiguous(), pages[count:].contiguous()
    moved = 2 * count * page_bytes
    rate = moved / _seconds(lambda: work.copy_pages(arena, page_bytes, sources, destinations))
    return _rate_row("copy_pages", f"{count} pages of {page_bytes} bytes", rate, _plain_rate(moved))


def _translated(work: DeviceWork, dtype: torch.dtype) -> GpuRow:
    """Random ids, against one copy of as many bytes; both may stay in the second-level cache."""
    page_of = torch.randperm(TRANSLATED_IDS // PAGE_TOKENS, device="cuda").int()
    ids = torch.randperm(page_of.numel() * PAGE_TOKENS, device="cuda").to(dtype)
    slots = torch.empty_like(ids)
    moved = 2 * ids.numel() * ids.element_size()
    rate = moved / _seconds(lambda: work.translate(page_of, ids, PAGE_TOKENS, slots))
    return _rate_row("translate", f"{ids.numel()} ids of {ids.element_size()} bytes", rate, _plain_rate(moved))


def _rate_row(work: str, size: str, rate: float, bound: float) -> GpuRow:
    giga = 1e9
    return GpuRow(work=work, size=size, value=rate / giga, unit="GB/s", bound=bound / giga, ratio=rate / bound)


def _plain_rate(moved_bytes: int) -> float:
    """Bytes a second, read and written, of PyTorch's own copy from one place of the device to another."""
    source = torch.zeros(moved_bytes // 2, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return moved_bytes / _seconds(lambda: target.copy_(source))


def _seconds(run: Callable[[], object]) -> float:
    """Median device time of one run."""
    for _ in range(WARM_UPS):
        run()
    times = []
    for _ in range(REPEATS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(float(start.elapsed_time(end)) / 1000)
    return median(times)


def pool_rows(make_pool: Callable[[Geometry], FastPool]) -> Iterator[GpuRow]:
    """Launches, copies from the host, and waits of each operation of a pool whose tables are apart."""
    pool = make_pool(layout("swa2", 2**24, SWA=2048, FULL=4096, page_tokens=PAGE_TOKENS))
    _granted(pool.alloc(PAGE_TOKENS * 2))
    # One launch of each kind, so that nothing is compiled later.
    pool.store.arena.fill(0, pool.store.members[0].first_page, 0)
    yield from _operation_rows(pool, "alloc 1", lambda: _granted(pool.alloc(1)))
    yield from _operation_rows(pool, "alloc 4096", lambda: _granted(pool.alloc(4096)))
    given = _granted(pool.alloc(4096)).ids
    yield from _operation_rows(pool, "free 4096", lambda: pool.free(given))
    yield from _operation_rows(pool, "decode 64", lambda: _granted(pool.decode([PAGE_TOKENS + 1] * 64)))
    for key in range(CACHED_PREFIXES):
        pool.insert([key])
    _granted(pool.alloc(PAGE_TOKENS * pool.available_pages()))
    yield from _operation_rows(pool, "reserve that evicts", lambda: _granted(pool.reserve(full=4, swa=4)))


def _operation_rows(pool: FastPool, name: str, run: Callable[[], object]) -> Iterator[GpuRow]:
    before = _counts(pool)
    with _waits_noted(pool) as waits:
        run()
    launches, copies = (after - was for after, was in zip(_counts(pool), before, strict=True))
    for value, unit, bound in (
        (launches, "launches", 1),
        (copies, "host-to-device copies", 1),
        (len(waits), "waits for the device", 0),
    ):
        yield GpuRow(work=name, size="1 operation", value=value, unit=unit, bound=bound)


def _granted(answer: Grant | Refusal) -> Grant:
    """The grant; a refusal would leave nothing to measure."""
    if not isinstance(answer, Grant):
        raise ValueError(f"refused: {answer.reason}; expected a grant")
    return answer


def _counts(pool: FastPool) -> tuple[int, int]:
    tables, arena = pool.store.tables, pool.store.arena
    return tables.launches + arena.launches, tables.copies + arena.copies


@contextmanager
def _waits_noted(pool: FastPool) -> Iterator[list[str]]:
    """What waited: PyTorch raises at the first call that does, and our own rings count."""
    waits: list[str] = []
    rings = pool.store.tables.waits + pool.store.arena.waits
    on_gpu = pool.store.device.type == "cuda"
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield waits
    except RuntimeError as error:
        if "synchron" not in str(error):
            raise
        waits.append(str(error))
    finally:
        if on_gpu:
            torch.cuda.set_sync_debug_mode("default")
    waits += ["ring full"] * (pool.store.tables.waits + pool.store.arena.waits - rings)
