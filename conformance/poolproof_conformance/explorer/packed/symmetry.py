"""The least of the packed states that differ from each in names alone."""

from __future__ import annotations

from poolproof_conformance.explorer.packed.derived import Derived
from poolproof_conformance.explorer.packed.fields import Model, page_field
from poolproof_conformance.explorer.packed.lanes import Chunk, Column, Lanes
from poolproof_conformance.explorer.renaming import Renaming, renamings

LANES_AT_ONCE = 1 << 14


class Symmetry:
    """Representatives of stored states; ids are no part of them, prefixes, requests and handles may swap."""

    def __init__(self, derived: Derived) -> None:
        self.derived, self.model, self.backend = derived, derived.model, derived.backend
        everything = renamings(self.model.configuration) if self.model.symmetry else []
        self.moved = [_Moved(self.model, renaming) for renaming in everything]
        self.moved = [moved for moved in self.moved if not moved.nothing]

    def representatives(self, states: Column) -> Column:
        """For each state its representative."""
        if not self.moved:
            return states
        parts = [self._of(states[start : start + LANES_AT_ONCE]) for start in range(0, len(states), LANES_AT_ONCE)]
        return self.backend.concat(parts) if parts else states

    def _of(self, states: Column) -> Column:
        root = Lanes(Chunk(self.model, self.backend, states, self.derived.functions))
        least = states
        for moved in self.moved:
            least = self.backend.least(least, self._renamed(root, moved))
        return least

    def _renamed(self, root: Lanes, moved: _Moved) -> Column:
        backend = self.backend
        lanes = root.some(backend.which(root.number(0) == 0))
        for name in self.model.fields:
            source = moved.source.get(name, name)
            column = root[source]
            if (table := moved.tables.get(name)) is not None:
                column = backend.look_up(backend.small(table), column)
            if source != name or table is not None:
                lanes[name] = column
        return lanes.packed()


class _Moved:
    """Where each field of the renamed state comes from, and what its values become."""

    def __init__(self, model: Model, renaming: Renaming) -> None:
        self.source: dict[str, str] = {}
        """Field to the field that it is taken from."""
        self.tables: dict[str, list[int]] = {}
        """Field to a table of its new values by the old ones."""
        number: dict[tuple[int, ...], int] = {key: position for position, key in enumerate(model.positions)}
        to = [number[renaming.of_key(key)] for key in model.positions]
        tokens = {position: to[position] for position in range(len(to))}
        states = dict(tokens) if model.caches_states else {}
        for name in model.requests:
            tokens |= dict(zip(model.slots[name], model.slots[renaming.requests[name]], strict=True))
            states |= dict(zip(model.state_slots[name], model.state_slots[renaming.requests[name]], strict=True))
        for band in model.bands:
            items = states if band.member.role == "state" else tokens
            for old, new in items.items():
                self._taken(page_field(band.index, new), page_field(band.index, old))
            self._mapped(model, f"read.{band.index}", [items[item] for item in band.items])
        for old, new in enumerate(to):
            self._taken(f"rank.{new}", f"rank.{old}")
        self._mapped(model, "END", to[: model.inner])
        for handle in model.handles:
            for what in ("lock", "released"):
                self._taken(f"{what}.{renaming.handles[handle]}", f"{what}.{handle}")
            if to != list(range(len(to))):
                self.tables[f"lock.{handle}"] = [0, *(new + 1 for new in to)]
        variants = [
            model.launches.index(tuple(sorted(renaming.requests[name] for name in names))) for names in model.launches
        ]
        if variants != list(range(len(variants))):
            self.tables["flight"] = [0, *(variant + 1 for variant in variants)]
        self.nothing = not (self.source or self.tables)

    def _taken(self, new: str, old: str) -> None:
        if new != old:
            self.source[new] = old

    def _mapped(self, model: Model, name: str, to: list[int]) -> None:
        """A set of things, each of which becomes another."""
        if name in model.fields and to != list(range(len(to))):
            self.tables[name] = [
                sum(1 << new for old, new in enumerate(to) if some >> old & 1) for some in range(1 << len(to))
            ]
