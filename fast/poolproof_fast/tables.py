"""The tables from virtual ids to pages and back: the host's are authoritative, the device's follow."""

from array import array
from collections.abc import Sequence

import numpy as np
import torch

from poolproof_fast.device_work import Kernels, device_work
from poolproof_fast.staging import Staging, Words

ALIGNED_ENTRIES = 32
"""Each table begins at a multiple of this many entries (128 bytes), so that kernels may load whole cache lines."""


class Tables:
    """For each member page_of (virtual id -> page) and id_at (page -> virtual id); 0 is unbound.

    All memory is allocated once: addresses never change, so a captured CUDA graph sees every later change. Host and
    device share memory where they can (`apart` False, on a CPU); then there is nothing to bring up to date. Otherwise
    `touch` notes which entries were changed, and `flush` brings them over.
    """

    def __init__(
        self,
        sizes: Sequence[tuple[int, int]],
        device: str | torch.device = "cpu",
        apart: bool | None = None,
        kernels: Kernels = "torch",
    ) -> None:
        """`sizes` has (ids, pages) for each member: the lengths of page_of and id_at, ids and pages below `first` too.

        `apart` None: apart on a GPU, shared on a CPU. ValueError for tables on a GPU that are not to be apart, and
        for a table without entries (id 0 and page 0 are always there).
        """
        if any(ids < 1 or pages < 1 for ids, pages in sizes):
            raise ValueError(f"table sizes {list(sizes)}; expected at least one id and one page for each member")
        where = torch.device(device)
        self.apart = where.type == "cuda" if apart is None else apart
        """Whether the device's tables are memory of their own, which `flush` brings up to date."""
        if where.type == "cuda" and not self.apart:
            raise ValueError(f"tables shared with the host on {where}; expected apart=True, only a CPU shares memory")
        self.page_of = [array("i", bytes(4 * ids)) for ids, _ in sizes]
        """Host: virtual id -> page for each member, 0 where unbound; written by the pool."""
        self.id_at = [array("i", bytes(4 * pages)) for _, pages in sizes]
        """Host: page -> virtual id for each member, 0 where nothing lives."""
        self.page_of_np: list[Words] = [np.frombuffer(entries, np.int32) for entries in self.page_of]
        """The same memory as `page_of`, for bulk work."""
        self.id_at_np: list[Words] = [np.frombuffer(entries, np.int32) for entries in self.id_at]
        """The same memory as `id_at`, for bulk work."""
        self.launches = 0
        """Kernel launches (or calls of the twin) so far."""
        self._mirrors = [mirror for pair in zip(self.page_of, self.id_at, strict=True) for mirror in pair]
        self._mirrors_np = [np.frombuffer(mirror, np.int32) for mirror in self._mirrors]
        self._starts, self._entry_count = _starts([len(mirror) for mirror in self._mirrors])
        self._positions: list[int] = []
        self._tables_of: list[int] = []
        self._notes: list[tuple[int, Words]] = []
        self._noted_count = 0
        if self.apart:
            self._be_apart(where, kernels)
        else:
            self._device = [torch.frombuffer(mirror, dtype=torch.int32) for mirror in self._mirrors]

    def _be_apart(self, device: torch.device, kernels: Kernels) -> None:
        self._flat = torch.zeros(self._entry_count, dtype=torch.int32, device=device)
        self._flat_np: Words | None = self._flat.numpy() if device.type == "cpu" and kernels == "torch" else None
        self._device = [
            self._flat[start : start + len(mirror)] for start, mirror in zip(self._starts, self._mirrors, strict=True)
        ]
        self._staging = Staging(self._entry_count, device)
        self._scatter = device_work(kernels).scatter

    @property
    def copies(self) -> int:
        """Host-to-device copies so far."""
        return self._staging.copy_count if self.apart else 0

    @property
    def waits(self) -> int:
        """How often a flush has waited for the device, because too many flushes were still under way."""
        return self._staging.wait_count if self.apart else 0

    def device_page_of(self, index: int) -> torch.Tensor:
        """The device's page_of of a member, int32 [ids]; its address never changes."""
        return self._device[2 * index]

    def device_id_at(self, index: int) -> torch.Tensor:
        """The device's id_at of a member, int32 [pages]; its address never changes."""
        return self._device[2 * index + 1]

    def touch(self, index: int, ids: int | Words, pages: int | Words) -> None:
        """Note that page_of[ids] and id_at[pages] of a member were changed or will be before `flush`.

        The two need not be equally many. Nothing to do where the memory is shared.
        """
        if not self.apart:
            return
        self._note(2 * index, ids)
        self._note(2 * index + 1, pages)

    def _note(self, table: int, entries: int | Words) -> None:
        if isinstance(entries, int):
            self._positions.append(self._starts[table] + entries)
            self._tables_of.append(table)
            self._noted_count += 1
        elif len(entries):
            self._notes.append((table, entries.copy()))
            self._noted_count += len(entries)

    def flush(self) -> None:
        """Bring the device up to date: one copy and one launch, on the current stream; nothing if nothing was noted.

        Values are read now, so the last one written counts. Where more than half as many entries were noted as there
        are, all tables are copied instead, which is fewer bytes and needs no launch. Not to be called while a CUDA
        graph is captured: replays of the graph see what was flushed before them.
        """
        count = self._noted_count
        if not count:
            return
        if 2 * count > self._entry_count:
            self._copy_all()
        else:
            self._gather(count, self._staging.room(2 * count))
            if self._flat_np is not None:
                words = self._staging.send_host()
                self._flat_np[words[:count]] = words[count:]
            else:
                landed = self._staging.send()
                self._scatter(self._flat, landed[:count], landed[count:])
            self.launches += 1
        self._staging.sent()
        self._positions.clear()
        self._tables_of.clear()
        self._notes.clear()
        self._noted_count = 0

    def _gather(self, count: int, words: Words) -> None:
        """Fill `words` [2 * count] with the noted positions, then their values."""
        positions, starts, mirrors = self._positions, self._starts, self._mirrors
        at = len(positions)
        if at:
            tables = zip(positions, self._tables_of, strict=True)
            values = [mirrors[table][position - starts[table]] for position, table in tables]
            if at == count:
                words[:] = positions + values
                return
            words[:at] = positions
            words[count : count + at] = values
        for table, entries in self._notes:
            end = at + len(entries)
            np.add(entries, starts[table], out=words[at:end], casting="same_kind")
            words[count + at : count + end] = self._mirrors_np[table][entries]
            at = end

    def _copy_all(self) -> None:
        words = self._staging.room(self._entry_count)
        for start, mirror in zip(self._starts, self._mirrors_np, strict=True):
            words[start : start + len(mirror)] = mirror
        self._staging.send_to(self._flat)


def _starts(lengths: Sequence[int]) -> tuple[list[int], int]:
    """Where each table begins in the flat tensor, and the length of that tensor, in entries."""
    starts, end = [], 0
    for length in lengths:
        starts.append(end)
        end += -(-length // ALIGNED_ENTRIES) * ALIGNED_ENTRIES
    if end >= 2**31:
        raise ValueError(f"tables of {end} entries; expected fewer than 2**31, positions are int32")
    return starts, end
