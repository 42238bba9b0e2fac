"""Which entries go for a demand, in many states at once: the first sufficient ones in policy order, less the spared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from poolproof_conformance.explorer.packed.lanes import Column, Lanes
from poolproof_conformance.explorer.packed.room import Room

NO_AGE = 1 << 10
"""Older than nothing: there is no such node."""
NOBODY = 7
"""No position."""


@dataclass
class Evicted:
    """Sets of ends of nodes, by what they lose: everything, their SWA pages and state, their state alone."""

    leaves: Column
    tombstones: Column
    states: Column


@dataclass
class Order:
    """The steps in the order in which they were taken, each the position of its node, NOBODY where a lane took none."""

    leaves: list[Column] = field(default_factory=list)
    tombstones: list[Column] = field(default_factory=list)
    states: list[Column] = field(default_factory=list)


class Choice:
    """One demand in some lanes in which it does not fit as it is: `evicted` and `order` once `choose` has run."""

    def __init__(
        self,
        room: Room,
        lanes: Lanes,
        demand: Sequence[Column | int],
        may_wait: bool,
        *,
        looks_at_locks: bool = True,
        spares: bool = True,
    ) -> None:
        self.room, self.lanes, self.demand, self.may_wait = room, lanes, demand, may_wait
        self.model, self.backend, self.tables = room.model, room.backend, room.derived.positions
        self.looks_at_locks, self.spares = looks_at_locks, spares
        self.positions = range(len(self.model.positions))
        self.live = room.live(lanes)
        none = lanes.number(0)
        self.full_locked = lanes["FULL LOCKED"] if looks_at_locks else none
        self.swa_locked = lanes["SWA LOCKED"] if looks_at_locks and self.model.caches_swa else none
        self.state_locked = lanes["STATE LOCKED"] if looks_at_locks and self.model.caches_states else none
        self.with_swa = lanes["WITH SWA"] if self.model.caches_swa else none
        self.with_state = lanes["WITH STATE"] if self.model.caches_states else none
        self.evicted = Evicted(none, none, none)
        self.order = Order()

    def fits(self, evicted: Evicted) -> Column:
        """Whether the demand fits once these are gone."""
        live = self.after(evicted)
        return self.room.fits(self.lanes, live, self.demand, self.room.pinned(self.lanes, live, self.may_wait))

    def after(self, evicted: Evicted) -> list[Column]:
        """The live pages of each member once these are gone."""
        nodes, swa, states = self.gone(evicted)
        found = []
        for band, live in zip(self.model.bands, self.live, strict=True):
            role = band.member.role
            gone = states if role == "state" else nodes | swa if role == "swa" else nodes
            if role != "state" or self.model.caches_states:
                for position in self.positions:
                    bit = self.room.derived.page_bit(self.lanes, band.index, position)
                    live = live & ~(bit & -(gone >> position & 1))
            found.append(live)
        return found

    def gone(self, evicted: Evicted) -> tuple[Column, Column, Column]:
        """Sets of positions: of nodes that go, of those that lose their SWA pages, of those that lose their state."""
        at = self.lanes["ENDS"] * self.tables.sets
        nodes = self.backend.look_up(self.tables.nodes, at + evicted.leaves)
        swa = self.backend.look_up(self.tables.nodes, at + evicted.tombstones)
        return nodes, swa, evicted.leaves | evicted.tombstones | evicted.states

    def oldest(self, candidates: Column) -> Column:
        """The least recently used of a set of ends, the deeper one of equals; NOBODY where the set is empty."""
        carrier, best = self.backend.carrier, self.lanes.number(NO_AGE)
        for turn, position in enumerate(self.model.age_order):
            age = self.lanes[f"rank.{position}"] * 8 + turn
            best = carrier.minimum(best, age + (1 - (candidates >> position & 1)) * NO_AGE)
        turn_of = self.backend.small([*self.model.age_order, *[NOBODY] * (8 - len(self.model.age_order))])
        found = self.backend.look_up(turn_of, best & 7)
        return self.backend.where(best < NO_AGE, found, NOBODY)

    def leaf_candidates(self, evicted: Evicted) -> Column:
        """Ends of unlocked nodes without children, once these are gone."""
        nodes, _, _ = self.gone(evicted)
        cached = self.lanes["CACHED"] & ~nodes
        free = ~(self.full_locked | self.swa_locked | self.state_locked)
        return self.lanes["ENDS"] & cached & ~self.backend.look_up(self.tables.parents, cached) & free

    def kept(self, evicted: Evicted) -> Column:
        """Ends of nodes that are still there."""
        return self.lanes["ENDS"] & self.lanes["CACHED"] & ~self.gone(evicted)[0]

    def choose(self) -> Column:
        """In which lanes the demand is granted; `evicted` are then the steps, and `order` says in which order."""
        fitting = self.fits(self.evicted)
        for _ in self.positions:
            fitting = self._step("leaves", self.leaf_candidates(self.evicted), fitting)
        tombstones = self.kept(self.evicted) & self.with_swa & ~self.swa_locked
        tombstones = tombstones & ~(self.with_state & self.state_locked)
        if self.model.caches_swa:
            fitting = self._each("tombstones", tombstones, fitting)
        if self.model.caches_states:
            alone = self.kept(self.evicted) & ~tombstones & self.with_state & ~self.state_locked
            fitting = self._each("states", alone, fitting)
        if self.spares:
            self._spare()
        return fitting

    def _each(self, kind: str, candidates: Column, fitting: Column) -> Column:
        for _ in self.positions:
            fitting = self._step(kind, candidates & ~getattr(self.evicted, kind), fitting)
        return fitting

    def _step(self, kind: str, candidates: Column, fitting: Column) -> Column:
        """One step more where the demand does not fit yet."""
        oldest = self.oldest(self.backend.where(fitting, 0, candidates))
        taken = self.backend.as_small(oldest != NOBODY) << self.backend.where(oldest != NOBODY, oldest, 0)
        if not self.backend.any(taken != 0):
            return fitting
        getattr(self.order, kind).append(oldest)
        setattr(self.evicted, kind, getattr(self.evicted, kind) | taken)
        return fitting | self.fits(self.evicted)

    def without(self, evicted: Evicted, kind: str, position: Column) -> tuple[Evicted, Column]:
        """(the steps less one and those that depend on it, where it is among them at all)."""
        there = self.backend.where(position == NOBODY, 0, position)
        among = (position != NOBODY) & ((getattr(evicted, kind) >> there & 1) == 1)
        lost = self.backend.as_small(among) << there
        if kind == "leaves":
            lost = self.backend.look_up(self.tables.above, there + 1) & -self.backend.as_small(among)
        fewer = Evicted(evicted.leaves, evicted.tombstones, evicted.states)
        setattr(fewer, kind, getattr(evicted, kind) & ~lost)
        return fewer, among

    def _spare(self) -> None:
        """[P1+] Give back, most recently used first, every step without which the demand still fits."""
        for kind in ("states", "tombstones", "leaves"):
            for position in reversed(getattr(self.order, kind)):
                fewer, among = self.without(self.evicted, kind, position)
                spared = among & self.fits(fewer)
                kept = self.backend.where(spared, getattr(fewer, kind), getattr(self.evicted, kind))
                setattr(self.evicted, kind, kept)

    def count(self) -> Column:
        """How many steps were taken."""
        found = self.lanes.number(0)
        for position in self.positions:
            for some in (self.evicted.leaves, self.evicted.tombstones, self.evicted.states):
                found = found + (some >> position & 1)
        return found

    def needless(self) -> Column:
        """[P1] Where some proper prefix of the steps would have been enough."""
        none = self.lanes.number(0)
        taken = Evicted(none, none, none)
        found = none != 0
        for kind in ("leaves", "tombstones", "states"):
            for position in getattr(self.order, kind):
                there = self.backend.where(position == NOBODY, 0, position)
                among = (position != NOBODY) & ((getattr(self.evicted, kind) >> there & 1) == 1)
                found = found | (among & self.fits(taken))
                setattr(taken, kind, getattr(taken, kind) | self.backend.as_small(among) << there)
        return found

    def spareable(self) -> Column:
        """[P1+] Where some step could be spared."""
        found = self.lanes.number(0) != 0
        for kind in ("leaves", "tombstones", "states"):
            for position in getattr(self.order, kind):
                fewer, among = self.without(self.evicted, kind, position)
                found = found | (among & self.fits(fewer))
        return found

    def suffices_in_full(self) -> Column:
        """[P2] Where freeing every legal step, by the locks as they are, would have been enough."""
        none = self.lanes.number(0)
        everything = Evicted(none, none, none)
        for _ in self.positions:
            everything.leaves = everything.leaves | self.leaf_candidates(everything)
        kept = self.kept(everything)
        everything.tombstones = kept & self.with_swa & ~self.swa_locked & ~(self.with_state & self.state_locked)
        everything.states = kept & ~everything.tombstones & self.with_state & ~self.state_locked
        return self.fits(everything)

    def breaks_a_lock(self) -> Column:
        """[P9] Where something locked was evicted: told by pages and handles, not by what was a candidate."""
        nodes, swa, states = self.gone(self.evicted)
        lost = nodes & self.lanes["FULL LOCKED"]
        if self.model.caches_swa:
            lost = lost | ((nodes | swa) & self.with_swa & self.lanes["SWA LOCKED"])
        if self.model.caches_states:
            lost = lost | (states & self.with_state & self.lanes["STATE LOCKED"])
        return lost != 0
