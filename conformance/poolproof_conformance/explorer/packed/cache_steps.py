"""Steps on the prefix cache: insert, match, lock, unlock."""

from __future__ import annotations

from typing import Any

from poolproof_conformance.explorer.packed.lanes import Column, Lanes
from poolproof_conformance.explorer.packed.room import Item
from poolproof_conformance.explorer.packed.step_base import StepBase, Stepped
from poolproof_spec import operation as op


class CacheSteps(StepBase):
    """Those that name a prefix or a handle."""

    def insert(self, root: Lanes, operation: op.Insert) -> Stepped:
        """Cache a prefix without evicting anything, or change nothing."""
        path, cache, backend = self.model.path_of[operation.key], self.cache, self.backend
        reached = cache.reached(root, path)
        new, lacking = len(path) - reached, cache.lacking(root, path, reached)
        with_state = root.number(0)
        if operation.state:
            last = path[-1]
            has = (root["ENDS"] >> last & 1) & (root["WITH STATE"] >> last & 1)
            with_state = 1 - has
        swa = new + lacking if self.model.caches_swa else 0
        demand = self.by_member(new, swa, with_state)
        live = self.room.live(root)
        fitting = self.room.fits(root, live, demand, self.room.pinned(root, live, False))
        rows = backend.which(fitting)
        lanes = root.some(rows)
        if len(rows):
            reached, with_state = backend.rows(reached, rows), backend.rows(with_state, rows)
            self._cached(lanes, path, reached, with_state, [self.rows_of(d, rows) for d in demand])
        return Stepped(len(root), lanes, [])

    def _cached(
        self, lanes: Lanes, path: list[int], reached: Column, with_state: Column, demand: list[Column | int]
    ) -> None:
        self.cache.split(lanes, path, reached)
        fresh = [Item(position, reached < depth) for depth, position in enumerate(path, 1)]
        bare: list[Item] = []
        if self.model.caches_swa:
            without = ~lanes["WITH SWA"]
            bare = [Item(p, (reached >= depth) & ((without >> p & 1) == 1)) for depth, p in enumerate(path, 1)]
        state = [Item(path[-1], with_state == 1)] if self.model.caches_states else []
        self.room.take(lanes, demand, False, self.items(fresh, fresh, state), self.items([], bare, []))
        ends = lanes["ENDS"] | 1 << path[-1]
        window = self.model.window_pages
        if self.model.caches_swa:
            for depth, position in enumerate(path, 1):
                cut = (depth == len(path) - window) & (reached < depth)
                ends = ends | self.backend.as_small(cut) << position
        self.derived.end_at(lanes, ends)
        lanes.drop("CACHED", "WITH SWA", "WITH STATE")
        self.cache.touch(lanes, path, lanes.number(len(path)))

    def match(self, root: Lanes, operation: op.Match) -> Stepped:
        """Look a prefix up: a split where it parts from what is cached, and recency."""

        def change(lanes: Lanes) -> None:
            self._matched(lanes, operation.key)

        return self.where(root, root.number(0) == 0, change)

    def _matched(self, lanes: Lanes, key: tuple[Any, ...]) -> Column:
        path = self.model.path_of[key]
        reached = self.cache.reached(lanes, path)
        self.cache.split(lanes, path, reached)
        usable = self.cache.usable(lanes, path, reached)
        self.cache.touch(lanes, path, usable)
        return usable

    def lock(self, root: Lanes, operation: op.LockPrefix) -> Stepped:
        """Match, and hold what was found."""

        def change(lanes: Lanes) -> None:
            usable = self._matched(lanes, operation.key)
            held = lanes.number(0)
            for depth, position in enumerate(self.model.path_of[operation.key], 1):
                held = self.backend.where(usable == depth, self.backend.full(1, position + 1), held)
            lanes[f"lock.{operation.name}"] = held
            lanes.drop("FULL LOCKED", "SWA LOCKED", "STATE LOCKED")

        return self.where(root, root[f"lock.{operation.name}"] == 0, change)

    def unlock(self, root: Lanes, operation: op.Unlock) -> Stepped:
        """Give a lock back."""

        def change(lanes: Lanes) -> None:
            lanes[f"lock.{operation.name}"] = lanes.number(0)
            if f"released.{operation.name}" in lanes:
                lanes[f"released.{operation.name}"] = lanes.number(0)

        return self.where(root, root[f"lock.{operation.name}"] != 0, change)

    def unlock_window(self, root: Lanes, operation: op.UnlockWindow) -> Stepped:
        """Give the SWA and state part of a lock back."""

        def change(lanes: Lanes) -> None:
            lanes[f"released.{operation.name}"] = lanes.number(1)

        return self.where(root, root[f"lock.{operation.name}"] != 0, change)
