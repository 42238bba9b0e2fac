"""Steps on requests and on the arena: frees, gates, forwards in flight, housekeeping, questions."""

from __future__ import annotations

from collections.abc import Sequence

from poolproof_conformance.explorer.packed.fields import page_field
from poolproof_conformance.explorer.packed.lanes import Column, Lanes
from poolproof_conformance.explorer.packed.step_base import StepBase, Stepped
from poolproof_spec import operation as op


class ArenaSteps(StepBase):
    """Those that neither demand anything nor touch the cache."""

    def free(self, root: Lanes, operation: op.Free) -> Stepped:
        """End a request."""
        return self.where(
            root,
            self.holds(root, operation.name),
            lambda lanes: self._drop(lanes, operation.name, ("full", "swa", "state")),
        )

    def free_window(self, root: Lanes, operation: op.FreeWindow) -> Stepped:
        """Free the SWA pages of a request."""
        return self.where(
            root, self.holds(root, operation.name), lambda lanes: self._drop(lanes, operation.name, ("swa",))
        )

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

    def gate(self, root: Lanes, operation: op.Gate) -> Stepped:
        """Open or close every move gate."""

        def change(lanes: Lanes) -> None:
            lanes["closed"] = lanes.number(0 if operation.open else 1)

        return self.where(root, root.number(0) == 0, change)

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

        return self.where(root, enabled, change)

    def fire(self, root: Lanes, operation: op.Fire) -> Stepped:
        """The forward ended."""

        def change(lanes: Lanes) -> None:
            for name in self.model.fields:
                if name == "flight" or name.startswith(("read.", "pend.")):
                    lanes[name] = lanes.number(0)

        return self.where(root, root["flight"] != 0, change)

    def compact(self, root: Lanes, operation: op.Compact) -> Stepped:
        """Close holes inside each member's extent: the outermost movable page into the innermost hole, and so on."""
        enabled = root["closed"] == 0 if "closed" in root else root.number(0) == 0
        stepped = self.where(root, enabled, self._close_holes)
        return Stepped(len(root), stepped.lanes, [])

    def _close_holes(self, lanes: Lanes) -> None:
        for band in self.model.bands:
            if not band.items:
                continue
            tables, backend, member = self.derived.pages[band.index], self.backend, band.index
            live, packs_up = lanes[f"live.{member}"], band.member.kind == "down"
            first = int(band.member.first_page)
            low, high = (backend.look_up(table, live) for table in (tables.start, tables.end))
            below = [
                backend.look_up(tables.below, (edge - first) * backend.as_small(live != 0)) for edge in (low, high)
            ]
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
        return self.unchanged(root)
