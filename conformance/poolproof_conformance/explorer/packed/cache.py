"""The prefix cache of many states at once: paths, splits, recency, what a match finds, what an insert lacks."""

from __future__ import annotations

from poolproof_conformance.explorer.packed.derived import Derived
from poolproof_conformance.explorer.packed.fields import page_field
from poolproof_conformance.explorer.packed.lanes import Column, Lanes


class Cache:
    """What is decided and done along one key: `path` holds its positions, root side first."""

    def __init__(self, derived: Derived) -> None:
        self.derived, self.model, self.backend = derived, derived.model, derived.backend
        self.tables = derived.positions

    def reached(self, lanes: Lanes, path: list[int]) -> Column:
        """Pages of the key that are cached."""
        count = lanes.number(0)
        for position in path:
            count = count + (lanes["CACHED"] >> position & 1)
        return count

    def split(self, lanes: Lanes, path: list[int], reached: Column) -> None:
        """A node ends where the key leaves what is cached."""
        ends = lanes["ENDS"]
        for depth, position in enumerate(path, 1):
            ends = ends | self.backend.as_small(reached == depth) << position
        self.derived.end_at(lanes, ends)

    def usable(self, lanes: Lanes, path: list[int], reached: Column) -> Column:
        """Pages of the longest usable prefix; the path is split."""
        backend, found, covered = self.backend, lanes.number(0), lanes.number(0)
        for depth, position in enumerate(path, 1):
            good = (reached >= depth) & ((lanes["ENDS"] >> position & 1) == 1)
            if self.model.caches_swa:
                has_swa = lanes["WITH SWA"] >> position & 1
                covered = (covered + 1) * has_swa
                good = good & (covered >= min(self.model.window_pages, depth))
            if self.model.caches_states:
                good = good & ((lanes["WITH STATE"] >> position & 1) == 1)
            found = backend.where(good, backend.full(1, depth), found)
        return found

    def touch(self, lanes: Lanes, path: list[int], length: Column) -> None:
        """The first `length` positions of the path become the most recently used."""
        newest = self.tables.ranks - 1
        for depth, position in enumerate(path, 1):
            old = lanes[f"rank.{position}"]
            lanes[f"rank.{position}"] = self.backend.where(length >= depth, self.backend.full(1, newest), old)
        self.close_ranks(lanes)

    def close_ranks(self, lanes: Lanes) -> None:
        """Ranks without gaps, ties kept."""
        backend, used = self.backend, lanes.number(0)
        names = [f"rank.{position}" for position in range(len(self.model.positions))]
        for name in names:
            used = used | backend.look_up(self.tables.rank_bit, lanes[name])
        at = used * self.tables.ranks
        for name in names:
            lanes[name] = backend.look_up(self.tables.rank, at + lanes[name])

    def lacking(self, lanes: Lanes, path: list[int], reached: Column) -> Column:
        """Pages of the key that are cached without their SWA page."""
        count = lanes.number(0)
        if self.model.caches_swa:
            without = lanes["CACHED"] & ~lanes["WITH SWA"]
            for position in path:
                count = count + (without >> position & 1)
        return count

    def forget(self, lanes: Lanes, nodes: Column, swa: Column, states: Column) -> None:
        """These positions lose everything, these their SWA pages, these their state; reads in flight go with them."""
        model = self.model
        for band in model.bands:
            gone = states if band.member.role == "state" else nodes | swa if band.member.role == "swa" else nodes
            if band.member.role == "state" and not model.caches_states:
                continue
            for position in range(len(model.positions)):
                name = page_field(band.index, position)
                lanes[name] = lanes[name] * (1 - (gone >> position & 1))
            if f"read.{band.index}" in lanes:
                lanes[f"read.{band.index}"] = lanes[f"read.{band.index}"] & ~gone
            lanes.drop(f"live.{band.index}", f"flying.{band.index}")
        for position in range(len(model.positions)):
            names = [f"rank.{position}", f"id.{position}"]
            for name, gone in ((names[0], nodes), (names[1], nodes), (f"sid.{position}", states)):
                if name in lanes:
                    lanes[name] = lanes[name] * (1 - (gone >> position & 1))
        self.derived.end_at(lanes, lanes["ENDS"] & ~nodes)
        lanes.drop("CACHED", "WITH SWA", "WITH STATE")
        self.close_ranks(lanes)
