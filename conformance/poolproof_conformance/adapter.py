"""What a target under test must offer: build, apply, write, observe, and an honest list of what it cannot do."""

from typing import Literal, Protocol

import msgspec

from poolproof_spec.geometry import Geometry
from poolproof_spec.operation import AnyOperation
from poolproof_spec.outcome import AnyOutcome
from poolproof_spec.state import PoolState
from poolproof_spec.units import VirtualId

Inability = Literal[
    "reasons",
    "steps",
    "payloads",
    "free_pages",
    "work",
    "in_flight",
    "gates",
    "groups",
    "no_wait",
    "refusals",
    "policy_order",
    "recency",
    "match_rule",
    "state_writes",
]
"""reasons: gives no reason for a rejection. steps: does not report the order of its evictions. payloads, free_pages:
cannot be read. work: does not count walks and compactions. in_flight, gates, groups: has no such thing.
no_wait: cannot promise not to wait, so `may_wait=False` demands are not sent, and what it says is available may need
waits. refusals: leaves it to its caller to
make good calls only, so it is not sent bad ones. policy_order, recency, match_rule: by design takes its victims in
another order, keeps another order of recency, finds other prefixes usable. state_writes: knows not which states a
forward in flight writes, so moving them is the caller's to prevent."""


class Description(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who the target is and what it cannot do; what is listed is reported as unchecked, never as holding."""

    target: str
    """reference, sglang==0.5.23, ..."""
    details: dict[str, str] = {}
    """Facts worth a line in a report: tree_core, mode, versions."""
    anchored: tuple[str, ...] = ()
    """Members that bound their neighbours even when empty, by design of the target."""
    cannot: tuple[Inability, ...] = ()
    operations: tuple[str, ...] | None = None
    """Operations that it takes; None for all."""


class Adapter(Protocol):
    """One target under test. One history at a time; `build` starts the next from an empty pool."""

    def describe(self) -> Description:
        """Who the target is; may be asked before the first build."""

    def build(self, geometry: Geometry) -> None:
        """Start from an empty pool of this geometry. Raises UnsupportedGeometryError where it cannot."""

    def apply(self, operation: AnyOperation) -> AnyOutcome:
        """Carry one operation out. An engine's exception comes back as Crashed, it is never swallowed."""

    def write(self, member: str, identifier: VirtualId, stamp: int) -> None:
        """Fill the page bound to the id with a pattern made of `stamp`, through the id."""

    def observe(self) -> PoolState:
        """The whole state as seen now; changes nothing. `written` stays empty: the harness fills it in."""


class UnsupportedGeometryError(Exception):
    """The target cannot be built with this geometry; the message says why."""
