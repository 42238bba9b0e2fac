"""From a state of the reference to a packed one: what ties the two engines together, and traces to packed states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from poolproof_conformance.explorer.packed.fields import Model, page_field
from poolproof_conformance.explorer.renaming import named, renamings
from poolproof_conformance.explorer.snapshot import Frozen


class Encoder:
    """Packed states, as tuples of words, of frozen ones."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.renamings = renamings(model.configuration) if model.symmetry else []
        self._number = {key: position for position, key in enumerate(model.positions)}

    def representative(self, frozen: Frozen) -> tuple[int, ...]:
        """The least of the packed states that differ from this one in names alone; its own without symmetry."""
        if not self.model.symmetry:
            return self.packed(frozen)
        return min(self.packed(named(frozen, renaming)) for renaming in self.renamings)

    def packed(self, frozen: Frozen) -> tuple[int, ...]:
        """The words of the state."""
        words = [0] * self.model.words
        for name, value in self._values(frozen).items():
            if value or name in self.model.fields:
                field = self.model.fields[name]
                words[field.word] |= value << field.shift
        return tuple(words)

    def _values(self, frozen: Frozen) -> dict[str, int]:
        tables, pending, gate, flights, _, _, nodes, locks, _, _, _, _ = frozen
        values: dict[str, int] = {}
        token_item = dict(self._token_items(frozen))
        state_item = dict(self._state_items(frozen))
        for band in self.model.bands:
            items = state_item if band.member.role == "state" else token_item
            first = band.member.first_page
            for identifier, page in tables[band.index]:
                values[page_field(band.index, items[identifier])] = page - first + 1
            if pending[band.index]:
                values[f"pend.{band.index}"] = sum(1 << (page - first) for page, _ in pending[band.index])
        for _, reads, writes in flights:
            reading = self._items(reads, token_item, state_item)
            values |= {f"read.{member}": items for member, items in reading.items()}
            values["flight"] = self._launch(reading, self._items(writes, token_item, state_item)) + 1
        for key, ids, _, _, rank in nodes:
            if self._number[key] < self.model.inner:
                values["END"] = values.get("END", 0) | 1 << self._number[key]
            for length in range(len(key) - len(ids) + 1, len(key) + 1):
                values[f"rank.{self._number[key[:length]]}"] = rank
        for name, key, released in locks:
            values[f"lock.{name}"] = self._number[key] + 1
            if f"released.{name}" in self.model.fields:
                values[f"released.{name}"] = int(released)
        if not gate:
            values["closed"] = 1
        return values | self._names(token_item, state_item)

    def _names(self, token_item: Mapping[int, int], state_item: Mapping[int, int]) -> dict[str, int]:
        """Ids count from the first of their space."""
        if self.model.symmetry:
            return {}
        token_ids, state_ids = (self.model.geometry.id_range(role) for role in ("full", "state"))
        names = {f"id.{item}": identifier - token_ids[0] for identifier, item in token_item.items()}
        states = {f"sid.{item}": identifier - state_ids[0] for identifier, item in state_item.items()}
        return names | {name: value for name, value in states.items() if name in self.model.fields}

    def _token_items(self, frozen: Frozen) -> Iterator[tuple[int, int]]:
        for key, ids, *_ in frozen[6]:
            for back, identifier in enumerate(reversed(ids)):
                yield identifier, self._number[key[: len(key) - back]]
        for name, ids, *_ in frozen[8]:
            yield from zip(ids, self.model.slots[name], strict=False)

    def _state_items(self, frozen: Frozen) -> Iterator[tuple[int, int]]:
        for key, _, _, state, _ in frozen[6]:
            if state is not None:
                yield state, self._number[key]
        for name, _, _, states in frozen[8]:
            yield from zip(states, self.model.state_slots[name], strict=False)

    def _launch(self, reads: Items, writes: Items) -> int:
        """The first launch that comes to these writes."""
        for number in range(len(self.model.launches)):
            masks = {member: self.model.written(number, member) for member in reads}
            if all(reads[member] & masks[member] == writes.get(member, 0) for member in reads):
                return number
        raise AssertionError("a forward in flight that no launch began")

    def _items(
        self, pages: Iterable[tuple[int, int]], token_item: Mapping[int, int], state_item: Mapping[int, int]
    ) -> Items:
        found: Items = {}
        for member, identifier in pages:
            items = state_item if member in self.model.state else token_item
            found[member] = found.get(member, 0) | 1 << items[identifier]
        return found


Items = dict[int, int]
"""Member to a set of its items."""
