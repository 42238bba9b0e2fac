"""The messages between poolproof and a target that runs as a child process: one JSON object a line, both ways.

docs/adapter-protocol.md tells the same in prose, for a team that writes an adapter in another language.
Each request carries a sequence number `seq`, which its answer repeats. `writes` come first, before the rest of the
request: [member name, virtual id, stamp], in order. Requests and their answers:

    {"request": "describe", "protocol": 1}  ->  {"protocol": 1, "description": {...}}
    {"request": "build", "geometry": {...}} ->  {"built": true}  or  {"built": false, "unsupported": "why"}
    {"request": "apply", "operation": {...}} -> {"outcome": {...}}
    {"request": "step", "operation": {...}} ->  {"outcome": {...}, "state": {...}}   (apply, then observe)
    {"request": "write", "writes": [...]}   ->  {}
    {"request": "observe"}                  ->  {"state": {...}}

An answer {"error": "text"} to any of them says that the target cannot go on; it is then killed.
"""

import msgspec

from poolproof_conformance.adapter import Description
from poolproof_spec.geometry import Geometry
from poolproof_spec.operation import AnyOperation
from poolproof_spec.outcome import AnyOutcome
from poolproof_spec.state import PoolState
from poolproof_spec.units import VirtualId

PROTOCOL = 1
"""Version of these messages; a child of another one is refused at `describe`."""

Stamp = tuple[str, VirtualId, int]
"""(member name, virtual id, stamp): fill the page bound to that id with a pattern made of the stamp."""


class Request(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="request"
):
    """What poolproof asks."""

    seq: int
    """Counts up from 1 within one process."""
    writes: tuple[Stamp, ...] = ()
    """Carried out before anything else in the request."""


class Describe(Request, frozen=True, kw_only=True, tag="describe"):
    """Who are you, and what can you not do?"""

    protocol: int


class Build(Request, frozen=True, kw_only=True, tag="build"):
    """Start from an empty pool; comes again for each history."""

    geometry: Geometry


class Apply(Request, frozen=True, kw_only=True, tag="apply"):
    """Carry one operation out."""

    operation: AnyOperation


class ApplyAndObserve(Request, frozen=True, kw_only=True, tag="step"):
    """Carry one operation out, then tell the state: one round trip instead of two."""

    operation: AnyOperation


class Write(Request, frozen=True, kw_only=True, tag="write"):
    """Carry `writes` out."""


class Observe(Request, frozen=True, kw_only=True, tag="observe"):
    """Tell the whole state."""


AnyRequest = Describe | Build | Apply | ApplyAndObserve | Write | Observe


class Reply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the child answers; only the fields of the request's kind are set."""

    seq: int
    """The request's number."""
    protocol: int | None = None
    description: Description | None = None
    built: bool | None = None
    unsupported: str | None = None
    """Why this geometry cannot be built."""
    outcome: AnyOutcome | None = None
    state: PoolState | None = None
    error: str | None = None
    """The child cannot go on."""
