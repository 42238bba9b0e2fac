"""What the engine's caller keeps of its running requests, its lock handles and its forward in flight."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from poolproof_conformance.sglang.cpu_device import Event
from poolproof_conformance.sglang.tree import Key
from poolproof_spec.state import Flight, Hold, Lock
from poolproof_spec.units import VirtualId

Page = tuple[str, VirtualId]
"""(member name, virtual id) of a page."""
Pages = tuple[Page, ...]
_Kept = TypeVar("_Kept")


class UnknownNameError(Exception):
    """An operation names a request, lock or event that does not exist, or takes a name that does."""


def known(table: Mapping[str, _Kept], what: str, name: str) -> _Kept:
    """The entry of that name; UnknownNameError where there is none."""
    if name not in table:
        raise UnknownNameError(f"there is no {what} {name!r}")
    return table[name]


class Request(msgspec.Struct):
    """What a running request holds, or was just given: ids in the order in which it got them."""

    ids: list[VirtualId] = []
    """Of its FULL pages."""
    swa_ids: set[VirtualId] = set()
    """Of its SWA pages: for a request, some of `ids`."""
    state_ids: list[VirtualId] = []

    def plus(self, got: "Request") -> "Request":
        """With what it was given."""
        return Request(
            ids=self.ids + got.ids, swa_ids=self.swa_ids | got.swa_ids, state_ids=self.state_ids + got.state_ids
        )

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
    reads: set[Page]
    writes: set[Page]

    def forget(self, pages: Iterable[Page]) -> None:
        """These ids were given out anew: what the forward reads and writes went with their former owners."""
        gone = set(pages)
        self.reads -= gone
        self.writes -= gone

    def told(self, live: set[Page]) -> Flight:
        """As the specification tells it: only what is still live."""
        return Flight(
            event=self.event.name, reads=tuple(sorted(self.reads & live)), writes=tuple(sorted(self.writes & live))
        )
