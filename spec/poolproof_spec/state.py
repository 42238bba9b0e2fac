"""A pool and its prefix cache between two operations, as seen from outside (docs/spec.md#state).

Everything here is frozen and hashable; it is also the wire format in which a target under test tells its state.
"""

import msgspec

from poolproof_spec.geometry import Geometry
from poolproof_spec.units import PageId, PageKey, VirtualId

Payload = tuple[str, VirtualId, int]
"""(member name, virtual id, stamp): what the page bound to that id holds."""


class MemberState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One member of the chain between two operations."""

    bindings: tuple[tuple[VirtualId, PageId], ...] = ()
    """(virtual id, page) for each live page, sorted by id."""
    pending: tuple[tuple[PageId, str], ...] = ()
    """(page, event): vacated by a move; a reader in flight may still read it until the event fires."""
    gate_open: bool = True
    """No page of this member may move while its gate is closed. The caller opens and closes it."""
    free_pages: tuple[PageId, ...] | None = None
    """The pages the target itself counts as free, sorted; None where it keeps no such list."""

    @property
    def live_pages(self) -> frozenset[PageId]:
        """Pages bound to a virtual id."""
        return frozenset(page for _, page in self.bindings)

    @property
    def live_ids(self) -> frozenset[VirtualId]:
        """Virtual ids bound to a page of this member."""
        return frozenset(identifier for identifier, _ in self.bindings)

    @property
    def pending_pages(self) -> frozenset[PageId]:
        """Pages that only an event can free."""
        return frozenset(page for page, _ in self.pending)


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One node of the prefix tree; the last `len(ids)` page keys of `key` are its own, the rest its ancestors'."""

    key: tuple[PageKey, ...]
    """Page keys from the root to the end of this node."""
    ids: tuple[VirtualId, ...]
    """Ids of its FULL pages, one for each page key of its own."""
    swa_ids: tuple[VirtualId, ...] = ()
    """Those of `ids` that hold SWA pages too; empty once tombstoned."""
    state_id: VirtualId | None = None
    """The cached state at the end of this node."""
    full_locks: int = 0
    swa_locks: int = 0
    state_locks: int = 0
    """Locks held on each component; what is locked is neither evicted nor tombstoned."""
    last_use: int = 0
    """Recency: smaller is older; a match or an insert touches the node and its ancestors."""

    @property
    def parent_key(self) -> tuple[PageKey, ...]:
        """Key of the node above; empty for a child of the root."""
        return self.key[: len(self.key) - len(self.ids)]


class Hold(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one running request holds outside the cache."""

    name: str
    ids: tuple[VirtualId, ...] = ()
    """Ids of its FULL pages."""
    swa_ids: tuple[VirtualId, ...] = ()
    """Those of `ids` that hold SWA pages too."""
    state_ids: tuple[VirtualId, ...] = ()


class Lock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One lock handle that a request holds on a cached prefix."""

    name: str
    key: tuple[PageKey, ...]
    """The locked prefix, in page keys from the root."""
    window_released: bool = False
    """Its SWA and state part was given back early."""


class Flight(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A forward in flight: its pages are read until `event` fires; those in `writes` are also written."""

    event: str
    reads: tuple[tuple[str, VirtualId], ...] = ()
    """(member name, virtual id) of each page that it may still read."""
    writes: tuple[tuple[str, VirtualId], ...] = ()
    """(member name, virtual id) of each page that it may still write."""


class PoolState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole pool and cache between two operations."""

    geometry: Geometry
    members: tuple[MemberState, ...]
    """In the order of `geometry.members`."""
    entries: tuple[Entry, ...] = ()
    """The prefix tree, sorted by key."""
    holds: tuple[Hold, ...] = ()
    """Running requests, sorted by name."""
    locks: tuple[Lock, ...] = ()
    """Lock handles, sorted by name."""
    flights: tuple[Flight, ...] = ()
    """Forwards in flight whose events have not fired, in launch order."""
    free_token_ids: tuple[VirtualId, ...] = ()
    """Free ids of the space that FULL and SWA share, sorted."""
    free_state_ids: tuple[VirtualId, ...] = ()
    """Free ids of the state space, sorted."""
    group_open: bool = False
    """Frees are being collected for later."""
    queued: Hold = Hold(name="")
    """Ids in the open group: still live, free at the next phase boundary."""
    payloads: tuple[Payload, ...] = ()
    """What each live page holds now, read through its virtual id, sorted."""
    written: tuple[Payload, ...] = ()
    """What was last written to each live id, sorted; the harness fills it in."""

    def member(self, name: str) -> MemberState:
        """State of the member called `name`."""
        return self.members[self.geometry.index_of(name)]
