"""The plain engine, which is the definition: breadth-first, one reference pool and one state at a time."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from poolproof_conformance.explorer.configuration import Configuration
from poolproof_conformance.explorer.exploration import Counts, Exploration, Found, rate, verdict_of
from poolproof_conformance.explorer.limits import Limits
from poolproof_conformance.explorer.policies import ExploredPolicy
from poolproof_conformance.explorer.renaming import Representative
from poolproof_conformance.explorer.snapshot import frozen_of, image
from poolproof_conformance.explorer.stepping import Stepped, Stepper
from poolproof_spec.operation import AnyOperation

TELL_EVERY = 64
"""Expanded states between two words about progress."""


@dataclass
class _Stored:
    """Every state that was found, in the order in which it was: parents before children."""

    states: list[bytes] = field(default_factory=list)
    parents: list[tuple[int, int]] = field(default_factory=list)
    """(index of the state before, index of the operation) of each state."""
    seen: set[bytes] = field(default_factory=set)
    size_bytes: int = 0

    def add(self, name: bytes, state: bytes, parent: tuple[int, int]) -> bool:
        """Whether the state is new; `name` is what it counts as."""
        if name in self.seen:
            return False
        self.seen.add(name)
        self.states.append(state)
        self.parents.append(parent)
        self.size_bytes += len(state) + (len(name) if name is not state else 0) + 200
        return True

    def history(self, index: int, last: int, operations: tuple[AnyOperation, ...]) -> tuple[AnyOperation, ...]:
        """The shortest history to the state, and one operation more."""
        found = [last]
        while index:
            index, operation = self.parents[index]
            found.append(operation)
        return tuple(operations[operation] for operation in reversed(found))


class ReferenceEngine:
    """One exploration. `found` holds the shortest history for each violated rule."""

    def __init__(
        self,
        configuration: Configuration,
        policy: ExploredPolicy,
        *,
        symmetry: bool = False,
        limits: Limits = Limits(),  # noqa: B008 - frozen
    ) -> None:
        self.configuration, self.policy, self.symmetry, self.limits = configuration, policy, symmetry, limits
        self.stepper = Stepper(policy, configuration.geometry, configuration.bad_calls)
        self.found: dict[str, Found] = {}
        self.doubts: dict[str, Found] = {}
        self.counts = Counts()
        self._representative = Representative(configuration) if symmetry else None
        self._stored = _Stored()
        self._reason = ""

    def run(
        self,
        on_progress: Callable[[Counts], None] = lambda counts: None,
        until: Callable[[dict[str, Found]], bool] = lambda found: False,
    ) -> Exploration:
        """Explore until all is seen, a limit is reached, or `until` says that enough was found."""
        began = time.perf_counter()
        self._add(self.stepper.initial(), (0, 0))
        level = [0, 1]
        while level[-1] > level[-2] and not self._reason:
            if self.limits.depth is not None and self.counts.depth >= self.limits.depth:
                self._reason = f"stopped at depth {self.limits.depth}, as asked"
                break
            for index in range(level[-2], level[-1]):
                self._expand(index)
                self._over_limit()
                if until(self.found):
                    self._reason = "stopped at what was looked for"
                if self._reason:
                    break
                if index % TELL_EVERY == 0:
                    self.counts.waiting = len(self._stored.states) - index - 1
                    on_progress(self.counts)
            level.append(len(self._stored.states))
            self.counts.depth += level[-1] > level[-2]
        return self._result(time.perf_counter() - began)

    def _expand(self, index: int) -> None:
        frozen = frozen_of(self._stored.states[index])
        before = self.stepper.before(frozen)
        for number, operation in enumerate(self.configuration.operations):
            if self.stepper.applies(before, operation):
                stepped = self.stepper.step(frozen, before, operation)
                self.counts.transitions += 1
                self._note(stepped, index, number)

    def _note(self, stepped: Stepped, index: int, number: int) -> None:
        """A step that violates something leads nowhere: once the state is wrong, any rule may complain."""
        if stepped.after is not None and not stepped.violated:
            self._add(stepped.after, (index, number))
            return
        history = self._stored.history(index, number, self.configuration.operations)
        for name, message in stepped.violated.items():
            self.found.setdefault(name, Found(property=name, message=message, operations=history))
        if stepped.crash:
            self.doubts.setdefault(stepped.crash, Found(property="", message=stepped.crash, operations=history))

    def _add(self, frozen: tuple[object, ...], parent: tuple[int, int]) -> None:
        state = image(frozen)
        name = state if self._representative is None else self._representative.of(frozen)
        self.counts.distinct += self._stored.add(name, state, parent)

    def _over_limit(self) -> None:
        if self.limits.states is not None and self.counts.distinct >= self.limits.states:
            self._reason = f"stopped at {self.counts.distinct} states, as asked"
        if self.limits.memory_bytes is not None and self._stored.size_bytes > self.limits.memory_bytes:
            self._reason = f"stopped at the memory limit of {self.limits.memory_bytes} bytes"

    def _result(self, seconds: float) -> Exploration:
        doubt = self._reason or next(iter(self.doubts), "")
        verdict, reason = verdict_of(bool(self.found), doubt, self.counts.transitions)
        unseen = {rule.name for rule in self.stepper.unseen}
        rules = [rule.name for rule in self.stepper.rules]
        return Exploration(
            config=self.configuration.name,
            policy=self.policy.name,
            engine="reference",
            distinct=self.counts.distinct,
            transitions=self.counts.transitions,
            depth=self.counts.depth,
            seconds=round(seconds, 3),
            transitions_per_s=rate(self.counts.transitions, seconds),
            symmetry=self.symmetry,
            verdict=verdict,
            reason=reason,
            witnesses_reached=tuple(name for name in rules if name not in unseen),
            witnesses_unreached=tuple(name for name in rules if name in unseen),
            checked=tuple(rules),
        )
