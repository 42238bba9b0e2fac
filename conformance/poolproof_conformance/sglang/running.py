"""What the engine's caller keeps of its running requests, its lock handles and its forward in flight."""

from typing import Any

import msgspec

from poolproof_conformance.sglang.cpu_device import Event
from poolproof_conformance.sglang.tree import Key
from poolproof_spec.state import Flight, Hold, Lock
from poolproof_spec.units import VirtualId

Pages = tuple[tuple[str, VirtualId], ...]
"""(member name, virtual id) of each page."""


class Request(msgspec.Struct):
    """A running request: ids in the order in which it got them."""

    ids: list[VirtualId] = []
    """Its FULL pages."""
    swa_ids: set[VirtualId] = set()
    """Those of them that it has SWA pages for."""
    state_ids: list[VirtualId] = []

    def hold(self, name: str) -> Hold:
        """As the specification tells it."""
        swa = tuple(i for i in self.ids if i in self.swa_ids)
        return Hold(name=name, ids=tuple(self.ids), swa_ids=swa, state_ids=tuple(self.state_ids))


class Handle(msgspec.Struct):
    """A lock on a cached prefix."""

    key: Key
    lock: Any
    """The engine's own receipt."""
    window_released: bool = False

    def told(self, name: str) -> Lock:
        """As the specification tells it."""
        return Lock(name=name, key=self.key, window_released=self.window_released)


class InFlight(msgspec.Struct):
    """The forward in flight: at most one, as in the engine's own loop."""

    event: Event
    reads: set[tuple[str, VirtualId]]
    writes: set[tuple[str, VirtualId]]

    def forget(self, pages: Pages) -> None:
        """These ids were given out anew: what the forward reads and writes went with their former owners."""
        self.reads.difference_update(pages)
        self.writes.difference_update(pages)

    def told(self, live: set[tuple[str, VirtualId]]) -> Flight:
        """As the specification tells it: only what is still live."""
        return Flight(
            event=self.event.name, reads=tuple(sorted(self.reads & live)), writes=tuple(sorted(self.writes & live))
        )
