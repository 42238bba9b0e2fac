"""What the steps of all operations share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from poolproof_conformance.explorer.packed.cache import Cache
from poolproof_conformance.explorer.packed.derived import Derived
from poolproof_conformance.explorer.packed.lanes import Column, Lanes
from poolproof_conformance.explorer.packed.room import Item, Room


class Stepped(NamedTuple):
    """What came of one operation."""

    transitions: int
    """Lanes in which it is enabled."""
    lanes: Lanes
    """Those in which it changed anything, changed; in the others it leads back to where it began."""
    broken: list[tuple[str, Column]]
    """(rule, rows of the chunk) where a rule is broken by the step."""


class StepBase:
    """Room and cache of a model."""

    def __init__(self, derived: Derived) -> None:
        self.derived, self.model, self.backend = derived, derived.model, derived.backend
        self.room, self.cache = Room(derived), Cache(derived)

    def rows_of(self, demand: Column | int, rows: Column) -> Column | int:
        """Some lanes of a demand; one that is the same in all lanes is an int."""
        return demand if isinstance(demand, int) else self.backend.rows(demand, rows)

    def holds(self, lanes: Lanes, name: str) -> Column:
        """Where there is a running request of that name: it holds a token page or a state."""
        found = lanes[f"tokens.{name}"] != 0
        return found | (lanes[f"states.{name}"] != 0) if self.model.state else found

    def by_member(self, full: Column | int, swa: Column | int, states: Column | int) -> list[Column | int]:
        """A demand in pages of each member."""
        of_role: dict[str, Column | int] = {"full": full, "swa": swa, "state": states}
        return [of_role[band.member.role] for band in self.model.bands]

    def items(self, full: Sequence[Item], swa: Sequence[Item], state: Sequence[Item]) -> list[Sequence[Item]]:
        """Items of each member."""
        of_role = {"full": full, "swa": swa, "state": state}
        return [of_role[band.member.role] for band in self.model.bands]

    def unchanged(self, root: Lanes) -> Stepped:
        """Everywhere, and nothing changes."""
        return Stepped(len(root), root.some(self.backend.which(root.number(0) != 0)), [])

    def where(self, root: Lanes, enabled: Column, change: Callable[[Lanes], None]) -> Stepped:
        """Where it is enabled, all lanes changed."""
        rows = self.backend.which(enabled)
        lanes = root.some(rows)
        if len(rows):
            change(lanes)
        return Stepped(len(rows), lanes, [])
