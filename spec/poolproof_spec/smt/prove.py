"""Prove theorems on two cores, with a second opinion on every question, and judge what the solvers say."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from queue import SimpleQueue
from typing import Any, Literal

import msgspec

from poolproof_spec.smt.query import Query, Question, Witness, holds_in, quantities, script
from poolproof_spec.smt.solver import Budget, Name, Rung, Settled, Solver
from poolproof_spec.smt.theorem import Theorem, Verdict, worst

Role = Literal["refutation", "premises", "existence"]
"""What a question decides: the claim, whether the premises say anything, whether something exists."""
Agreement = Literal["agrees", "disagrees", "unknown"]
Vacuity = Literal["witnessed", "vacuous", "unknown"]
Ladder = Callable[[Question, Name], Sequence[Rung] | None]
"""Which attempts to make; None for the usual ones."""
CORES = 2


class Row(msgspec.Struct, frozen=True):
    """One theorem in the JSON report."""

    name: str
    claim: str
    bounds: str
    verdict: str
    solver: str
    """Name and version of the one that decides; empty where none was asked."""
    seconds: float
    """CPU seconds of that solver, all attempts."""
    resource: int
    """Its own resource units, all attempts."""
    cvc5: Agreement
    """agrees: on every question of the claim. unknown also where it was not asked."""
    vacuity: Vacuity
    """witnessed: every query's premises are satisfiable."""


@dataclass(frozen=True)
class Asked:
    """One question of a theorem, and where it came from."""

    question: Question
    facts: tuple[Any, ...]
    """The question's assertions, as terms of this process."""
    subject: Query | Witness
    role: Role


@dataclass(frozen=True)
class Decided:
    """One question with its answers, judged."""

    asked: Asked
    z3: Settled
    cvc5: Settled | None
    """None where no second opinion was wanted."""

    @property
    def agreement(self) -> Agreement:
        """Whether the two solvers say the same."""
        found = {self.z3.answer.result, self.cvc5.answer.result if self.cvc5 else "unknown"}
        if found == {"sat", "unsat"}:
            return "disagrees"
        return "agrees" if found in ({"sat"}, {"unsat"}) else "unknown"

    @cached_property
    def verdict(self) -> Verdict:
        """Of this question alone. PROVED here: as the theorem needs it."""
        name, answer = self.asked.question.name, self.z3.answer
        for settled in (self.z3, self.cvc5):
            if settled and settled.answer.result == "error":
                return Verdict("ERROR", f"{name}: {settled.solver}: {settled.answer.reason}")
        if self.agreement == "disagrees":
            return Verdict("ERROR", f"{name}: z3 says {answer.result}, cvc5 the opposite")
        if answer.result == "sat" and holds_in(self.asked.facts, answer.model) == "contradicted":
            return Verdict("ERROR", f"{name}: z3's model does not satisfy the formula when put into it")
        if answer.result == self.asked.question.expected:
            return Verdict("PROVED")
        if answer.result in ("sat", "unsat"):
            return Verdict("VACUOUS" if self.asked.role == "premises" else "REFUTED", name)
        return Verdict("TIMEOUT" if answer.result == "timeout" else "UNKNOWN", f"{name}: {answer.reason}")

    @property
    def instance(self) -> dict[str, str]:
        """Named values where the text is satisfiable: a counterexample, or a witness."""
        return quantities(self.asked.subject, self.z3.answer.model) if self.z3.answer.result == "sat" else {}


@dataclass(frozen=True)
class Proof:
    """One theorem with all its questions decided."""

    theorem: Theorem
    decided: tuple[Decided, ...]
    failure: str = ""
    """Why its questions could not be made."""

    @property
    def verdict(self) -> Verdict:
        """The worst of its questions."""
        if self.failure:
            return Verdict("ERROR", self.failure)
        found = worst(each.verdict for each in self.decided)
        return self.theorem.proved if found.kind == "PROVED" else found

    @property
    def agreement(self) -> Agreement:
        """A disagreement anywhere counts; for agreement the questions of the claim do."""
        if any(each.agreement == "disagrees" for each in self.decided):
            return "disagrees"
        claim = {each.agreement for each in self.decided if each.asked.role != "premises"}
        return "agrees" if claim == {"agrees"} else "unknown"

    @property
    def vacuity(self) -> Vacuity:
        """Whether the premises of every query can hold."""
        kinds = {each.verdict.kind for each in self.decided if each.asked.role == "premises"}
        if "VACUOUS" in kinds:
            return "vacuous"
        return "witnessed" if kinds == {"PROVED"} or (self.decided and not kinds) else "unknown"

    def row(self) -> Row:
        """As the JSON report has it."""
        answers = [each.z3.answer for each in self.decided]
        versions = {each.z3.version for each in self.decided}
        return Row(
            name=self.theorem.name,
            claim=self.theorem.claim,
            bounds=self.theorem.bounds,
            verdict=str(self.verdict),
            solver=" ".join(["z3", *sorted(versions)]) if versions else "",
            seconds=round(sum(answer.seconds for answer in answers), 3),
            resource=sum(answer.resource for answer in answers),
            cvc5=self.agreement,
            vacuity=self.vacuity,
        )


def questions_of(theorem: Theorem) -> tuple[Asked, ...]:
    """All that has to be decided. Raises whatever the theorem's own functions raise."""
    asked = []
    for query in theorem.queries():
        asked.append(_asked(query.name, query.refuting, query, "refutation"))
        asked.append(_asked(f"{query.name}.premises", query.premises, query, "premises"))
    asked += [_asked(witness.name, witness.facts, witness, "existence") for witness in theorem.witnesses()]
    names = [each.question.name for each in asked]
    if len(set(names)) < len(names):
        raise ValueError(f"two questions have the same name: {names}")
    return tuple(asked)


def _asked(name: str, facts: Sequence[Any], subject: Query | Witness, role: Role) -> Asked:
    question = Question(name, script(facts), "unsat" if role == "refutation" else "sat")
    return Asked(question, tuple(facts), subject, role)


def prove(
    theorems: Sequence[Theorem],
    budget: Budget | None = None,
    *,
    second_opinion: bool = True,
    ladder: Ladder = lambda question, name: None,
    make_solver: Callable[[Name], Solver] = Solver,
) -> Iterator[Proof]:
    """Each theorem's proof, in order, as they become ready. Raises SolverMissingError, SolverVersionError.

    z3's own objects are touched in this thread only: the others hand texts to worker processes.
    """
    with _Deciders(budget or Budget(), second_opinion, ladder, make_solver) as deciders:
        begun: list[tuple[Theorem, list[tuple[Asked, Future[_Opinions]]], str]] = []
        for theorem in theorems:
            try:
                begun.append((theorem, [(asked, deciders.submit(asked)) for asked in questions_of(theorem)], ""))
            except Exception as error:  # A theorem that cannot be stated is an error of its own, not of the others.
                begun.append((theorem, [], f"cannot be stated: {type(error).__name__}: {error}"))
        for theorem, futures, failure in begun:
            yield Proof(theorem, tuple(Decided(asked, *future.result()) for asked, future in futures), failure)


_Opinions = tuple[Settled, Settled | None]


class _Deciders:
    """Two threads, each with its own workers; a text that several theorems ask is decided once."""

    def __init__(
        self, budget: Budget, second_opinion: bool, ladder: Ladder, make_solver: Callable[[Name], Solver]
    ) -> None:
        self._budget, self._second_opinion, self._ladder = budget, second_opinion, ladder
        self._teams = [(make_solver("z3"), make_solver("cvc5")) for _ in range(CORES)]
        self._idle: SimpleQueue[tuple[Solver, Solver]] = SimpleQueue()
        for team in self._teams:
            self._idle.put(team)
        self._threads = ThreadPoolExecutor(CORES)
        self._known: dict[str, Future[_Opinions]] = {}

    def __enter__(self) -> "_Deciders":
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        for solver in (solver for team in self._teams for solver in team):
            solver.close()
        self._threads.shutdown()

    def submit(self, asked: Asked) -> Future[_Opinions]:
        question = asked.question
        if question.text not in self._known:
            self._known[question.text] = self._threads.submit(self._decide, question)
        return self._known[question.text]

    def _decide(self, question: Question) -> _Opinions:
        team = self._idle.get()
        try:
            z3, cvc5 = team
            first = z3.ask(question.text, self._budget, self._ladder(question, "z3"))
            if not self._second_opinion:
                return first, None
            return first, cvc5.ask(question.text, self._budget, self._ladder(question, "cvc5"))
        finally:
            self._idle.put(team)
