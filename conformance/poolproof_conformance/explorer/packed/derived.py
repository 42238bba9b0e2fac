"""Columns that follow from the fields: which pages are live, what is cached, what is locked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from poolproof_conformance.explorer.packed.fields import Model, page_field
from poolproof_conformance.explorer.packed.lanes import Column, Lanes, NumPyBackend, either
from poolproof_conformance.explorer.packed.tables import PageTables, PositionTables


class Derived:
    """The functions of lanes that compute them, by name."""

    def __init__(self, model: Model, backend: NumPyBackend) -> None:
        self.model, self.backend = model, backend
        self.pages = [PageTables(band, backend) for band in model.bands]
        self.positions = PositionTables(model, backend)
        self.functions: dict[str, Callable[[Lanes], Column]] = {
            "CACHED": partial(self.present, member=model.full),
            "ENDS": self.ends,
            "FULL LOCKED": partial(self.locked, table=self.positions.above, early=True),
        }
        if model.caches_swa:
            self.functions["WITH SWA"] = partial(self.present, member=model.swa[0])
            self.functions["SWA LOCKED"] = partial(self.locked, table=self.positions.window, early=False)
        if model.caches_states:
            self.functions["WITH STATE"] = partial(self.present, member=model.state[0])
            self.functions["STATE LOCKED"] = partial(self.locked, table=self.positions.at, early=False)
        for band in model.bands:
            self.functions[f"live.{band.index}"] = partial(self.live, member=band.index)
            self.functions[f"flying.{band.index}"] = partial(self.flying, member=band.index)
        for name in model.requests:
            self.functions[f"tokens.{name}"] = partial(self.held, member=model.full, slots=model.slots[name])
            if model.state:
                slots = model.state_slots[name]
                self.functions[f"states.{name}"] = partial(self.held, member=model.state[0], slots=slots)

    def zero(self, lanes: Lanes) -> Column:
        """Nothing, in every lane."""
        return lanes.number(0)

    def page_bit(self, lanes: Lanes, member: int, item: int) -> Column:
        """The set of the item's page in the member; empty where it has none."""
        return self.backend.look_up(self.pages[member].bit, lanes[page_field(member, item)])

    def live(self, lanes: Lanes, member: int) -> Column:
        """The set of live pages."""
        items = self.model.bands[member].items
        return either(self.backend, (self.page_bit(lanes, member, i) for i in items), partial(self.zero, lanes))

    def flying(self, lanes: Lanes, member: int) -> Column:
        """The set of live pages that the forward in flight reads."""
        items = self.model.bands[member].items
        reads = (self.page_bit(lanes, member, i) & -(lanes[f"read.{member}"] >> i & 1) for i in items)
        return either(self.backend, reads, partial(self.zero, lanes))

    def present(self, lanes: Lanes, member: int) -> Column:
        """The set of positions that have a page in the member."""
        bits = (self.backend.as_small(lanes[page_field(member, p)] != 0) << p for p in range(len(self.model.positions)))
        return either(self.backend, bits, partial(self.zero, lanes))

    def ends(self, lanes: Lanes) -> Column:
        """The set of positions at which a node ends."""
        outer = (1 << len(self.model.positions)) - (1 << self.model.inner)
        found = lanes["CACHED"] & outer
        return found | lanes["END"] if self.model.inner else found

    def end_at(self, lanes: Lanes, ends: Column) -> None:
        """Nodes end at these positions now."""
        if self.model.inner:
            lanes["END"] = ends & ((1 << self.model.inner) - 1)
        lanes.drop("ENDS")

    def held(self, lanes: Lanes, member: int, slots: list[int]) -> Column:
        """How many pages a request has in the member; its slots fill up in order."""
        count = self.zero(lanes)
        for slot in slots:
            count = count + self.backend.as_small(lanes[page_field(member, slot)] != 0)
        return count

    def locked(self, lanes: Lanes, table: Column, early: bool) -> Column:
        """The set of positions that some handle locks; `early`: also one whose window was given back."""
        found = self.zero(lanes)
        for handle in self.model.handles:
            some = self.backend.look_up(table, lanes[f"lock.{handle}"])
            if not early and f"released.{handle}" in lanes:
                some = some & (lanes[f"released.{handle}"] - 1)
            found = found | some
        return found
