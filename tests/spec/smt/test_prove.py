"""Theorems right, wrong and empty; solvers that contradict each other; what becomes of one another's failures."""

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import z3

from poolproof_spec.occupancy import Occupancy
from poolproof_spec.smt.prove import Proof, Row, prove, questions_of
from poolproof_spec.smt.query import Query, Witness
from poolproof_spec.smt.registry import THEOREMS, select
from poolproof_spec.smt.solver import Budget, Name, Solver, budget_of
from poolproof_spec.smt.symbols import any_member, is_window_of
from poolproof_spec.smt.terms import QuotientTerms
from poolproof_spec.smt.theorem import Theorem
from poolproof_spec.sweep import sweep_member

SMALL = Budget(z3_units=2_000_000, cvc5_units=200_000, cpu_s=20, wall_s=60)
A, B, C = z3.Ints("a b c")


def theorem(*queries: Query, witnesses: tuple[Witness, ...] = (), bounded: int | None = None) -> Theorem:
    return Theorem("X-test", "A claim.", "any", lambda: queries, lambda: witnesses, bounded)


def proof_of(*queries: Query, witnesses: tuple[Witness, ...] = (), **options: Any) -> Proof:
    (proof,) = prove([theorem(*queries, witnesses=witnesses)], SMALL, **options)
    return proof


RIGHT = Query("right", (A >= 2,), A * A > A)
WRONG = Query("wrong", (A >= 1, B == 3), A * B > B, {"product": A * B})
EMPTY = Query("empty", (A > B, B > A), A == 7)
HARD = Query("hard", (A > 10**4, B > 10**4), z3.Not(A * A * A + B * B * B == C * C * C + 114))
"""Nobody knows an answer: work without end."""


def test_a_right_theorem_is_proved_and_cvc5_agrees() -> None:
    row = proof_of(RIGHT).row()
    assert (row.verdict, row.cvc5, row.vacuity) == ("PROVED", "agrees", "witnessed")
    assert row.solver.startswith("z3 5.")
    assert row.resource > 0


def test_the_rows_are_what_the_report_promises() -> None:
    fields = ("name", "claim", "bounds", "verdict", "solver", "seconds", "resource", "cvc5", "vacuity")
    assert Row.__struct_fields__ == fields


def test_a_wrong_theorem_is_refuted_with_named_quantities() -> None:
    proof = proof_of(RIGHT, WRONG)
    assert str(proof.verdict) == "REFUTED(wrong)"
    (refuted,) = (each for each in proof.decided if each.asked.question.name == "wrong")
    assert refuted.instance == {"a": "1", "b": "3", "product": "3"}
    assert proof.agreement == "agrees"


def test_premises_that_cannot_hold_are_vacuous_although_nothing_refutes_them() -> None:
    proof = proof_of(RIGHT, EMPTY)
    assert str(proof.verdict) == "VACUOUS(empty.premises)"
    assert proof.vacuity == "vacuous"
    assert {each.asked.question.name: each.verdict.kind for each in proof.decided}["empty"] == "PROVED"


def test_a_witness_must_exist() -> None:
    found = proof_of(witnesses=(Witness("pair", (A * B == 15, A > B, B > 1), {"sum": A + B}),))
    assert str(found.verdict) == "PROVED"
    assert found.decided[0].instance == {"a": "5", "b": "3", "sum": "8"}
    assert found.vacuity == "witnessed"
    missing = proof_of(RIGHT, witnesses=(Witness("pair", (A * A == 15,)),))
    assert str(missing.verdict) == "REFUTED(pair)"


def test_a_bounded_theorem_says_its_bound() -> None:
    (proof,) = prove([theorem(RIGHT, bounded=4)], SMALL, second_opinion=False)
    assert str(proof.verdict) == "BOUNDED(4)"
    (proof,) = prove([theorem(WRONG, bounded=4)], SMALL, second_opinion=False)
    assert proof.verdict.kind == "REFUTED"


def test_a_limit_too_small_is_unknown_with_its_reason() -> None:
    (proof,) = prove([theorem(RIGHT)], budget_of(1))
    assert str(proof.verdict) == "UNKNOWN(right: resource limit of 1 reached)"
    assert proof.agreement == "unknown"
    assert proof.vacuity == "unknown"


def test_spent_cpu_seconds_are_a_timeout() -> None:
    (proof,) = prove([theorem(HARD)], Budget(z3_units=2**32 - 1, cpu_s=1), second_opinion=False)
    assert str(proof.verdict) == "TIMEOUT(hard: 1 CPU seconds spent)"


def test_a_theorem_without_questions_is_unknown() -> None:
    assert str(proof_of().verdict) == "UNKNOWN(nothing was asked)"


def test_a_theorem_that_cannot_be_stated_is_an_error_of_its_own() -> None:
    def broken() -> tuple[Query, ...]:
        raise KeyError("page_bytes")

    proofs = list(prove([Theorem("X-a", "c", "b", broken), theorem(RIGHT)], SMALL))
    assert [str(proof.verdict) for proof in proofs] == ["ERROR(cannot be stated: KeyError: 'page_bytes')", "PROVED"]
    assert proofs[0].row().solver == ""


def test_two_questions_of_one_name_are_an_error() -> None:
    assert "two questions have the same name" in str(proof_of(RIGHT, Query("right", (), A == A)).verdict)


def test_a_question_that_only_z3_can_read_is_an_error() -> None:
    assert proof_of(Query("power", (A > 1,), A**2 > A)).verdict.kind == "ERROR"


ANSWERS = """
import json, sys, time
print(json.dumps({{"solver": "{name}", "version": "{version}"}}), flush=True)
for line in sys.stdin:
    {before}
    print(json.dumps({answer}), flush=True)
"""
VERSIONS: dict[Name, str] = {"z3": "5.4.1.0", "cvc5": "1.4.2"}


def faked(name: Name, answer: dict[str, Any], before: str = "pass") -> Callable[[Name], Solver]:
    """Solvers of which the one named always gives this answer."""
    code = ANSWERS.format(name=name, version=VERSIONS[name], answer=answer, before=before)
    return lambda asked: Solver(asked, [sys.executable, "-c", code] if asked == name else None)


@pytest.mark.parametrize(("query", "opposite"), [(RIGHT, "sat"), (WRONG, "unsat")])
def test_solvers_that_contradict_each_other_are_an_error(query: Query, opposite: str) -> None:
    proof = proof_of(query, make_solver=faked("cvc5", {"result": opposite}))
    assert proof.verdict.kind == "ERROR"
    assert "cvc5 the opposite" in proof.verdict.detail
    assert proof.agreement == "disagrees"


def test_a_second_opinion_that_gives_up_is_no_disagreement() -> None:
    proof = proof_of(RIGHT, make_solver=faked("cvc5", {"result": "unknown", "reason": "tired"}))
    assert (proof.verdict.kind, proof.agreement) == ("PROVED", "unknown")


def test_no_second_opinion_is_unknown_not_agreement() -> None:
    assert proof_of(RIGHT, second_opinion=False).agreement == "unknown"


@pytest.mark.parametrize("model", [{"a": 5, "b": 3}, {"a": 1, "b": 4}, {}])
def test_a_model_that_refutes_nothing_when_put_in_is_an_error(model: dict[str, int]) -> None:
    """The conclusion holds in it, or a premise does not."""
    lying = faked("z3", {"result": "sat", "model": model})
    proof = proof_of(WRONG, make_solver=lying, second_opinion=False)
    assert proof.verdict.kind == "ERROR"
    assert "does not satisfy" in proof.verdict.detail


def test_a_worker_killed_while_it_works_is_unknown_for_that_question_only(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Solver] = []

    def make(name: Name) -> Solver:
        made.append(Solver(name))
        return made[-1]

    def kill() -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            for solver in list(made):
                if solver.name == "z3" and solver._version and solver.hard:  # type: ignore[attr-defined]
                    time.sleep(0.3)
                    solver._process.kill()  # type: ignore[union-attr]
                    return
            time.sleep(0.02)

    ask = Solver.ask

    def watched(self: Solver, text: str, *rest: Any) -> Any:
        self.hard = "114" in text and "not" in text  # type: ignore[attr-defined]
        return ask(self, text, *rest)

    monkeypatch.setattr(Solver, "hard", False, raising=False)
    monkeypatch.setattr(Solver, "ask", watched)
    killer = threading.Thread(target=kill)
    killer.start()
    budget = Budget(z3_units=2**32 - 1, cpu_s=60)
    proofs = list(prove([theorem(HARD), theorem(RIGHT)], budget, second_opinion=False, make_solver=make))
    killer.join()
    assert str(proofs[0].verdict) == "UNKNOWN(hard: the z3 process ended by SIGKILL)"
    assert str(proofs[1].verdict) == "PROVED"


def test_leaving_early_leaves_no_worker_behind() -> None:
    made: list[Solver] = []

    def make(name: Name) -> Solver:
        made.append(Solver(name))
        return made[-1]

    running = prove([theorem(RIGHT), theorem(HARD)], Budget(z3_units=2**32 - 1, cpu_s=300), make_solver=make)
    started = time.monotonic()
    next(running)
    running.close()  # type: ignore[attr-defined]
    assert time.monotonic() - started < 60
    for solver in made:
        assert solver._process is None or solver._process.wait(5) is not None


def test_a_text_asked_twice_is_decided_once() -> None:
    asked: list[str] = []

    class Counting(Solver):
        def ask(self, text: str, *rest: Any) -> Any:
            asked.append(text)
            return super().ask(text, *rest)

    twin = Query("twin", RIGHT.premises, RIGHT.conclusion)
    assert len(list(prove([theorem(RIGHT, twin)], SMALL, second_opinion=False, make_solver=Counting))) == 1
    assert len(asked) == 2


def test_division_and_the_step_of_the_sweep_are_proved() -> None:
    for proof in prove(select(("T0", "T1-sweep-step"))):
        assert (str(proof.verdict), proof.agreement, proof.vacuity) == ("PROVED", "agrees", "witnessed")


def step(change: Callable[[Occupancy], Occupancy], end_off: int = 0) -> Query:
    """The step's soundness for a sweep that reads a member wrongly, or ends elsewhere."""
    need, member = any_member()
    position, arithmetic = z3.Int("position"), QuotientTerms()
    window, _ = sweep_member(change(need), position, arithmetic)
    premises = (*member, position >= 0, need.pinned_count + need.loose_count > 0, *arithmetic.definitions)
    sound = z3.And(is_window_of(need, window.start, window.end + end_off), window.start * need.page_bytes >= position)
    return Query("sound", (*premises, window.fits), sound, {"window start": window.start, "window end": window.end})


CHANGES: dict[str, Callable[[Occupancy], Occupancy]] = {
    "pins are not counted": lambda need: msgspec.structs.replace(need, pinned_count=0),
    "pages are a byte smaller": lambda need: msgspec.structs.replace(need, page_bytes=need.page_bytes - 1),
    "the sink is a page lower": lambda need: msgspec.structs.replace(need, first_page=need.first_page - 1),
    "the arena is a page longer": lambda need: msgspec.structs.replace(need, page_count=need.page_count + 1),
    "one page less is loose": lambda need: msgspec.structs.replace(need, loose_count=need.loose_count - 1),
    "the last pin is not seen": lambda need: msgspec.structs.replace(need, pinned_end=need.pinned_end - 1),
}


def test_the_right_reading_of_a_member_is_sound() -> None:
    assert proof_of(step(lambda need: need), second_opinion=False).verdict.kind == "PROVED"
    assert proof_of(step(lambda need: need, end_off=-1), second_opinion=False).verdict.kind == "REFUTED"


@pytest.mark.parametrize("change", CHANGES)
def test_a_sweep_that_reads_a_member_wrongly_is_refuted(change: str) -> None:
    proof = proof_of(step(CHANGES[change]), second_opinion=False)
    assert proof.verdict.kind == "REFUTED"
    instance = proof.decided[0].instance
    assert {"page_bytes", "first_page", "page_count", "position", "window start", "window end"} <= set(instance)


def test_every_theorem_can_be_stated() -> None:
    for known in THEOREMS.values():
        assert questions_of(known)
