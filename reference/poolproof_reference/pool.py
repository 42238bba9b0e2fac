"""The pool: one arena, a page table for each member, pages taken, freed and moved. Sets, dicts, no cleverness."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from poolproof_reference.errors import DoubleFreeError, UnknownIdError
from poolproof_spec.demand import Demand
from poolproof_spec.geometry import Geometry
from poolproof_spec.moves import Batch, move_plan
from poolproof_spec.occupancy import Occupancy, as_it_lies, occupancies, pinned_pages
from poolproof_spec.payload import read_stamp, stamped
from poolproof_spec.state import Flight, Hold, MemberState, PoolState
from poolproof_spec.sweep import Sweep, Window, sweep, widen
from poolproof_spec.units import PageId, VirtualId
from poolproof_spec.verdict import after_events, unfired_events


class Pool:
    """All that lies in the arena; knows nothing of prefixes or requests."""

    def __init__(self, geometry: Geometry) -> None:
        self.geometry = geometry
        self.arena = bytearray(geometry.total_bytes)
        count = len(geometry.members)
        self.page_of: list[dict[VirtualId, PageId]] = [{} for _ in range(count)]
        self.pending: list[dict[PageId, set[str]]] = [{} for _ in range(count)]
        self.gate_open = True
        self.flights: dict[str, tuple[set[tuple[int, VirtualId]], set[tuple[int, VirtualId]]]] = {}
        self.free_token_ids = {VirtualId(i) for i in geometry.id_range("full")}
        self.free_state_ids = {VirtualId(i) for i in geometry.id_range("state")}

    def observe(self) -> PoolState:
        """The arena's part of the state; the cache adds its own."""
        return PoolState(
            geometry=self.geometry,
            members=tuple(self._member_state(index) for index in range(len(self.page_of))),
            flights=tuple(
                Flight(event=event, reads=self._named(reads), writes=self._named(writes))
                for event, (reads, writes) in self.flights.items()
            ),
            free_token_ids=tuple(sorted(self.free_token_ids)),
            free_state_ids=tuple(sorted(self.free_state_ids)),
        )

    def _member_state(self, index: int) -> MemberState:
        pending = self.pending[index]
        return MemberState(
            bindings=tuple(sorted(self.page_of[index].items())),
            pending=tuple(sorted((page, event) for page, events in pending.items() for event in events)),
            gate_open=self.gate_open,
            free_pages=tuple(self.free_pages(index, self.geometry.members[index].usable_pages)),
        )

    def _named(self, pages: Iterable[tuple[int, VirtualId]]) -> tuple[tuple[str, VirtualId], ...]:
        return tuple(sorted((self.geometry.members[index].name, identifier) for index, identifier in pages))

    def free_pages(self, index: int, among: Iterable[int]) -> list[PageId]:
        """Pages of a member that are neither live nor pending, in the order given."""
        taken = {*self.page_of[index].values(), *self.pending[index]}
        return [PageId(page) for page in among if page not in taken]

    def place(self, demand: Demand) -> tuple[list[Window | None], tuple[Batch, ...], bool] | None:
        """(windows, moves, whether events must be waited for) with which the demand fits now; None if it does not.

        As it lies if that will do; else moving what may move; else waiting for events, where the caller allows it.
        """
        state, members = self.observe(), range(len(self.page_of))
        needs = as_it_lies(state, demand)
        if (found := self.sweep(needs)).fits:
            return list(widen(needs, found.windows)), (), False
        for may_wait in (False, True) if demand.may_wait else (False,):
            pinned = [pinned_pages(state, index, may_wait) for index in members]
            needs = occupancies(state, replace(demand, may_wait=may_wait))
            if (found := self.sweep(needs)).fits:
                windows = widen(needs, found.windows)
                after = after_events(state, unfired_events(state)) if may_wait else state
                return list(windows), move_plan(after, windows, pinned), may_wait
        return None

    def sweep(self, needs: Sequence[Occupancy]) -> Sweep:
        """[D-sweep] The windows that are planned with."""
        return sweep(needs)

    def take(self, demand: Demand, windows: Sequence[Window | None]) -> list[tuple[int, VirtualId]]:
        """Bind new pages inside the windows. FULL and SWA pages of one token page share its id; a tail has the last."""
        token_ids = sorted(self.free_token_ids)[: demand.full_pages]
        state_ids = sorted(self.free_state_ids)[: demand.state_pages]
        with_swa = token_ids[max(0, demand.full_pages - demand.swa_pages) :]
        ids = {"full": token_ids, "swa": with_swa, "state": state_ids}
        taken = []
        for index, member in enumerate(self.geometry.members):
            taken += self.bind(index, ids[member.role], windows[index])
        self.free_token_ids -= set(token_ids)
        self.free_state_ids -= set(state_ids)
        return taken

    def bind(self, index: int, ids: Sequence[VirtualId], window: Window | None) -> list[tuple[int, VirtualId]]:
        """Give each id a free page of the window: nearest to where the member grows from."""
        if not ids:
            return []
        assert window is not None, "a member that is asked for pages has a window"
        pages = self.free_pages(index, range(window.start, window.end))
        live = self.page_of[index].values() or [(window.start + window.end) // 2]
        low, high = min(live), max(live)
        distance = {
            "up": lambda page: page,
            "down": lambda page: -page,
            "float": lambda page: (max(low - page, page - high, 0), page),
        }[self.geometry.members[index].kind]
        for identifier, page in zip(ids, sorted(pages, key=distance)[: len(ids)], strict=True):
            self.page_of[index][identifier] = page
        return [(index, identifier) for identifier in ids]

    def free(self, freed: Hold) -> None:
        """Free pages and ids. Raises DoubleFreeError, UnknownIdError; then nothing was freed."""
        ids_of = {"full": freed.ids, "swa": freed.swa_ids, "state": freed.state_ids}
        for index, member in enumerate(self.geometry.members):
            ids = ids_of[member.role]
            if len(set(ids)) < len(ids):
                raise DoubleFreeError(f"{member.name}: ids {sorted(ids)} hold one twice; free each id once")
            if unknown := set(ids) - self.page_of[index].keys():
                raise UnknownIdError(f"{member.name}: ids {sorted(unknown)} are not live; free what was handed out")
        for index, member in enumerate(self.geometry.members):
            for identifier in ids_of[member.role]:
                del self.page_of[index][identifier]
                for pages in (pages for flight in self.flights.values() for pages in flight):
                    pages.discard((index, identifier))
        self.free_token_ids |= set(freed.ids)
        self.free_state_ids |= set(freed.state_ids)

    def move(self, batch: Batch) -> None:
        """Copy one member's batch; a page that a forward in flight still reads leaves its old place pending."""
        index, size = batch.member_index, self.geometry.members[batch.member_index].page_bytes
        id_of = {page: identifier for identifier, page in self.page_of[index].items()}
        for source, destination in batch.moves:
            self.arena[destination * size : (destination + 1) * size] = self.arena[source * size : (source + 1) * size]
            self.page_of[index][id_of[source]] = destination
            if readers := self.readers(index, id_of[source]):
                self.pending[index][source] = readers

    def readers(self, index: int, identifier: VirtualId) -> set[str]:
        """Events of the forwards in flight that may still read a page."""
        return {event for event, (reads, _) in self.flights.items() if (index, identifier) in reads}

    def fire(self, event: str) -> None:
        """The forward ended: nothing of it is in flight, and what only it kept pending is free."""
        self.flights.pop(event, None)
        for index, pending in enumerate(self.pending):
            for events in pending.values():
                events.discard(event)
            self.pending[index] = {page: events for page, events in pending.items() if events}

    def compact(self) -> None:
        """Close holes inside each member's extent, lowest hole first, without waiting for anybody.

        A page that is being written stays; the lowest member and floats pack downwards, the highest upwards.
        """
        if not self.gate_open:
            return
        written = {page for _, writes in self.flights.values() for page in writes}
        for index, member in enumerate(self.geometry.members):
            live = self.page_of[index]
            movable = sorted((p for i, p in live.items() if (index, i) not in written), reverse=member.kind != "down")
            span = range(min(live.values(), default=0), max(live.values(), default=-1) + 1)
            holes = sorted(self.free_pages(index, span), reverse=member.kind == "down")
            inwards = [(s, d) for s, d in zip(movable, holes, strict=False) if (s > d) == (member.kind != "down")]
            self.move(Batch(member_index=index, moves=tuple(inwards)))

    def write(self, index: int, identifier: VirtualId, stamp: int) -> None:
        """Fill the page bound to the id."""
        size, page = self.geometry.members[index].page_bytes, self.page_of[index][identifier]
        self.arena[page * size : (page + 1) * size] = stamped(stamp, size)

    def read(self, index: int, identifier: VirtualId) -> int:
        """The stamp that the page bound to the id holds."""
        size, page = self.geometry.members[index].page_bytes, self.page_of[index][identifier]
        return read_stamp(bytes(self.arena[page * size : (page + 1) * size]))
