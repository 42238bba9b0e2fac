"""The bytes of a soaked pool: what was written to each id is read back through the device's tables [W6].

A stamp fills its page; its highest bits name the member, so that a page handed out with another member's bytes is seen.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from poolproof_fast.pages import Ids, Pages
from poolproof_fast.pool import FastPool

MEMBER_SHIFT = 28
"""Bits of a stamp below the member's number."""
POISONED = 0xFFFFFFFF
"""A word of a page that debug mode poisoned when it was freed."""
Words = NDArray[np.uint32]


class Stamps:
    """What was written to each id of each member, and the arena as pages of words."""

    def __init__(self, pool: FastPool) -> None:
        self.pool = pool
        words = pool.store.arena.bytes.numpy().view(np.uint32)
        self.grids: list[Words] = []
        for member in pool.geometry.members:
            width = member.page_bytes // 4
            assert member.page_bytes % 4 == 0, "a page holds whole words"
            self.grids.append(words[: member.page_count * width].reshape(member.page_count, width))
        self.written = [np.zeros(len(member.page_of_np), np.uint32) for member in pool.store.members]
        """Stamp of each id; 0 where nothing was written since it got its page."""
        self.writers = [np.zeros(len(member.page_of_np), np.int32) for member in pool.store.members]
        """For each id: forwards in flight that write it."""
        self.count = 0
        """Stamps given out, over all members."""
        self.checked = 0
        """Pages that were read back."""

    def handed_out(self, index: int, ids: Ids) -> None:
        """New pages: they hold zeroes or what the same member left, never another's bytes."""
        self.written[index][ids] = 0
        words = self.grids[index][self.pool.store.members[index].page_of_np[ids]]
        foreign = (words != 0) & (words >> MEMBER_SHIFT != index + 1)
        if self.pool.store.poison_freed:
            foreign &= words != POISONED
        assert not foreign.any(), f"member {index}: a page was handed out with another member's bytes"

    def places(self, index: int, ids: Ids) -> Pages:
        """The pages of ids, as a forward finds them: through the device's table."""
        self.pool.flush_tables()
        page_tokens = self.pool.geometry.page_tokens
        if self.pool.geometry.members[index].role == "state":
            return self.pool.store.tables.device_page_of(index).numpy()[ids]
        slots = self.pool.translate(index, torch.from_numpy(ids.astype(np.int64) * page_tokens))
        return (slots.numpy() // page_tokens).astype(np.int32)

    def write(self, index: int, ids: Ids, pages: Pages | None = None) -> None:
        """Write a new stamp to each id, where the table says, or at pages that a forward looked up before."""
        if not len(ids):
            return
        at = self.places(index, ids) if pages is None else pages
        stamps = ((np.arange(len(ids)) + self.count) % (1 << MEMBER_SHIFT) + ((index + 1) << MEMBER_SHIFT)).astype(
            np.uint32
        )
        self.count += len(ids)
        self.grids[index][at] = stamps[:, None]
        self.written[index][ids] = stamps

    def check(self, index: int, ids: Ids) -> None:
        """Each id that was written to reads what was written."""
        known = ids[self.written[index][ids] != 0]
        if not len(known):
            return
        found = self.grids[index][self.places(index, known)]
        wrong = (found != self.written[index][known][:, None]).any(axis=1)
        assert not wrong.any(), f"member {index}: [W6] ids {known[wrong][:5]} do not read what was written to them"
        self.checked += len(known)

    def check_all(self) -> None:
        """Every live page of every member."""
        for index, member in enumerate(self.pool.store.members):
            self.check(index, np.flatnonzero(member.page_of_np).astype(np.int32))
