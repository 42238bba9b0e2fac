"""What each member must hold in a state under a demand: pinned pages and loose ones (docs/spec.md#d-fits)."""

from collections.abc import Sequence

import msgspec

from poolproof_spec.arithmetic import Quantity, Truth
from poolproof_spec.demand import Demand
from poolproof_spec.geometry import Member
from poolproof_spec.state import PoolState
from poolproof_spec.units import PageId


class Occupancy(msgspec.Struct, frozen=True, kw_only=True):
    """One member's needs, as the sweep reads them; every field may be a carrier's term."""

    page_bytes: Quantity
    first_page: Quantity
    page_count: Quantity
    anchored_up: Truth = False
    """Anchored and growing up: when empty, bytes below first_page * page_bytes stay closed to members above."""
    anchored_down: Truth = False
    """Anchored and growing down: when empty, bytes from page_count * page_bytes on stay closed to members below."""
    pinned_count: Quantity = 0
    """Pages that cannot move now (|X|), in pages."""
    pinned_start: Quantity = 0
    """Lowest pinned page; meaningless when there is none."""
    pinned_end: Quantity = 0
    """One past the highest pinned page; 0 when there is none."""
    loose_count: Quantity = 0
    """Movable live pages plus demanded new pages (M), in pages."""


def pinned_pages(state: PoolState, index: int, may_wait: bool) -> frozenset[PageId]:
    """The pages of member `index` that cannot move now (X).

    All live pages behind a closed gate; pending pages, and live pages that a forward in flight reads or writes,
    unless the caller may wait: waiting fires every event.
    """
    member = state.members[index]
    pinned: set[PageId] = set()
    if not member.gate_open:
        pinned |= member.live_pages
    if not may_wait:
        name = state.geometry.members[index].name
        pinned |= member.pending_pages
        in_flight = {identifier for f in state.flights for n, identifier in (*f.reads, *f.writes) if n == name}
        if in_flight:
            pinned |= {page for identifier, page in member.bindings if identifier in in_flight}
    return frozenset(pinned)


def occupancy_of(member: Member, pinned: frozenset[PageId], loose_count: int) -> Occupancy:
    """The needs of one member from its set of pinned pages and its count of loose ones."""
    return Occupancy(
        page_bytes=member.page_bytes,
        first_page=member.first_page,
        page_count=member.page_count,
        anchored_up=member.anchored and member.kind == "up",
        anchored_down=member.anchored and member.kind == "down",
        pinned_count=len(pinned),
        pinned_start=min(pinned, default=0),
        pinned_end=max(pinned, default=-1) + 1,
        loose_count=loose_count,
    )


def occupancies(state: PoolState, demand: Demand) -> tuple[Occupancy, ...]:
    """The needs of every member, low bytes to high, in `state` under `demand`."""
    needs = []
    for index, (member, now) in enumerate(zip(state.geometry.members, state.members, strict=True)):
        pinned = pinned_pages(state, index, demand.may_wait)
        loose_count = len(now.live_pages - pinned) + demand.pages(member.role)
        needs.append(occupancy_of(member, pinned, loose_count))
    return tuple(needs)


def as_it_lies(state: PoolState, demand: Demand) -> tuple[Occupancy, ...]:
    """The same with every live and pending page pinned: what would fit without a single move or wait."""
    members: Sequence[Member] = state.geometry.members
    return tuple(
        occupancy_of(member, now.live_pages | now.pending_pages, demand.pages(member.role))
        for member, now in zip(members, state.members, strict=True)
    )
