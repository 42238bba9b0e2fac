"""One member's pages on the host: which are free, where the next ones are taken, and the extent of the rest.

One byte a page says whether it is vacant, so that `bytearray.find` (a vectorised memory scan) answers every question
of the form "the next free page from here" or "the lowest page in use", and the same memory is a NumPy array for bulk.
"""

from array import array

import numpy as np
from numpy.typing import NDArray

from poolproof_fast.runs import Where, where
from poolproof_spec.geometry import Member

Pages = NDArray[np.int32]
"""Physical pages of one member."""
Ids = NDArray[np.int32]
"""Virtual ids."""

FIRST_CHUNK_PAGES = 1024
"""Pages that a search for many vacant ones looks at first; it doubles."""


class MemberPages:
    """Vacant pages, bindings and the extent of one member. `page_of` and `id_at` are the host's side of the tables."""

    __slots__ = (
        "born",
        "born_np",
        "bound",
        "bound_np",
        "first_page",
        "high",
        "id_at",
        "id_at_np",
        "index",
        "kind",
        "live",
        "low",
        "lowest_vacant",
        "name",
        "page_count",
        "page_of",
        "page_of_np",
        "past_highest_vacant",
        "role",
        "taken",
        "vacant",
        "vacant_np",
        "waits",
    )

    def __init__(
        self,
        index: int,
        member: Member,
        tables: "tuple[array[int], array[int]]",
        views: tuple[Ids, Ids],
    ) -> None:
        self.index, self.name, self.role, self.kind = index, member.name, member.role, member.kind
        self.first_page, self.page_count = int(member.first_page), int(member.page_count)
        self.page_of, self.id_at = tables
        self.page_of_np, self.id_at_np = views
        self.born = array("q", bytes(8 * len(self.page_of)))
        """For each id: how many forwards had been launched when it was bound; a later one reads it."""
        self.born_np = np.frombuffer(self.born, dtype=np.int64)
        self.waits: NDArray[np.int16] | None = None
        """For each page: events that it still waits for; made when the first page becomes pending."""
        self.vacant = bytearray(self.page_count)
        """1 for each page that is neither live nor pending; the sink's pages are never vacant."""
        self.vacant[self.first_page :] = b"\1" * (self.page_count - self.first_page)
        self.vacant_np = np.frombuffer(self.vacant, dtype=np.uint8)
        self.bound = bytearray(self.page_count)
        """1 for each live page."""
        self.bound_np = np.frombuffer(self.bound, dtype=np.uint8)
        self.taken = 0
        """Pages that are live or pending."""
        self.live = 0
        """Pages that are bound to an id."""
        self.low, self.high = self.page_count, 0
        """Extent of the taken pages, [low, high); high is 0 when there is none."""
        self.lowest_vacant = self.first_page
        """Below it no page is vacant; of a float: none that lies in its extent."""
        self.past_highest_vacant = self.page_count
        """From it on no page is vacant."""

    # One page

    def next_page(self, start: int, end: int) -> int:
        """The vacant page of [start, end) nearest to where the member grows from. There must be one."""
        if self.kind == "up":
            page = self.lowest_vacant = self.vacant.find(1, self.lowest_vacant)
            return page
        if self.kind == "down":
            page = self.vacant.rfind(1, 0, self.past_highest_vacant)
            self.past_highest_vacant = page + 1
            return page
        if not self.taken:
            return (start + end) // 2
        if self.high - self.low > self.taken:
            page = self.lowest_vacant = self.vacant.find(1, max(self.low, self.lowest_vacant), self.high)
            return page
        return self.low - 1 if self.low - start > end - self.high else self.high

    def bind(self, page: int, identifier: int, launches: int) -> None:
        """Give an id a vacant page."""
        self.page_of[identifier] = page
        self.id_at[page] = identifier
        self.born[identifier] = launches
        self.vacant[page] = 0
        self.bound[page] = 1
        self.live += 1
        self.taken += 1
        if page < self.low:
            self.low = page
            if page < self.lowest_vacant:
                self.lowest_vacant = page
        if page >= self.high:
            self.high = page + 1

    def release(self, identifier: int) -> int:
        """Take an id's page away; returns the page, which is vacant now."""
        page = self.page_of[identifier]
        self.page_of[identifier] = 0
        self.id_at[page] = 0
        self.bound[page] = 0
        self.live -= 1
        self._vacate(page)
        return page

    def _vacate(self, page: int) -> None:
        self.vacant[page] = 1
        self.taken -= 1
        if page < self.lowest_vacant:
            self.lowest_vacant = page
        if page >= self.past_highest_vacant:
            self.past_highest_vacant = page + 1
        if page == self.high - 1 or page == self.low:
            self._measure()

    # Many pages

    def next_pages(self, count: int, start: int, end: int) -> Pages:
        """`count` vacant pages of [start, end), nearest to where the member grows from. There must be so many."""
        if self.kind == "up":
            pages = self._lowest(count, self.lowest_vacant, end)
            self.lowest_vacant = int(pages[-1]) + 1
            return pages
        if self.kind == "down":
            pages = self._highest(count, start, self.past_highest_vacant)
            self.past_highest_vacant = int(pages[-1])
            return pages
        return self._around(count, start, end)

    def _lowest(self, count: int, start: int, end: int) -> Pages:
        found, chunk = [], max(FIRST_CHUNK_PAGES, count)
        while count:
            start = self.vacant.find(1, start, end)
            assert start >= 0, "the window has room"
            pages = np.flatnonzero(self.vacant_np[start : min(start + chunk, end)].view(np.bool_))[:count]
            found.append(pages + start)
            count -= len(pages)
            start, chunk = start + chunk, 2 * chunk
        return _joined(found)

    def _highest(self, count: int, start: int, end: int) -> Pages:
        found, chunk = [], max(FIRST_CHUNK_PAGES, count)
        while count:
            end = self.vacant.rfind(1, start, end) + 1
            assert end > start, "the window has room"
            bottom = max(start, end - chunk)
            pages = np.flatnonzero(self.vacant_np[bottom:end].view(np.bool_))[::-1][:count]
            found.append(pages + bottom)
            count -= len(pages)
            end, chunk = bottom, 2 * chunk
        return _joined(found)

    def _around(self, count: int, start: int, end: int) -> Pages:
        """Holes first, then where there is more room, so that both neighbours keep some; empty: in the middle."""
        if not self.taken:
            first = min(max((start + end - count) // 2, start), end - count)
            return np.arange(first, first + count, dtype=np.int32)
        holes = min(count, self.high - self.low - self.taken)
        found = [self._lowest(holes, max(self.low, self.lowest_vacant), self.high)] if holes else []
        rest = count - holes
        room_below, room_above = self.low - start, end - self.high
        below = min(max((rest + room_below - room_above) // 2, rest - room_above, 0), room_below, rest)
        above = rest - below
        found.append(np.arange(self.low - 1, self.low - 1 - below, -1, dtype=np.int32))
        found.append(np.arange(self.high, self.high + above, dtype=np.int32))
        return _joined(found)

    def bind_many(self, pages: Pages, ids: Ids, launches: int) -> None:
        """Give each id its vacant page."""
        by_id, by_page = where(ids), where(pages)
        self.page_of_np[by_id] = pages
        self.born_np[by_id] = launches
        self.id_at_np[by_page] = ids
        self.vacant_np[by_page] = 0
        self.bound_np[by_page] = 1
        self.live += len(ids)
        self.taken += len(ids)
        self._stretch(pages)

    def release_many(self, ids: Ids) -> Pages:
        """Take the pages of ids away, each id given once; returns the pages, which are vacant now."""
        by_id = where(ids)
        pages: Pages = self.page_of_np[by_id].copy()
        by_page = where(pages)
        self.page_of_np[by_id] = 0
        self.id_at_np[by_page] = 0
        self.bound_np[by_page] = 0
        self.live -= len(ids)
        self._vacate_many(pages, by_page)
        return pages

    def vacate_many(self, pages: Pages) -> None:
        """Pages that are bound to no id become vacant."""
        if len(pages):
            self._vacate_many(pages, where(pages))

    def _vacate_many(self, pages: Pages, by_page: Where) -> None:
        self.vacant_np[by_page] = 1
        self.taken -= len(pages)
        low, high = int(pages.min()), int(pages.max()) + 1
        self.lowest_vacant = min(self.lowest_vacant, low)
        self.past_highest_vacant = max(self.past_highest_vacant, high)
        if high == self.high or low == self.low:
            self._measure()

    def rebind(self, sources: Pages, destinations: Pages) -> Ids:
        """The ids at `sources` are at `destinations` now; sources stay taken. Returns the ids."""
        old, new = where(sources), where(destinations)
        ids: Ids = self.id_at_np[old].copy()
        self.page_of_np[ids] = destinations
        self.id_at_np[old] = 0
        self.id_at_np[new] = ids
        self.bound_np[old] = 0
        self.bound_np[new] = 1
        self.vacant_np[new] = 0
        self.taken += len(ids)
        self._stretch(destinations)
        return ids

    def _stretch(self, pages: Pages) -> None:
        low, high = int(pages.min()), int(pages.max()) + 1
        if low < self.low:
            self.low, self.lowest_vacant = low, min(self.lowest_vacant, low)
        self.high = max(self.high, high)

    def _measure(self) -> None:
        """Find the extent again, inside the one that was."""
        if not self.taken:
            self.low, self.high = self.page_count, 0
            return
        self.low = self.vacant.find(0, max(self.low, self.first_page), self.high)
        self.high = self.vacant.rfind(0, self.first_page, self.high) + 1

    # Pending pages

    def add_waits(self, pages: Pages) -> None:
        """Each page waits for one event more."""
        if self.waits is None:
            self.waits = np.zeros(self.page_count, dtype=np.int16)
        self.waits[pages] += 1

    def end_waits(self, pages: Pages) -> Pages:
        """Each page waits for one event less; those that wait for none are vacant now, and returned."""
        assert self.waits is not None, "a page waits"
        self.waits[pages] -= 1
        free: Pages = pages[self.waits[pages] == 0]
        self.vacate_many(free)
        return free

    @property
    def pending(self) -> int:
        """Pages that are vacated and wait for an event."""
        return self.taken - self.live


def _joined(parts: list[NDArray[np.int64]] | list[Pages]) -> Pages:
    return (parts[0] if len(parts) == 1 else np.concatenate(parts)).astype(np.int32, copy=False)
