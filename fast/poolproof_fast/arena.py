"""The bytes of the pool: one arena on the device, whose pages are copied and filled a batch at a time."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch

from poolproof_fast.device_work import Kernels, default_kernels, device_work
from poolproof_fast.staging import Staging, Words
from poolproof_spec.geometry import Geometry

STAGING_BYTES = 256 * 1024
"""Scattered small pages of a CPU arena are gathered through this much memory at a time: it stays in the L2 cache."""

DIRECT_BYTES = 16 * 1024
"""CPU pages of this size and more are copied one by one, straight from place to place: a slice costs less than the
second pass through the cache."""

PAGES_A_RUN = 4
"""A CPU batch that falls into runs of this many pages on average is copied run by run."""


class Arena:
    """`total_bytes` of zeroes on a device, seen as the page grid of each member.

    Every batch is one launch on the current stream (or one piece of host work on a CPU) and never waits for the
    device. Page offsets are 64 bits wide: an arena may be larger than 2 GiB.
    """

    def __init__(self, geometry: Geometry, device: str | torch.device = "cpu", kernels: Kernels | None = None) -> None:
        """`kernels` None: Triton on a GPU, plain NumPy on a CPU."""
        where = torch.device(device)
        self.bytes = torch.zeros(geometry.total_bytes, dtype=torch.uint8, device=where)
        """The arena itself, uint8 [total_bytes]; its address never changes."""
        self.launches = 0
        """Batches copied or filled so far, each one launch."""
        self.copied_bytes = 0
        """Bytes copied from page to page so far."""
        self.filled_bytes = 0
        """Bytes filled so far."""
        self._page_bytes = [int(member.page_bytes) for member in geometry.members]
        chosen = default_kernels(where) if kernels is None else kernels
        self._host = (
            HostPages(self.bytes.numpy(), self._page_bytes) if (where.type, chosen) == ("cpu", "torch") else None
        )
        if self._host is None:
            self._work = device_work(chosen)
            # Sources and destinations are disjoint: a batch of one member never needs more than two words a page.
            self._staging = Staging(2 * max(member.page_count for member in geometry.members), where)

    @property
    def copies(self) -> int:
        """Host-to-device copies of page numbers so far."""
        return 0 if self._host is not None else self._staging.copy_count

    @property
    def waits(self) -> int:
        """How often the host has waited for the device, because too many batches were still under way."""
        return 0 if self._host is not None else self._staging.wait_count

    def copy(self, index: int, sources: int | Words, destinations: int | Words) -> None:
        """Copy page sources[k] of a member to destinations[k] for every k: int32 [pages], or one page as two ints.

        No page may be in both. One launch; none for an empty batch. ValueError where the two are not equally many.
        """
        count, expected = _count(sources), _count(destinations)
        if count != expected:
            raise ValueError(f"copy of {count} pages to {expected}; expected as many destinations as sources")
        if not count:
            return
        self.launches += 1
        self.copied_bytes += count * self._page_bytes[index]
        if self._host is not None:
            self._host.copy(index, sources, destinations)
            return
        words = self._staging.room(2 * count)
        words[:count] = sources
        words[count:] = destinations
        landed = self._staging.send()
        self._work.copy_pages(self.bytes, self._page_bytes[index], landed[:count], landed[count:])
        self._staging.sent()

    def fill(self, index: int, pages: int | Words, value: int) -> None:
        """Set every byte of these pages of a member to `value`, in [0, 256): int32 [pages], or one page as an int."""
        count = _count(pages)
        if not count:
            return
        self.launches += 1
        self.filled_bytes += count * self._page_bytes[index]
        if self._host is not None:
            self._host.fill(index, pages, value)
            return
        self._staging.room(count)[:] = pages
        self._work.fill_pages(self.bytes, self._page_bytes[index], self._staging.send(), value)
        self._staging.sent()

    def read_page(self, index: int, page: int) -> bytes:
        """The content of one page. For harnesses: on a GPU it waits for the device."""
        return self._slice(index, page).cpu().numpy().tobytes()

    def write_page(self, index: int, page: int, data: bytes) -> None:
        """Replace the content of one page. For harnesses: on a GPU it waits. ValueError for another size of data."""
        target = self._slice(index, page)
        if len(data) != target.numel():
            raise ValueError(f"{len(data)} bytes for page {page}; expected its size, {target.numel()}")
        target.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))

    def _slice(self, index: int, page: int) -> torch.Tensor:
        size = self._page_bytes[index]
        return self.bytes[page * size : (page + 1) * size]


def _count(pages: int | Words) -> int:
    return 1 if isinstance(pages, int) else len(pages)


class HostPages:
    """The CPU's way with pages: slices for runs and for large pages, a small fixed staging area for scattered ones."""

    def __init__(self, content: npt.NDArray[np.uint8], page_bytes: list[int]) -> None:
        """`content` is the whole arena, page sizes as the members have them."""
        self._content = content
        self._memory = content.data
        self._page_bytes = page_bytes
        # One opaque element for each page: NumPy moves it as one memcpy, whatever its size.
        self._pages = [content[: len(content) // size * size].view(np.dtype((np.void, size))) for size in page_bytes]
        self._staged = [
            np.empty(max(1, STAGING_BYTES // size), pages.dtype) if size < DIRECT_BYTES else pages[:0]
            for size, pages in zip(page_bytes, self._pages, strict=True)
        ]

    def copy(self, index: int, sources: int | Words, destinations: int | Words) -> None:
        """As `Arena.copy`."""
        if isinstance(sources, int) or isinstance(destinations, int):
            self._copy_run(self._page_bytes[index], int(sources), int(destinations), 1)
            return
        if sources[0] > sources[-1]:
            # The order of copies does not matter: look for runs in the direction that pages are likely listed in.
            sources, destinations = sources[::-1], destinations[::-1]
        starts = run_starts(sources, destinations)
        size = self._page_bytes[index]
        if size >= DIRECT_BYTES or len(starts) * PAGES_A_RUN <= len(sources):
            firsts = zip(sources[starts].tolist(), destinations[starts].tolist(), strict=True)
            for (source, destination), (start, end) in zip(firsts, _spans(starts, len(sources)), strict=True):
                self._copy_run(size, source, destination, end - start)
            return
        pages, staged = self._pages[index], self._staged[index]
        for start in range(0, len(sources), len(staged)):
            some = sources[start : start + len(staged)]
            part = staged[: len(some)]
            # Mode "clip" writes straight into the staging area; the default would make a second one.
            pages.take(some, out=part, mode="clip")
            pages[destinations[start : start + len(staged)]] = part

    def _copy_run(self, size: int, source: int, destination: int, count: int) -> None:
        memory, length = self._memory, count * size
        start, target = source * size, destination * size
        memory[target : target + length] = memory[start : start + length]

    def fill(self, index: int, pages: int | Words, value: int) -> None:
        """As `Arena.fill`."""
        size = self._page_bytes[index]
        if isinstance(pages, int):
            self._content[pages * size : (pages + 1) * size].fill(value)
            return
        starts = run_starts(pages, pages)
        if size >= DIRECT_BYTES or len(starts) * PAGES_A_RUN <= len(pages):
            for first, (start, end) in zip(pages[starts].tolist(), _spans(starts, len(pages)), strict=True):
                self._content[first * size : (first + end - start) * size].fill(value)
            return
        self._pages[index][pages] = np.full(size, value, np.uint8).view(np.dtype((np.void, size)))[0]


def run_starts(sources: Words, destinations: Words) -> npt.NDArray[np.intp]:
    """Where a run begins, in positions: along a run both page numbers go up by one. Both int32 [pages], not empty."""
    broken = np.flatnonzero((np.diff(sources) != 1) | (np.diff(destinations) != 1)) + 1
    return np.concatenate(([0], broken))


def _spans(starts: npt.NDArray[np.intp], count: int) -> Iterator[tuple[int, int]]:
    return pairwise([*starts.tolist(), count])
