"""The packed engine: breadth-first, a whole level at a time, sort, unique and merge."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from poolproof_conformance.explorer.exploration import Counts, Exploration, rate, verdict_of
from poolproof_conformance.explorer.limits import Limits
from poolproof_conformance.explorer.packed.derived import Derived
from poolproof_conformance.explorer.packed.fields import Model
from poolproof_conformance.explorer.packed.lanes import Chunk, Column, Lanes, NumPyBackend
from poolproof_conformance.explorer.packed.steps import Steps
from poolproof_conformance.explorer.packed.stored import Stored
from poolproof_conformance.explorer.packed.symmetry import Symmetry
from poolproof_conformance.explorer.packed.wellformed import exercised, malformed
from poolproof_spec.operation import AnyOperation

CHUNK = 1 << 14
"""Lanes that are stepped at once: their columns stay in the processor's cache."""
BATCH = 1 << 22
"""Successors that are sorted at once."""
CHECKED = (
    "pages-in-range",
    "extents-ordered",
    "pages-and-ids-partition",
    "swa-within-full",
    "first-sufficient",
    "irredundant",
    "complete",
    "preserving",
    "locks-kept",
)
"""W1 to W4 in each new state; P1, P1+, P2 and P9 at each demand that does not fit as it is. P3 holds by construction: a
rejected demand has no successor but the state itself."""


@dataclass(frozen=True)
class Broken:
    """The first transition that breaks a rule."""

    rule: str
    state: Column
    """The stored state before it, an array of one."""
    level: int
    """Operations from the empty pool to that state."""
    operation: AnyOperation | None
    """The operation; None where the state itself is malformed."""


class PackedEngine:
    """One exploration of one model. `broken` holds the first transition for each broken rule."""

    def __init__(
        self,
        model: Model,
        stored: Stored,
        *,
        backend: NumPyBackend,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        looks_at_locks: bool = True,
        spares: bool = True,
    ) -> None:
        self.model, self.stored, self.backend, self.limits = model, stored, backend, limits
        self.derived = Derived(model, backend)
        self.steps = Steps(self.derived, looks_at_locks, spares)
        self.symmetry = Symmetry(self.derived)
        self.broken: dict[str, Broken] = {}
        self.counts = Counts()

    def run(self, policy: str, on_progress: Callable[[Counts], None] = lambda counts: None) -> Exploration:
        """Explore until all is seen or a limit is reached."""
        began, stored = time.perf_counter(), self.stored
        earlier = stored.begin(self.backend.join([self.backend.zero_word() for _ in range(self.model.words)]))
        self.counts = Counts(distinct=stored.distinct, transitions=earlier.transitions, depth=stored.depth)
        reason = ""
        while len(stored.frontier) and not reason:
            if self.limits.depth is not None and stored.depth >= self.limits.depth:
                reason = f"stopped at depth {self.limits.depth}, as asked"
            elif self.limits.states is not None and stored.distinct >= self.limits.states:
                reason = f"stopped at {stored.distinct} states, as asked"
            else:
                reason = self._level(on_progress)
        seconds = time.perf_counter() - began
        verdict, reason = verdict_of(bool(self.broken), reason, self.counts.transitions)
        return Exploration(
            config=self.model.configuration.name,
            policy=policy,
            engine="packed",
            distinct=stored.distinct,
            transitions=self.counts.transitions,
            depth=stored.depth,
            seconds=round(seconds + earlier.seconds, 3),
            transitions_per_s=rate(self.counts.transitions - earlier.transitions, seconds),
            symmetry=self.model.symmetry,
            verdict=verdict,
            reason=reason,
            witnesses_reached=tuple(rule for rule in CHECKED if rule in self.steps.seen),
            witnesses_unreached=tuple(rule for rule in CHECKED if rule not in self.steps.seen),
            checked=CHECKED,
        )

    def _level(self, on_progress: Callable[[Counts], None]) -> str:
        """Step the whole frontier; why the run ends here, or nothing."""
        began, stored = time.perf_counter(), self.stored
        transitions, fresh = 0, list[Column]()
        waiting, batch, size = len(stored.frontier), list[Column](), 0
        for chunk in chunks(stored.frontier, CHUNK):
            count, successors = self.successors(chunk)
            transitions += count
            if len(successors):
                batch.append(successors)
                size += len(successors)
            if size >= BATCH:
                fresh.append(self._new(batch))
                batch, size = [], 0
            waiting -= len(chunk)
            self.counts.transitions += count
            self.counts.waiting = waiting + sum(len(part) for part in fresh)
            on_progress(self.counts)
            if not stored.has_room(sum(len(part) for part in fresh) + size):
                return f"stopped at the memory limit of {self.limits.memory_bytes} bytes"
        if batch:
            fresh.append(self._new(batch))
        level = self.backend.unique(self.backend.concat(fresh)) if fresh else stored.frontier[:0]
        self._check_states(level)
        stored.add_level(level, transitions, time.perf_counter() - began)
        self.counts.distinct, self.counts.depth = stored.distinct, stored.depth
        return ""

    def successors(self, states: Column) -> tuple[int, Column]:
        """(transitions, the states that they lead to, sorted, each once, without those they begin in)."""
        root = Lanes(Chunk(self.model, self.backend, states, self.derived.functions))
        count, found = 0, list[Column]()
        for operation in self.model.operations:
            stepped = self.steps.step(root, operation)
            count += stepped.transitions
            for rule, rows in stepped.broken:
                self._note(rule, self.backend.rows(states, rows[:1]), operation)
            if len(stepped.lanes):
                found.append(stepped.lanes.changed_states())
        return count, self._sorted(found)

    def step(self, states: Column, operation: AnyOperation) -> tuple[Column, Column]:
        """(rows, states) where one operation leads to another state, and which: for finding a way back."""
        root = Lanes(Chunk(self.model, self.backend, states, self.derived.functions))
        lanes = self.steps.step(root, operation).lanes
        every = self.backend.which(lanes.number(0) == 0)
        return lanes.chunk_rows(every), self.symmetry.representatives(lanes.packed())

    def _sorted(self, parts: list[Column]) -> Column:
        if not parts:
            return self.stored.frontier[:0]
        states = self.backend.unique(self.backend.concat(parts))
        return self.backend.unique(self.symmetry.representatives(states)) if self.symmetry.moved else states

    def _new(self, batch: list[Column]) -> Column:
        """Those states that were never seen."""
        states = self.backend.unique(self.backend.concat(batch))
        for run in self.stored.runs:
            states = self.backend.rows(states, self.backend.which(self.backend.absent(states, run)))
        return states

    def _check_states(self, level: Column) -> None:
        for chunk in chunks(level, CHUNK):
            lanes = Lanes(Chunk(self.model, self.backend, chunk, self.derived.functions))
            for rule, asks in exercised(self.derived, lanes):
                if rule not in self.steps.seen and self.backend.any(asks()):
                    self.steps.seen.add(rule)
            for rule, mask in malformed(self.derived, lanes):
                if self.backend.any(mask):
                    rows = self.backend.which(mask)
                    self._note(rule, self.backend.rows(chunk, rows[:1]), None)

    def _note(self, rule: str, state: Column, operation: AnyOperation | None) -> None:
        level = self.stored.depth + (operation is None)
        self.broken.setdefault(rule, Broken(rule, state, level, operation))


def chunks(states: Column, size: int) -> Iterator[Column]:
    """The states, a part at a time."""
    return (states[start : start + size] for start in range(0, len(states), size))
