"""All that lies in the arena: pages bound, freed and moved, on the host's tables and in the device's bytes.

Knows nothing of prefixes or requests. Every change of a page goes through here, so that host tables, device tables,
bytes and hygiene stay together.
"""

from collections.abc import Mapping

import numpy as np
import torch

from poolproof_fast.arena import Arena
from poolproof_fast.device_work import Kernels, default_kernels
from poolproof_fast.flights import Flight, Flights
from poolproof_fast.hygiene import POISON, Hygiene, Mode
from poolproof_fast.ids import IdSpace
from poolproof_fast.moves import batches
from poolproof_fast.pages import Ids, MemberPages, Pages
from poolproof_fast.pins import Pins, nothing_pinned, pins_of
from poolproof_fast.question import Needed, rule_of
from poolproof_fast.tables import Tables
from poolproof_fast.windows import Need, least_byte_windows
from poolproof_spec.geometry import Geometry, Role
from poolproof_spec.source_text import compile_sweep

NO_IDS: Ids = np.empty(0, dtype=np.int32)
NO_IDS.flags.writeable = False

Window = tuple[int, int]
"""[start, end) in pages of a member."""


class Store:
    """Members, id spaces, tables, bytes, and forwards in flight."""

    def __init__(
        self,
        geometry: Geometry,
        device: str | torch.device,
        kernels: Kernels | None,
        tables_apart: bool | None,
        hygiene: Mode | Mapping[Role, Mode],
        poison_freed: bool,
    ) -> None:
        self.geometry, self.device = geometry, torch.device(device)
        self.kernels: Kernels = default_kernels(self.device) if kernels is None else kernels
        self.rule = rule_of(geometry)
        self.role_of = self.rule.role_of
        compiled = compile_sweep(geometry)
        self._decide = compiled.decide
        self.tokens = IdSpace("token", geometry.id_range("full"))
        self.states = IdSpace("state", geometry.id_range("state"))
        spaces = [self.states if member.role == "state" else self.tokens for member in geometry.members]
        sizes = [(len(s.owner), int(m.page_count)) for s, m in zip(spaces, geometry.members, strict=True)]
        self.tables = Tables(sizes, device, tables_apart, self.kernels)
        self.members = [
            MemberPages(
                index,
                member,
                (self.tables.page_of[index], self.tables.id_at[index]),
                (self.tables.page_of_np[index], self.tables.id_at_np[index]),
            )
            for index, member in enumerate(geometry.members)
        ]
        self.arena = Arena(geometry, device, self.kernels)
        self.hygiene = Hygiene(geometry, hygiene)
        self.flights = Flights(self.members)
        self.gate_open = True
        self.poison_freed = poison_freed
        self._page_bytes = [int(member.page_bytes) for member in geometry.members]
        self._anchored_up = [member.anchored and member.kind == "up" for member in geometry.members]
        self._anchored_down = [member.anchored and member.kind == "down" for member in geometry.members]
        self.has_floats = any(member.kind == "float" for member in geometry.members)
        """Where there is none, each member has one side to grow to and needs to be told of no window."""
        self.whole: list[Window] = [(member.first_page, member.page_count) for member in self.members]
        """All usable pages of each member."""
        self._apart, self._tells_frees = self.tables.apart, self.tables.apart or poison_freed

    # What fits

    def fits_as_it_lies(self, needed: Needed) -> bool:
        """Whether the demand fits with no page moved and no event waited for, and the ids are there."""
        return needed[0] <= self.tokens.top and needed[2] <= self.states.top and self._decide(*self._as_it_lies(needed))

    def _as_it_lies(self, needed: Needed) -> list[int]:
        arguments: list[int] = []
        for member, role in zip(self.members, self.role_of, strict=True):
            arguments += (member.taken, member.low, member.high, needed[role])
        return arguments

    def pins(self, may_wait: bool) -> list[Pins] | None:
        """What cannot move now; None where everything can."""
        if nothing_pinned(self.flights, self.gate_open, may_wait):
            return None
        return pins_of(self.members, self.flights, self.gate_open, may_wait)

    # Taking pages

    def ends_as_it_lies(self, needed: Needed) -> list[int]:
        """For each member, how far up it may reach so that those above it still find room, nothing being moved.

        The sweep's mirror image: each member above begins as high as what it holds and is asked for allows. Only floats
        ask for it, so that they need not cling to what lies below them.
        """
        ends = [member.page_count for member in self.members]
        if self.has_floats:
            limit = int(self.geometry.total_bytes)
            for index in range(len(ends) - 1, -1, -1):
                member, size = self.members[index], self._page_bytes[index]
                count = member.taken + needed[self.role_of[index]]
                if count:
                    ends[index] = end = min(member.page_count, limit // size)
                    limit = min(member.low, end - count) * size
                elif self._anchored_down[index]:
                    limit = min(limit, member.page_count * size)
        return ends

    def room(self, index: int, end: int) -> Window:
        """From what lies below a member now up to `end`: where its pages may be bound."""
        position = 0
        for below in range(index):
            member, size = self.members[below], self._page_bytes[below]
            if member.taken:
                position = member.high * size
            elif self._anchored_up[below]:
                position = max(position, member.first_page * size)
        return max(self.members[index].first_page, -(-position // self._page_bytes[index])), end

    def bind(self, index: int, ids: Ids, window: Window) -> None:
        """Give each id a vacant page of the window; its bytes hold nothing of another member's."""
        member, (start, end) = self.members[index], window
        if len(ids) == 1:
            page, identifier = member.next_page(start, end), int(ids[0])
            member.bind(page, identifier, self.flights.launched)
            if self.hygiene.dirty_one(index, page):
                self.arena.fill(index, page, self.hygiene.value(index))
            if self._apart:
                self.tables.touch(index, identifier, page)
            return
        pages = member.next_pages(len(ids), start, end)
        member.bind_many(pages, ids, self.flights.launched)
        dirty = self.hygiene.dirty(index, pages)
        if len(dirty):
            self.arena.fill(index, dirty, self.hygiene.value(index))
        if self.tables.apart:
            self.tables.touch(index, ids, pages)

    def release(self, index: int, ids: Ids) -> None:
        """Take the pages of these ids away; each is bound here, and given once."""
        member = self.members[index]
        if len(ids) == 1:
            identifier = int(ids[0])
            page = member.release(identifier)
            if self._tells_frees:
                self._released(index, identifier, page)
        elif len(ids):
            pages = member.release_many(ids)
            if self._tells_frees:
                self._released(index, ids, pages)

    def _released(self, index: int, ids: int | Ids, pages: int | Pages) -> None:
        if self._apart:
            self.tables.touch(index, ids, pages)
        if self.poison_freed:
            self.arena.fill(index, pages, POISON)

    # Moving pages

    def make_room(self, needed: Needed, may_wait: bool) -> tuple[list[Window | None], tuple[int, ...], int]:
        """Move pages so that a demand that fits lies inside windows: (windows, members moved in, events waited for)."""
        waited = 0
        found = self._least_windows(needed, may_wait=False)
        if found is None:
            assert may_wait, "the demand was found to fit"
            waited = self.wait_for_all()
            found = self._least_windows(needed, may_wait=True)
            assert found is not None, "the demand was found to fit"
        windows, movable = found
        moved = []
        for index, sources, destinations in batches(
            self.geometry, windows, movable, [member.vacant_np for member in self.members]
        ):
            self.move(index, sources, destinations)
            moved.append(index)
        return windows, tuple(moved), waited

    def _least_windows(self, needed: Needed, may_wait: bool) -> tuple[list[Window | None], list[np.ndarray]] | None:
        pins = self.pins(may_wait)
        needs, movable = [], []
        for index, (member, role) in enumerate(zip(self.members, self.role_of, strict=True)):
            pin = None if pins is None else pins[index]
            if pin is None or pin.mask is None:
                needs.append(Need(0, 0, 0, member.live + needed[role]))
                movable.append(member.bound_np)
            else:
                needs.append(Need(pin.count, pin.start, pin.end, pin.loose + needed[role]))
                movable.append(member.bound_np & ~pin.mask)
        windows = least_byte_windows(self.geometry, needs, movable)
        return None if windows is None else (windows, movable)

    def move(self, index: int, sources: Pages, destinations: Pages) -> None:
        """Copy pages of a member in one launch; what a forward in flight may still read stays pending behind."""
        member = self.members[index]
        self.arena.copy(index, sources, destinations)
        self.hygiene.own(index, destinations)
        ids = member.rebind(sources, destinations)
        if self.flights.unfired:
            self.flights.leave_behind(member, ids, sources)
            free = sources[member.vacant_np[sources] == 1]
        else:
            member.vacate_many(sources)
            free = sources
        if self.poison_freed:
            self.arena.fill(index, free, POISON)
        if self.tables.apart:
            self.tables.touch(index, ids, np.concatenate([sources, destinations]))

    def compact(self) -> None:
        """Close holes inside each member's extent without waiting; what is being written stays where it is."""
        if not self.gate_open:
            return
        for member in self.members:
            movable = np.flatnonzero(self._movable(member)).astype(np.int32)
            live = np.flatnonzero(member.bound_np)
            if not len(live):
                continue
            low, high = int(live[0]), int(live[-1]) + 1
            holes = (np.flatnonzero(member.vacant_np[low:high]) + low).astype(np.int32)
            if member.kind == "down":
                holes = holes[::-1]
            else:
                movable = movable[::-1]
            count = min(len(movable), len(holes))
            sources, destinations = movable[:count], holes[:count]
            inwards = (sources > destinations) == (member.kind != "down")
            if inwards.any():
                self.move(member.index, sources[inwards], destinations[inwards])

    def _movable(self, member: MemberPages) -> np.ndarray:
        """Live pages that no forward in flight writes."""
        movable = member.bound_np
        for flight in self.flights.unfired:
            written = flight.written(member)
            if len(written):
                movable = movable.copy() if movable is member.bound_np else movable
                movable[member.page_of_np[written]] = 0
        return movable

    # Forwards

    def fire(self, flight: Flight) -> None:
        """The forward ended: what only it kept pending is vacant."""
        for index, pages in self.flights.fire(flight):
            if self.poison_freed:
                self.arena.fill(index, pages, POISON)

    def wait_for_all(self) -> int:
        """Order all later device work after every forward in flight, which then counts as ended; how many."""
        flights = list(self.flights.unfired)
        for flight in flights:
            flight.event.wait()
            self.fire(flight)
        return len(flights)
