"""One operation in every lane at once: where it is enabled, and the lanes that it leads to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from poolproof_conformance.explorer.packed.cache import Cache
from poolproof_conformance.explorer.packed.derived import Derived
from poolproof_conformance.explorer.packed.fields import page_field
from poolproof_conformance.explorer.packed.lanes import Column, Lanes
from poolproof_conformance.explorer.packed.room import Item, Room, put
from poolproof_conformance.explorer.packed.victims import Choice
from poolproof_spec import operation as op
from poolproof_spec.demand import demand_of
from poolproof_spec.state import MemberState, PoolState


class Stepped(NamedTuple):
    """What came of one operation."""

    transitions: int
    """Lanes in which it is enabled."""
    lanes: Lanes
    """Those in which it changed anything, changed; in the others it leads back to where it began."""
    broken: list[tuple[str, Column]]
    """(rule, rows of the chunk) where a rule is broken by the step."""


class Steps:
    """The step of each operation of a model."""

    def __init__(self, derived: Derived, looks_at_locks: bool = True, spares: bool = True) -> None:
        self.derived, self.model, self.backend = derived, derived.model, derived.backend
        self.room, self.cache = Room(derived), Cache(derived)
        self.looks_at_locks, self.spares = looks_at_locks, spares
        self._empty = PoolState(
            geometry=self.model.geometry, members=tuple(MemberState() for _ in self.model.geometry.members)
        )

    def step(self, root: Lanes, operation: op.AnyOperation) -> Stepped:
        """Carry the operation out wherever it is a good call."""
        if isinstance(operation, op.DemandOperation):
            return self.demand(root, operation)
        method: Callable[[Lanes, Any], Stepped] = getattr(self, op.operation_name(operation))
        return method(root, operation)

    def _all(self, root: Lanes) -> Stepped:
        return Stepped(len(root), root.some(self.backend.which(root.number(0) != 0)), [])

    def _where(self, root: Lanes, enabled: Column, change: Callable[[Lanes], None]) -> Stepped:
        """Where it is enabled, all lanes changed."""
        rows = self.backend.which(enabled)
        lanes = root.some(rows)
        if len(rows):
            change(lanes)
        return Stepped(len(rows), lanes, [])

    # The cache

    def insert(self, root: Lanes, operation: op.Insert) -> Stepped:
        """Cache a prefix without evicting anything, or change nothing."""
        path, cache, backend = self.model.path_of[operation.key], self.cache, self.backend
        reached = cache.reached(root, path)
        new, lacking = len(path) - reached, cache.lacking(root, path, reached)
        with_state = root.number(0)
        if operation.state:
            last = path[-1]
            has = (root["ENDS"] >> last & 1) & (root["WITH STATE"] >> last & 1)
            with_state = 1 - has
        swa = new + lacking if self.model.caches_swa else 0
        demand = self._by_member(new, swa, with_state)
        live = self.room.live(root)
        fitting = self.room.fits(root, live, demand, self.room.pinned(root, live, False))
        rows = backend.which(fitting)
        lanes = root.some(rows)
        if len(rows):
            reached, with_state = backend.rows(reached, rows), backend.rows(with_state, rows)
            self._cached(lanes, path, reached, with_state, [_rows(backend, d, rows) for d in demand])
        return Stepped(len(root), lanes, [])

    def _cached(
        self, lanes: Lanes, path: list[int], reached: Column, with_state: Column, demand: list[Column | int]
    ) -> None:
        self.cache.split(lanes, path, reached)
        fresh = [Item(position, reached < depth) for depth, position in enumerate(path, 1)]
        bare: list[Item] = []
        if self.model.caches_swa:
            without = ~lanes["WITH SWA"]
            bare = [Item(p, (reached >= depth) & ((without >> p & 1) == 1)) for depth, p in enumerate(path, 1)]
        state = [Item(path[-1], with_state == 1)] if self.model.caches_states else []
        self.room.take(lanes, demand, False, self._items(fresh, fresh, state), self._items([], bare, []))
        ends = lanes["ENDS"] | 1 << path[-1]
        window = self.model.window_pages
        if self.model.caches_swa:
            for depth, position in enumerate(path, 1):
                cut = (depth == len(path) - window) & (reached < depth)
                ends = ends | self.backend.as_small(cut) << position
        self.derived.end_at(lanes, ends)
        lanes.drop("CACHED", "WITH SWA", "WITH STATE")
        self.cache.touch(lanes, path, lanes.number(len(path)))

    def match(self, root: Lanes, operation: op.Match) -> Stepped:
        """Look a prefix up: a split where it parts from what is cached, and recency."""

        def change(lanes: Lanes) -> None:
            self._matched(lanes, operation.key)

        return self._where(root, root.number(0) == 0, change)

    def _matched(self, lanes: Lanes, key: tuple[Any, ...]) -> Column:
        path = self.model.path_of[key]
        reached = self.cache.reached(lanes, path)
        self.cache.split(lanes, path, reached)
        usable = self.cache.usable(lanes, path, reached)
        self.cache.touch(lanes, path, usable)
        return usable

    def lock(self, root: Lanes, operation: op.LockPrefix) -> Stepped:
        """Match, and hold what was found."""

        def change(lanes: Lanes) -> None:
            usable = self._matched(lanes, operation.key)
            held = lanes.number(0)
            for depth, position in enumerate(self.model.path_of[operation.key], 1):
                held = self.backend.where(usable == depth, self.backend.full(1, position + 1), held)
            lanes[f"lock.{operation.name}"] = held
            lanes.drop("FULL LOCKED", "SWA LOCKED", "STATE LOCKED")

        return self._where(root, root[f"lock.{operation.name}"] == 0, change)

    def unlock(self, root: Lanes, operation: op.Unlock) -> Stepped:
        """Give a lock back."""

        def change(lanes: Lanes) -> None:
            lanes[f"lock.{operation.name}"] = lanes.number(0)
            if f"released.{operation.name}" in lanes:
                lanes[f"released.{operation.name}"] = lanes.number(0)

        return self._where(root, root[f"lock.{operation.name}"] != 0, change)

    def unlock_window(self, root: Lanes, operation: op.UnlockWindow) -> Stepped:
        """Give the SWA and state part of a lock back."""

        def change(lanes: Lanes) -> None:
            lanes[f"released.{operation.name}"] = lanes.number(1)

        return self._where(root, root[f"lock.{operation.name}"] != 0, change)

    # Demands

    def demand(self, root: Lanes, operation: op.DemandOperation) -> Stepped:
        """Meet the demand with the fewest of the least recently used entries, or change nothing."""
        backend, start = self.backend, root
        if isinstance(operation, op.Recover):
            start = root.some(backend.which(self.holds(root, operation.name)))
        asked = demand_of(self._empty, operation)  # type: ignore[arg-type]
        assert asked is not None
        swa: Column | int = asked.swa_pages
        if isinstance(operation, op.Recover):
            swa = self._bare(start, operation.name)
        demand = self._by_member(asked.full_pages, swa, asked.state_pages)
        live = self.room.live(start)
        fitting = self.room.fits(start, live, demand, self.room.pinned(start, live, operation.may_wait))
        unfit = backend.which(~fitting)
        broken: list[tuple[str, Column]] = []
        if len(unfit) and self.model.positions:
            lanes = start.some(unfit)
            wanted = [_rows(backend, d, unfit) for d in demand]
            found, evicted, broken = self._evicting(lanes, wanted, operation.may_wait)
            start, demand, fitting = self._merged(start, unfit, found, evicted, demand, fitting)
        granted = start.some(backend.which(fitting))
        if len(granted):
            rows = backend.which(fitting)
            self._grant(granted, operation, [_rows(backend, d, rows) for d in demand])
        return Stepped(len(start), granted, broken)

    def _evicting(
        self, lanes: Lanes, demand: list[Column | int], may_wait: bool
    ) -> tuple[Column, tuple[Column, Column, Column], list[tuple[str, Column]]]:
        """(where it is granted, what goes, what is wrong with that)."""
        choice = Choice(
            self.room, lanes, demand, may_wait, looks_at_locks=self.looks_at_locks, spares=self.spares
        )
        found = choice.choose()
        broken = [("first-sufficient", found & choice.needless()), ("locks-kept", found & choice.breaks_a_lock())]
        broken += [("irredundant", found & choice.spareable()), ("complete", ~found & choice.suffices_in_full())]
        rows_of = [(rule, self.backend.which(mask)) for rule, mask in broken if self.backend.any(mask)]
        rows = [(rule, lanes.chunk_rows(found_rows)) for rule, found_rows in rows_of]
        return found, choice.gone(choice.evicted), rows

    def _merged(
        self,
        start: Lanes,
        unfit: Column,
        found: Column,
        gone: tuple[Column, Column, Column],
        demand: list[Column | int],
        fitting: Column,
    ) -> tuple[Lanes, list[Column | int], Column]:
        """The lanes with what goes gone, and where the demand now fits."""
        backend = self.backend
        lanes = start.some(backend.which(start.number(0) == 0))
        hit = backend.which(found)
        rows = backend.rows(unfit, hit)
        if len(rows):
            nodes, swa, states = (put(start.number(0), rows, backend.rows(column, hit)) for column in gone)
            self.cache.forget(lanes, nodes, swa, states)
        return lanes, demand, put(fitting, rows, True) if len(rows) else fitting

    def _grant(self, lanes: Lanes, operation: op.DemandOperation, demand: list[Column | int]) -> None:
        model, name = self.model, operation.name
        full, states = demand[model.full], demand[model.state[0]] if model.state else 0
        swa = demand[model.swa[0]] if model.swa else 0
        held = lanes[f"tokens.{name}"]
        places = list(enumerate(model.slots[name]))
        fresh = [Item(slot, (held <= n) & (n < held + full)) for n, slot in places]
        bare: list[Item] = []
        if isinstance(operation, op.Recover):
            first_swa = self._has_swa(lanes, name)
            bare = [Item(slot, (n < held) & (first_swa[n] == 0)) for n, slot in places]
            with_swa: list[Item] = []
        else:
            with_swa = [Item(slot, (held + full - swa <= n) & (n < held + full)) for n, slot in places]
        state: list[Item] = []
        if model.state and not (isinstance(states, int) and states == 0):
            owned = lanes[f"states.{name}"]
            slots = enumerate(model.state_slots[name])
            state = [Item(slot, (owned <= n) & (n < owned + states)) for n, slot in slots]
        asks = not (isinstance(full, int) and full == 0)
        items = self._items(fresh if asks else [], with_swa if asks else [], state)
        self.room.take(lanes, demand, operation.may_wait, items, self._items([], bare, []))

    def _has_swa(self, lanes: Lanes, name: str) -> list[Column]:
        """Of each slot of a request, whether it has an SWA page."""
        member = self.model.swa[0]
        return [self.backend.as_small(lanes[page_field(member, slot)] != 0) for slot in self.model.slots[name]]

    def _bare(self, lanes: Lanes, name: str) -> Column | int:
        """Pages of a request without their SWA page."""
        if not self.model.swa:
            return 0
        count = lanes[f"tokens.{name}"]
        for has in self._has_swa(lanes, name):
            count = count - has
        return count

    def _by_member(self, full: Column | int, swa: Column | int, states: Column | int) -> list[Column | int]:
        """A demand in pages of each member."""
        of_role: dict[str, Column | int] = {"full": full, "swa": swa, "state": states}
        return [of_role[band.member.role] for band in self.model.bands]

    def _items(self, full: Sequence[Item], swa: Sequence[Item], state: Sequence[Item]) -> list[Sequence[Item]]:
        """Items of each member."""
        of_role = {"full": full, "swa": swa, "state": state}
        return [of_role[band.member.role] for band in self.model.bands]

    # Frees

    def holds(self, lanes: Lanes, name: str) -> Column:
        """Where there is a running request of that name: it holds a token page or a state."""
        found = lanes[f"tokens.{name}"] != 0
        return found | (lanes[f"states.{name}"] != 0) if self.model.state else found

    def free(self, root: Lanes, operation: op.Free) -> Stepped:
        """End a request."""
        return self._where(
            root, self.holds(root, operation.name), lambda lanes: self._drop(lanes, operation.name, ("full", "swa", "state"))
        )

    def free_window(self, root: Lanes, operation: op.FreeWindow) -> Stepped:
        """Free the SWA pages of a request."""
        return self._where(root, self.holds(root, operation.name), lambda lanes: self._drop(lanes, operation.name, ("swa",)))

    def _drop(self, lanes: Lanes, name: str, roles: Sequence[str]) -> None:
        for band in self.model.bands:
            if band.member.role not in roles:
                continue
            slots = (self.model.state_slots if band.member.role == "state" else self.model.slots)[name]
            for slot in slots:
                lanes[page_field(band.index, slot)] = lanes.number(0)
                naming = f"sid.{slot}" if band.member.role == "state" else f"id.{slot}"
                if band.member.role != "swa" and naming in lanes:
                    lanes[naming] = lanes.number(0)
            if f"read.{band.index}" in lanes:
                lanes[f"read.{band.index}"] = lanes[f"read.{band.index}"] & ~sum(1 << slot for slot in slots)
        self._simplest_flight(lanes)

    def _simplest_flight(self, lanes: Lanes) -> None:
        """Of launches that come to the same writes the first one is noted."""
        for later in range(len(self.model.launches)):
            for earlier in range(later):
                same = lanes["flight"] == later + 1
                for band in (band for band in self.model.bands if band.items):
                    apart = self.model.written(later, band.index) ^ self.model.written(earlier, band.index)
                    differ = lanes[f"read.{band.index}"] & self.model.written(later, band.index)
                    others = lanes[f"read.{band.index}"] & self.model.written(earlier, band.index)
                    same = same & (differ == others) if apart else same
                lanes["flight"] = self.backend.where(same, self.backend.full(1, earlier + 1), lanes["flight"])

    # Gates, events, housekeeping, questions

    def gate(self, root: Lanes, operation: op.Gate) -> Stepped:
        """Open or close every move gate."""

        def change(lanes: Lanes) -> None:
            lanes["closed"] = lanes.number(0 if operation.open else 1)

        return self._where(root, root.number(0) == 0, change)

    def launch(self, root: Lanes, operation: op.Launch) -> Stepped:
        """A forward goes in flight: it reads what is live."""
        enabled = root["flight"] == 0
        for name in operation.writes:
            enabled = enabled & self.holds(root, name)

        def change(lanes: Lanes) -> None:
            lanes["flight"] = lanes.number(self.model.launches.index(tuple(operation.writes)) + 1)
            for band in self.model.bands:
                if not band.items:
                    continue
                reads = lanes.number(0)
                for item in band.items:
                    there = lanes[page_field(band.index, item)] != 0
                    reads = reads | self.backend.as_small(there) << item
                lanes[f"read.{band.index}"] = reads

        return self._where(root, enabled, change)

    def fire(self, root: Lanes, operation: op.Fire) -> Stepped:
        """The forward ended."""

        def change(lanes: Lanes) -> None:
            for name in self.model.fields:
                if name == "flight" or name.startswith(("read.", "pend.")):
                    lanes[name] = lanes.number(0)

        return self._where(root, root["flight"] != 0, change)

    def compact(self, root: Lanes, operation: op.Compact) -> Stepped:
        """Close holes inside each member's extent: the outermost movable page into the innermost hole, and so on."""
        enabled = root["closed"] == 0 if "closed" in root else root.number(0) == 0
        stepped = self._where(root, enabled, self._close_holes)
        return Stepped(len(root), stepped.lanes, [])

    def _close_holes(self, lanes: Lanes) -> None:
        for band in self.model.bands:
            if not band.items:
                continue
            tables, backend, member = self.derived.pages[band.index], self.backend, band.index
            live, packs_up = lanes[f"live.{member}"], band.member.kind == "down"
            first = int(band.member.first_page)
            low, high = (backend.look_up(table, live) for table in (tables.start, tables.end))
            below = [backend.look_up(tables.below, (edge - first) * backend.as_small(live != 0)) for edge in (low, high)]
            holes = below[1] & ~below[0] & ~live & ~self.room.pending(lanes, member)
            movable = live & ~self._written(lanes, member)
            for _ in range(band.width // 2):
                source = backend.look_up(tables.lowest if packs_up else tables.highest, movable)
                target = backend.look_up(tables.highest if packs_up else tables.lowest, holes)
                inwards = source < target if packs_up else source > target
                moves = inwards & (source != 0) & (target != 0)
                if not backend.any(moves):
                    break
                self._relocate(lanes, member, backend.where(moves, source, -1), target)
                movable = movable & ~backend.look_up(tables.bit, source)
                holes = holes & ~backend.look_up(tables.bit, target)
            lanes.drop(f"live.{member}", f"flying.{member}")

    def _relocate(self, lanes: Lanes, member: int, source: Column, target: Column) -> None:
        """One page of a member moves; under a reader its old place is pending."""
        backend, tables = self.backend, self.derived.pages[member]
        read = lanes.number(0)
        for item in self.model.bands[member].items:
            name = page_field(member, item)
            here = lanes[name] == source
            if f"read.{member}" in lanes:
                read = read | (backend.as_small(here) & (lanes[f"read.{member}"] >> item & 1))
            lanes[name] = backend.where(here, target, lanes[name])
        if f"pend.{member}" in lanes:
            left = backend.look_up(tables.bit, backend.where(source > 0, source, 0)) & -read
            lanes[f"pend.{member}"] = lanes[f"pend.{member}"] | left

    def _written(self, lanes: Lanes, member: int) -> Column:
        """Pages that the forward in flight writes."""
        found = lanes.number(0)
        for number in range(len(self.model.launches)):
            slots = self.model.written(number, member)
            for slot in (slot for slot in self.model.bands[member].items if slots >> slot & 1):
                flying = self.backend.as_small(lanes["flight"] == number + 1) & (lanes[f"read.{member}"] >> slot & 1)
                found = found | (self.derived.page_bit(lanes, member, slot) & -flying)
        return found

    def query(self, root: Lanes, operation: op.Query) -> Stepped:
        """Asking changes nothing."""
        return self._all(root)


def _rows(backend: Any, demand: Column | int, rows: Column) -> Column | int:
    return demand if isinstance(demand, int) else backend.rows(demand, rows)


