"""A fast pool in the state of the model that one wants: pages where they are asked for, pending and in flight too."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from poolproof_fast.events import PlainEvent
from poolproof_fast.flights import Flight
from poolproof_fast.ids import FREE
from poolproof_fast.pages import MemberPages
from poolproof_fast.pool import FastPool
from poolproof_fast.store import NO_IDS
from poolproof_spec.geometry import Geometry, Role
from poolproof_spec.state import PoolState
from poolproof_spec.units import PageId


class RoomyGeometry(Geometry, frozen=True, kw_only=True):
    """Ids enough for a different one on every page: TINY names pages by their numbers, and so each member has its own.

    As many as the token members, or the state members, have pages in all.
    """

    def id_range(self, role: Role) -> range:
        """From 1 on."""
        pages = [len(member.usable_pages) for member in self.members if (member.role == "state") == (role == "state")]
        return range(1, 1 + sum(pages))


class Bound(NamedTuple):
    """A live page as it was bound."""

    member_index: int
    identifier: int
    page: PageId
    pinned: bool
    content: bytes


class Concrete:
    """One pool for all the states of a geometry: `enter` makes it as if it were new, and then so that it is in one."""

    def __init__(self, geometry: Geometry, make_pool: Callable[[Geometry], FastPool] = FastPool) -> None:
        self.pool = make_pool(RoomyGeometry(**{name: getattr(geometry, name) for name in geometry.__struct_fields__}))
        self.content = self.pool.store.arena.bytes.numpy()
        self.bound: list[Bound] = []
        self.pending: list[tuple[int, PageId, bytes]] = []
        """(member index, page, content)"""

    def enter(self, state: PoolState) -> None:
        """Put every live and pending page of the state where it is, each filled with a byte of its own.

        One forward is in flight if the state has an event: what it reads was bound before it, the rest after it.
        """
        self._reset()
        store = self.pool.store
        reads = {page for flight in state.flights for page in flight.reads}
        flight = store.flights.launch(PlainEvent(), (NO_IDS, NO_IDS))
        for index, (member, now) in enumerate(zip(store.members, state.members, strict=True)):
            name, space = member.name, store.states if member.role == "state" else store.tokens
            for identifier, page in now.bindings:
                given, pinned = int(space.take(1)[0]), (name, identifier) in reads
                member.bind(page, given, 0 if pinned else 1)
                self.bound.append(Bound(index, given, page, pinned, self._stamp(index, page)))
            for page, _ in now.pending:
                leave_pending(member, page, flight)
                self.pending.append((index, page, self._stamp(index, page)))
        if not reads and not self.pending:
            store.flights.fire(flight)

    def _reset(self) -> None:
        store = self.pool.store
        store.flights.launched = 0
        store.flights.unfired.clear()
        for space in (store.tokens, store.states):
            space.top = space.size
            space.owner_np[:] = FREE
        for member in store.members:
            empty(member)
        self.bound.clear()
        self.pending.clear()

    def _stamp(self, index: int, page: PageId) -> bytes:
        """Fill a page with a byte that no other page is filled with."""
        size = self.pool.geometry.members[index].page_bytes
        self.content[page * size : (page + 1) * size] = 1 + 16 * index + page
        return bytes([1 + 16 * index + page]) * size

    def read(self, index: int, page: int) -> bytes:
        """What a page holds."""
        size = self.pool.geometry.members[index].page_bytes
        return self.content[page * size : (page + 1) * size].tobytes()

    def tables(self) -> list[bytes]:
        """All that a refusal must leave as it is, of what the host keeps of pages."""
        return [bytes(part) for m in self.pool.store.members for part in (m.page_of, m.id_at, m.vacant, m.bound)]


def empty(member: MemberPages) -> None:
    """As it was when it was made."""
    member.page_of_np[:] = 0
    member.id_at_np[:] = 0
    member.vacant_np[:] = 0
    member.vacant_np[member.first_page :] = 1
    member.bound_np[:] = 0
    member.waits = None
    member.taken = member.live = 0
    member.low, member.high = member.page_count, 0
    member.lowest_vacant, member.past_highest_vacant = member.first_page, member.page_count


def leave_pending(member: MemberPages, page: PageId, flight: Flight) -> None:
    """A page without an id that waits for one forward, as a move leaves it."""
    identifier = len(member.page_of) - 1
    member.bind(page, identifier, 0)
    member.page_of[identifier] = member.id_at[page] = member.bound[page] = 0
    member.live -= 1
    pages = np.array([page], dtype=np.int32)
    member.add_waits(pages)
    flight.pending.append((member.index, pages))
