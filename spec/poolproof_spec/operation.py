"""The operations of a history: one struct for each, tagged by name; also their JSON format."""

import msgspec

from poolproof_spec.units import PageKey, TokenCount


class Operation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="op"):
    """What a caller asks of the pool and its cache."""


class DemandOperation(Operation, frozen=True, kw_only=True):
    """An allocation under pressure for the running request `name`; a second one of that name adds to it."""

    name: str
    may_wait: bool = True
    """Whether the pool may wait for events in flight to satisfy this demand."""


class Insert(Operation, frozen=True, kw_only=True, tag="insert"):
    """Cache a prefix. Missing pages are allocated without evicting anything; if they do not fit, nothing happens."""

    key: tuple[PageKey, ...]
    state: bool = False
    """Also cache one state at its end; only where the chain has states and a page is one token."""


class Match(Operation, frozen=True, kw_only=True, tag="match"):
    """Look the longest usable prefix up; touches its recency."""

    key: tuple[PageKey, ...]


class LockPrefix(Operation, frozen=True, kw_only=True, tag="lock"):
    """Match, then lock what was found (FULL path, SWA window, state) under the handle `name`."""

    name: str
    key: tuple[PageKey, ...]


class Unlock(Operation, frozen=True, kw_only=True, tag="unlock"):
    """Give back everything that the handle still locks."""

    name: str


class UnlockWindow(Operation, frozen=True, kw_only=True, tag="unlock_window"):
    """Give back the SWA and state part of a lock early; FULL stays locked."""

    name: str


class Alloc(DemandOperation, frozen=True, kw_only=True, tag="alloc"):
    """Demand of `tokens` new tokens."""

    tokens: TokenCount


class Extend(DemandOperation, frozen=True, kw_only=True, tag="extend"):
    """Demand of a prefill batch: request r grows from prefix_lens[r] to seq_lens[r] tokens."""

    prefix_lens: tuple[TokenCount, ...]
    seq_lens: tuple[TokenCount, ...]


class Decode(DemandOperation, frozen=True, kw_only=True, tag="decode"):
    """Demand of one decode step; lengths are those after the step, in tokens."""

    seq_lens: tuple[TokenCount, ...]


class ExtendTail(DemandOperation, frozen=True, kw_only=True, tag="extend_tail"):
    """Demand of a prefill of which only the last `tail` tokens need SWA pages (0: none)."""

    prefix_len: TokenCount
    seq_len: TokenCount
    tail: TokenCount


class AllocStates(DemandOperation, frozen=True, kw_only=True, tag="alloc_states"):
    """Demand of `count` Mamba states."""

    count: int


class Recover(DemandOperation, frozen=True, kw_only=True, tag="recover"):
    """Demand of SWA pages for those FULL ids of the request that have none."""


class Free(Operation, frozen=True, kw_only=True, tag="free"):
    """The request ends: free all that it holds; deferred while a group is open."""

    name: str


class FreeWindow(Operation, frozen=True, kw_only=True, tag="free_window"):
    """The request's SWA pages have left the window: free them; FULL stays. Never deferred."""

    name: str


class GroupBegin(Operation, frozen=True, kw_only=True, tag="group_begin"):
    """Collect frees from now on."""


class GroupEnd(Operation, frozen=True, kw_only=True, tag="group_end"):
    """Carry the collected frees out."""


class Gate(Operation, frozen=True, kw_only=True, tag="gate"):
    """Open or close the move gate of every member."""

    open: bool


class Launch(Operation, frozen=True, kw_only=True, tag="launch"):
    """A forward goes in flight: it reads every live page and writes those of the named requests."""

    event: str
    writes: tuple[str, ...] = ()


class Fire(Operation, frozen=True, kw_only=True, tag="fire"):
    """The forward ended."""

    event: str


class Compact(Operation, frozen=True, kw_only=True, tag="compact"):
    """Housekeeping: close holes without waiting for anybody; old places that are still read become pending."""


class Query(Operation, frozen=True, kw_only=True, tag="query"):
    """Ask how many token pages could be had without evicting; must change nothing."""


class Capacity(Operation, frozen=True, kw_only=True, tag="capacity"):
    """Try for real, without evicting: that many pages, give them back, then one page more, give it back."""


AnyDemand = Alloc | Extend | Decode | ExtendTail | AllocStates | Recover
AnyOperation = (
    Insert
    | Match
    | LockPrefix
    | Unlock
    | UnlockWindow
    | Alloc
    | Extend
    | Decode
    | ExtendTail
    | AllocStates
    | Recover
    | Free
    | FreeWindow
    | GroupBegin
    | GroupEnd
    | Gate
    | Launch
    | Fire
    | Compact
    | Query
    | Capacity
)


def operation_name(operation: Operation) -> str:
    """The tag by which traces call the operation."""
    return str(operation.__struct_config__.tag)
