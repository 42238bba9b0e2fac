"""Forwards in flight: what each may still read or write, and the pages that wait for its event.

A forward reads every page that is live when it is launched. Nothing is copied for that: each id remembers how many
forwards had been launched when it was bound (`born`), so it is read by exactly those launched later.
"""

from collections.abc import Sequence

import numpy as np

from poolproof_fast.events import Event
from poolproof_fast.pages import Ids, MemberPages, Pages


class Flight:
    """One forward in flight."""

    __slots__ = ("event", "number", "pending", "writes")

    def __init__(self, number: int, event: Event, writes: tuple[Ids, Ids]) -> None:
        self.number = number
        """How many forwards had been launched, this one included: it reads ids born before it."""
        self.event = event
        self.writes = writes
        """Token ids and state ids that it writes; those bound anew since are no longer meant."""
        self.pending: list[tuple[int, Pages]] = []
        """(member index, pages) that were vacated by a move and that it may still read."""

    def reads(self, member: MemberPages, ids: Ids) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which of these live ids it may still read."""
        return member.born_np[ids] < self.number

    def written(self, member: MemberPages) -> Ids:
        """Live ids of a member that it may still write."""
        ids = self.writes[1] if member.role == "state" else self.writes[0]
        return ids[(member.page_of_np[ids] > 0) & (member.born_np[ids] < self.number)]


class Flights:
    """All of them, in launch order."""

    __slots__ = ("launched", "members", "unfired")

    def __init__(self, members: Sequence[MemberPages]) -> None:
        self.members = members
        self.launched = 0
        self.unfired: list[Flight] = []

    def launch(self, event: Event, writes: tuple[Ids, Ids]) -> Flight:
        """A forward goes in flight."""
        self.launched += 1
        flight = Flight(self.launched, event, writes)
        self.unfired.append(flight)
        return flight

    def fire(self, flight: Flight) -> list[tuple[int, Pages]]:
        """The forward ended; returns (member index, pages) that are vacant now."""
        self.unfired.remove(flight)
        return [(index, self.members[index].end_waits(pages)) for index, pages in flight.pending]

    def leave_behind(self, member: MemberPages, ids: Ids, sources: Pages) -> None:
        """Ids moved away from `sources`: pages that a forward may still read are pending, the rest is vacant."""
        kept = np.zeros(len(ids), dtype=np.bool_)
        for flight in self.unfired:
            read = flight.reads(member, ids)
            if read.any():
                member.add_waits(sources[read])
                flight.pending.append((member.index, sources[read]))
                kept |= read
        member.vacate_many(sources[~kept])
