"""What the device does for the fast pool, measured on a GPU: rates against a plain copy, launches, and no waiting."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median

import msgspec
import torch

from poolproof_fast.device_work import DeviceWork, device_work
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
    make = make_pool or (lambda geometry: FastPool(geometry, device="cuda"))
    return [*(_copied(work, size) for size in PAGE_BYTES), *_translated(work), *pool_rows(make)]


def _copied(work: DeviceWork, page_bytes: int) -> GpuRow:
    """Scattered pages to scattered places in one launch, against one copy of as many bytes that lie together."""
    count = max(LEAST_PAGES, LEAST_BYTES // page_bytes)
    arena = torch.zeros(3 * count * page_bytes, dtype=torch.uint8, device="cuda")
    pages = torch.randperm(3 * count, device="cuda")[: 2 * count].int()
    sources, destinations = pages[:count].contiguous(), pages[count:].contiguous()
    moved = 2 * count * page_bytes
    rate = moved / _seconds(lambda: work.copy_pages(arena, page_bytes, sources, destinations))
    return _rate_row("copy_pages", f"{count} pages of {page_bytes} bytes", rate, _plain_rate(moved))


def _translated(work: DeviceWork) -> Iterator[GpuRow]:
    """Random ids, against one copy of as many bytes; both may stay in the second-level cache."""
    page_of = torch.randperm(TRANSLATED_IDS // PAGE_TOKENS, device="cuda").int()
    for dtype in (torch.int32, torch.int64):
        ids = torch.randperm(page_of.numel() * PAGE_TOKENS, device="cuda").to(dtype)
        slots = torch.empty_like(ids)
        moved = 2 * ids.numel() * ids.element_size()
        rate = moved / _seconds(lambda ids=ids, slots=slots: work.translate(page_of, ids, PAGE_TOKENS, slots))
        yield _rate_row("translate", f"{ids.numel()} ids of {ids.element_size()} bytes", rate, _plain_rate(moved))


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
        end.synchronize()  # type: ignore[no-untyped-call]
        times.append(start.elapsed_time(end) / 1000)  # type: ignore[no-untyped-call]
    return median(times)


def pool_rows(make_pool: Callable[[Geometry], FastPool]) -> Iterator[GpuRow]:
    """Launches, copies from the host, and waits of each operation of a pool whose tables are apart."""
    pool = make_pool(layout("swa2", 2**24, SWA=2048, FULL=4096, page_tokens=PAGE_TOKENS))
    _rehearse(pool)
    for name, prepare, run in (
        ("alloc 1", None, lambda _: pool.alloc(1)),
        ("alloc 4096", None, lambda _: pool.alloc(4096)),
        ("free 4096", lambda: pool.alloc(4096), lambda grant: pool.free(grant.ids)),
        ("decode 64", None, lambda _: pool.decode([PAGE_TOKENS + 1] * 64)),
        ("reserve that evicts", lambda: _fill_up(pool), lambda _: pool.reserve(full=4, swa=4)),
    ):
        prepared = prepare() if prepare else None
        before = _counts(pool)
        with _waits_noted(pool) as waits:
            answer = run(prepared)
        if answer is not None and not answer:
            raise RuntimeError(f"{name}: refused, {answer.reason}; expected a grant")
        launches, copies = (after - was for after, was in zip(_counts(pool), before, strict=True))
        yield GpuRow(work=name, size="1 operation", value=launches, unit="launches", bound=1)
        yield GpuRow(work=name, size="1 operation", value=copies, unit="host-to-device copies", bound=1)
        yield GpuRow(work=name, size="1 operation", value=len(waits), unit="waits for the device", bound=0)


def _rehearse(pool: FastPool) -> None:
    """One launch of each kind, so that nothing is compiled later."""
    grant = pool.alloc(PAGE_TOKENS * 2)
    pool.free(grant.ids)
    pool.store.arena.fill(0, pool.store.members[0].first_page, 0)


def _fill_up(pool: FastPool) -> None:
    """Cached prefixes, and a request that takes what is left."""
    for key in range(CACHED_PREFIXES):
        pool.insert([key])
    pool.alloc(PAGE_TOKENS * pool.available_pages())


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
