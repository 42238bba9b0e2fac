"""Which pages of a member cannot move now [D-fits]: their number and extent, and which they are when that is asked.

All live pages behind a closed gate; pending pages, and live pages that a forward in flight may read, unless the caller
may wait, since waiting fires every event. Most of the time nothing is pinned, and nothing is looked at.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poolproof_fast.flights import Flights
from poolproof_fast.pages import MemberPages

Mask = NDArray[np.uint8]
"""One byte a page of a member: 1 where it is meant."""


@dataclass(frozen=True, slots=True)
class Pins:
    """One member's pinned pages."""

    count: int
    start: int
    """Lowest; meaningless when there is none."""
    end: int
    """One past the highest; 0 when there is none."""
    loose: int
    """Live pages that may move."""
    mask: Mask | None
    """Which they are; None when there is none."""


def pins_of(members: Sequence[MemberPages], flights: Flights, gate_open: bool, may_wait: bool) -> list[Pins]:
    """The pins of every member; one pass over a member's pages where some are pinned."""
    return [_pins(member, flights, gate_open, may_wait) for member in members]


def nothing_pinned(flights: Flights, gate_open: bool, may_wait: bool) -> bool:
    """Whether no member has a pinned page."""
    return gate_open and (may_wait or not flights.unfired)


def _pins(member: MemberPages, flights: Flights, gate_open: bool, may_wait: bool) -> Pins:
    if nothing_pinned(flights, gate_open, may_wait) or not member.taken:
        return Pins(0, 0, 0, member.live, None)
    mask = pinned_mask(member, flights, gate_open, may_wait)
    found = mask.tobytes()
    count = found.count(1)
    if not count:
        return Pins(0, 0, 0, member.live, None)
    pending = 0 if may_wait else member.pending
    return Pins(count, found.find(1), found.rfind(1) + 1, member.live - (count - pending), mask)


def pinned_mask(member: MemberPages, flights: Flights, gate_open: bool, may_wait: bool) -> Mask:
    """Which pages are pinned, one byte each."""
    ids = member.id_at_np
    if not gate_open:
        mask = member.bound_np > 0
    elif may_wait or not flights.unfired:
        return np.zeros(member.page_count, dtype=np.uint8)
    else:
        mask = (member.bound_np > 0) & (member.born_np[ids] < flights.unfired[-1].number)
    if not may_wait and member.waits is not None:
        mask |= member.waits > 0
    return mask.view(np.uint8)
