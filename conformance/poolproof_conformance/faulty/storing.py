"""Fast pools wrong in what they do with pages: taking, freeing, moving, waiting; and in what they keep count of."""

import numpy as np

from poolproof_fast.arena import Arena
from poolproof_fast.flights import Flights
from poolproof_fast.grants import Grant, Refusal
from poolproof_fast.hygiene import Hygiene
from poolproof_fast.locks import Locks
from poolproof_fast.pages import Ids, MemberPages, Pages
from poolproof_fast.pins import Pins
from poolproof_fast.pool import FastPool
from poolproof_fast.prefix_cache import Victims
from poolproof_fast.question import Needed
from poolproof_fast.recency import Recency
from poolproof_fast.reclaim import Reclaim
from poolproof_fast.staging import Words
from poolproof_fast.store import NO_IDS, Store, Window
from poolproof_spec.outcome import Blocked
from poolproof_spec.verdict import BLOCKERS

# Reserving


class UnlockedTotals(Reclaim):
    """Calls impossible what only locks keep from fitting."""

    def _could_ever_fit(self, needed: Needed) -> bool:
        cache = self.cache
        cached, cache.cached = cache.cached, cache.evictable
        try:
            return super()._could_ever_fit(needed)
        finally:
            cache.cached = cached


class BlamesAll(Reclaim):
    """Blames locks, gates and events for every refusal that is not final."""

    def _blocked(self, needed: Needed, may_wait: bool) -> Refusal:
        return Refusal(Blocked(by=BLOCKERS))


class WaitsUnasked(Reclaim):
    """Waits for events also where its caller does not."""

    def reserve(self, needed: Needed, may_wait: bool, recovered: Ids = NO_IDS) -> Grant | Refusal:
        """As if it might."""
        return super().reserve(needed, True, recovered)


class KeepsIds(Reclaim):
    """Frees the pages of its victims and not their ids."""

    def evict(self, victims: Victims) -> None:
        """The free ids stay as they are."""
        tokens = self.store.tokens
        top, owners = tokens.top, tokens.owner[:]
        super().evict(victims)
        tokens.top, tokens.owner[:] = top, owners


class NeverSettles(FastPool):
    """Does not count grouped frees."""

    def _flush_group(self) -> None:
        if not self._in_demand:
            super()._flush_group()

    _in_demand = False

    def _reserve(self, needed: Needed, may_wait: bool, recovered: Ids) -> Grant | Refusal:
        self._in_demand = True
        try:
            return super()._reserve(needed, may_wait, recovered)
        finally:
            self._in_demand = False


# Taking and freeing pages


class SwaTwice(FastPool):
    """Frees the SWA page of a token again that was freed with the window."""

    def _free(self, token_ids: Ids, state_ids: Ids) -> None:
        if len(token_ids):
            for member in self._swa:
                member.page_of_np[token_ids] = np.maximum(member.page_of_np[token_ids], member.first_page)
        super()._free(token_ids, state_ids)


class FloatAtHome(MemberPages):
    """An empty float begins at its first page, whoever lies there."""

    __slots__ = ()

    def next_page(self, start: int, end: int) -> int:
        """The window does not matter."""
        if self.kind == "float" and not self.taken:
            return self.first_page
        return super().next_page(start, end)


class ForgetsBirth(MemberPages):
    """Takes new pages for older than the forwards in flight."""

    __slots__ = ()

    def bind(self, page: int, identifier: int, launches: int) -> None:
        """Born before the first forward."""
        super().bind(page, identifier, 0)

    def bind_many(self, pages: Pages, ids: Ids, launches: int) -> None:
        """Born before the first forward."""
        super().bind_many(pages, ids, 0)


class ForgetsWaits(MemberPages):
    """Frees a pending page when the first of its events fires."""

    __slots__ = ()

    def end_waits(self, pages: Pages) -> Pages:
        """Whatever else it waits for."""
        assert self.waits is not None, "a page waits"
        pages = pages[self.waits[pages] > 0]
        self.waits[pages] = 0
        self.vacate_many(pages)
        return pages


# Moving pages


class IgnoresGate(Store):
    """Moves pages behind a closed gate."""

    def pins(self, may_wait: bool) -> list[Pins] | None:
        """As if it were open."""
        gate_open, self.gate_open = self.gate_open, True
        try:
            return super().pins(may_wait)
        finally:
            self.gate_open = gate_open


class MovesWritten(Store):
    """Moves pages that a forward is writing."""

    def _movable(self, member: MemberPages) -> np.ndarray:
        return member.bound_np


class CopiesBackwards(Store):
    """Runs its batches of moves in the wrong order."""

    def make_room(self, needed: Needed, may_wait: bool) -> tuple[list[Window | None], tuple[int, ...], int]:
        """All are found, then all are run, the last one first."""
        self._batches: list[tuple[int, Pages, Pages]] = []
        found = super().make_room(needed, may_wait)
        for batch in reversed(self._batches):
            super().move(*batch)
        return found

    def move(self, index: int, sources: Pages, destinations: Pages) -> None:
        """Later."""
        self._batches.append((index, sources, destinations))

    def compact(self) -> None:
        """One batch a member: no order can be wrong."""
        self._batches = []
        super().compact()
        for batch in self._batches:
            super().move(*batch)


class NoCopies(Arena):
    """Moves the name of a page and not its bytes."""

    def copy(self, index: int, sources: int | Words, destinations: int | Words) -> None:
        """Nothing."""


class LeavesNothing(Flights):
    """Frees the old place of a page under its readers in flight."""

    __slots__ = ()

    def leave_behind(self, member: MemberPages, ids: Ids, sources: Pages) -> None:
        """Vacant at once."""
        member.vacate_many(sources)


class NoHygiene(Hygiene):
    """Hands pages out with what another member left in them."""

    def dirty(self, index: int, pages: Words) -> Words:
        """None of them."""
        return super().dirty(index, pages)[:0]

    def dirty_one(self, index: int, page: int) -> bool:
        """No."""
        super().dirty_one(index, page)
        return False


# What the cache keeps count of


class SplitUnlocks(Locks):
    """The upper part of a locked node that is split has no locks."""

    def inherit(self, upper: int, lower: int) -> None:
        """Nothing."""


class ForgetsUnlocked(Recency):
    """Goes on from where it last found something to evict, though an older node was unlocked since."""

    def lower(self, node: int) -> None:
        """Nothing."""
