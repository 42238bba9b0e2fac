"""Bounded model checking of a policy: the smallest history from the empty pool that breaks a property.

Fewest operations first, then the smallest arena, then the smallest numbers. The arena and all sizes are unbounded; the
page sizes are those of `transitions.shapes`. Nothing that a solver says is believed: `reproduces` replays each model.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import z3

from poolproof_spec.arithmetic import Arithmetic, Truth
from poolproof_spec.geometry import LAYOUTS
from poolproof_spec.policies import fits_at
from poolproof_spec.policies_known import DEMAND_KINDS, DemandKind, Policy
from poolproof_spec.smt.concretise import Concrete, concretise, script_of
from poolproof_spec.smt.histories import Script, Shape, shapes
from poolproof_spec.smt.query import script
from poolproof_spec.smt.solver import Budget, Rung, Solver
from poolproof_spec.smt.terms import TERMS
from poolproof_spec.smt.transitions import Situation, situation

SOUGHT: Mapping[str, str] = {"P1": "first-sufficient", "P2": "complete", "P3": "preserving"}
"""Code to name of the properties that a search can look for."""
FIRST_GUESS_BYTES = 512
"""A first model may be of any size: the smallest arena is looked for below this first."""
LADDER = (Rung("simple", 0), Rung("arith-2", 0), Rung("default", 0))
"""Page sizes are numbers here, so the questions are linear: z3's plain core is the fastest at them."""
MOST_ERRORS = 50
"""Models in a row that do not reproduce: then the encoding is wrong, and the search ends."""


class Found(NamedTuple):
    """A counterexample of the encoding."""

    shape: Shape
    script: Script
    arena_bytes: int
    concrete: Concrete


@dataclass
class SearchResult:
    """What came of it."""

    verdict: str = ""
    """REFUTED, BOUNDED(k), UNKNOWN(reason) or ERROR(reason)."""
    found: Found | None = None
    errors: list[Found] = field(default_factory=list)
    """Models that did not reproduce: errors of the encoding."""
    questions: int = 0
    """Asked of the solver."""
    doubts: list[str] = field(default_factory=list)
    """Why questions stayed open."""
    seconds: float = 0.0


Reproduces = Callable[[Found], bool]


def weight_of(found: Found) -> int:
    """How large its numbers are."""
    numbers = (*found.script.sizes, found.script.size, found.script.extra, found.script.window)
    return int(sum(numbers))


def symbolic_script(length: int) -> Script:
    """All histories with so many operations before the demand."""

    def constants(name: str) -> list[Any]:
        return [z3.Int(f"{name}{i}") for i in range(length)]

    numbers = (z3.Int(name) for name in ("token_pages", "states", "window", "size", "extra"))
    return Script(constants("kind"), constants("size"), constants("ref"), *numbers)


def breaks(policy: Policy, code: str, now: Situation, a: Arithmetic) -> Truth:
    """Whether what the policy does with the demand breaks the property."""
    choice = policy.choose(now.view, now.ask, a)
    fitting = [fits_at(now.view, stage, now.ask, a) for stage in range(len(now.view.stages))]
    taken = [a.all_of(legal, index < choice.victims) for index, legal in enumerate(now.legal)]
    match code:
        case "P1":
            spare = (a.all_of(step, fitting[index]) for index, step in enumerate(taken))
            broken = a.all_of(choice.granted, a.any_of(*spare))
        case "P2":
            broken = a.all_of(a.negate(choice.granted), a.any_of(fitting[0], fitting[-1]))
        case "P3":
            broken = a.all_of(a.negate(choice.granted), a.any_of(*taken))
        case _:
            raise ValueError(f"no search for {code}; there is one for {', '.join(SOUGHT)}")
    return a.all_of(now.possible, choice.exact, broken)


class _Question:
    """One shape, one length: the formula, and what is known of its models."""

    def __init__(self, policy: Policy, code: str, shape: Shape, length: int) -> None:
        self.shape, self.length = shape, length
        self.script = symbolic_script(length)
        now = situation(shape, self.script, TERMS)
        self.arena = now.view.total_bytes
        numbers = (*self.script.sizes, self.script.size, self.script.extra, self.script.window)
        self.weight = sum(numbers[1:], numbers[0])
        self.facts: list[Any] = [breaks(policy, code, now, TERMS)]
        self.least_arena = 0
        """No model has a smaller one."""
        self.done = False
        """There is no model."""

    def block(self, found: Found) -> None:
        """Ask for others from now on; the same arena made of other counts is the same."""
        values = _numbers(found.script)
        differs = (term != value for term, value in zip(_numbers(self.script), values, strict=True))
        self.facts.append(z3.Or(self.arena != found.arena_bytes, *differs))


def _numbers(of: Script) -> tuple[Any, ...]:
    """All that makes a history, but for the arena."""
    return (*of.kinds, *of.sizes, *of.refs, of.window, of.size, of.extra)


class _Search:
    """One policy, one property."""

    def __init__(self, policy: Policy, code: str, solver: Solver, budget: Budget, reproduces: Reproduces) -> None:
        self.policy, self.code = policy, code
        self.solver, self.budget, self.reproduces = solver, budget, reproduces
        self.result = SearchResult()

    def ask(self, question: _Question, *more: Any) -> Found | None:
        """A model, or None; an open answer is a doubt."""
        self.result.questions += 1
        text = script([*question.facts, question.arena >= question.least_arena, *more])
        answer = self.solver.ask(text, self.budget, LADDER).answer
        if answer.result == "sat":
            numbers = {name: int(value) for name, value in answer.model.items()}
            found = script_of(numbers, question.length)
            concrete = concretise(question.shape, found)
            return Found(question.shape, found, concrete.geometry.total_bytes, concrete)
        if answer.result != "unsat":
            self.result.doubts.append(answer.reason or answer.result)
        return None

    def smallest(self, questions: Sequence[_Question]) -> Found | None:
        """Of all models of all questions the one with the smallest arena, then the smallest numbers."""
        best: Found | None = None
        for question in questions:
            best = self._smaller(question, best)
        return best

    def _smaller(self, question: _Question, best: Found | None) -> Found | None:
        """The question's smallest model if it is smaller than the best so far."""
        if question.done or (best is not None and question.least_arena > best.arena_bytes):
            return best
        doubts = len(self.result.doubts)
        found = self.ask(question, *self._below(question, best))
        if found is not None:
            return self._refine(question, found)
        if len(self.result.doubts) == doubts:
            question.done = best is None
            question.least_arena = max(question.least_arena, best.arena_bytes if best else 0)
        return best

    @staticmethod
    def _below(question: _Question, best: Found | None) -> list[Any]:
        if best is None:
            return []
        same = z3.And(question.arena == best.arena_bytes, question.weight < weight_of(best))
        return [z3.Or(question.arena < best.arena_bytes, same)]

    def _refine(self, question: _Question, found: Found) -> Found:
        """The smallest arena, then the smallest numbers. What the solver leaves open counts as none smaller."""
        found = self._least(question, found, question.arena, lambda model: model.arena_bytes, FIRST_GUESS_BYTES)
        question.least_arena = found.arena_bytes
        return self._least(question, found, question.weight, weight_of, 1, question.arena == found.arena_bytes)

    def _least(
        self, question: _Question, found: Found, term: Any, measure: Callable[[Found], int], guess: int, *more: Any
    ) -> Found:
        """The model with the least value of a term, by halving; from a small guess, as a first model may be huge."""
        low = question.least_arena if term is question.arena else 0
        while low < measure(found):
            middle = min((low + measure(found) - 1) // 2, max(low, guess))
            guess *= 4
            other = self.ask(question, term <= middle, *more)
            low, found = (middle + 1, found) if other is None else (low, other)
        return found

    def run(self, bound: int, asked: Sequence[Shape]) -> SearchResult:
        """One operation more each time, until something reproduces."""
        started = time.monotonic()
        for length in range(bound):
            questions = [_Question(self.policy, self.code, shape, length) for shape in asked]
            while (found := self.smallest(questions)) is not None:
                if self.reproduces(found):
                    self.result.found, self.result.verdict = found, "REFUTED"
                    break
                self.result.errors.append(found)
                if len(self.result.errors) >= MOST_ERRORS:
                    self.result.verdict = self._without_counterexample(bound)
                    break
                next(q for q in questions if q.shape == found.shape).block(found)
            if self.result.verdict or self.result.doubts:
                break
        if not self.result.verdict:
            self.result.verdict = self._without_counterexample(bound)
        self.result.seconds = time.monotonic() - started
        return self.result

    def _without_counterexample(self, bound: int) -> str:
        if self.result.errors:
            return f"ERROR({len(self.result.errors)} models do not reproduce)"
        return f"UNKNOWN({self.result.doubts[0]})" if self.result.doubts else f"BOUNDED({bound})"


def search(
    policy: Policy,
    code: str,
    bound: int,
    solver: Solver,
    reproduces: Reproduces,
    *,
    layouts: Sequence[str] = tuple(LAYOUTS),
    demands: Sequence[DemandKind] = DEMAND_KINDS,
    budget: Budget | None = None,
) -> SearchResult:
    """The smallest counterexample of a property (SOUGHT) with at most `bound` operations, the demand included."""
    asked = shapes(policy, layouts, demands)
    if not asked:
        return SearchResult(verdict="ERROR(the policy has no such demand in these layouts)")
    return _Search(policy, code, solver, budget or Budget(), reproduces).run(bound, asked)
