"""Questions as texts: what is declared, which logic, the same text each time, models put back in."""

import subprocess
import sys

import pytest
import z3

from poolproof_spec.smt.query import Query, Witness, holds_in, quantities, script

X, Y = z3.Ints("x y")
SPACED = z3.Int("pages of the float")
DOUBLE = Query("double", (X >= 1, Y == 2 * X), Y > X, {"difference": Y - X})


def test_a_text_declares_asserts_and_asks() -> None:
    assert script([X >= 1, z3.Not(SPACED == X)]).splitlines() == [
        "(set-logic QF_NIA)",
        "(declare-fun x () Int)",
        "(declare-fun |pages of the float| () Int)",
        "(assert (>= x 1))",
        "(assert (not (= |pages of the float| x)))",
        "(check-sat)",
    ]


def test_python_truths_are_assertions_too() -> None:
    assert script([True, False]).splitlines()[1:3] == ["(assert true)", "(assert false)"]


@pytest.mark.parametrize(
    ("term", "logic"),
    [
        (X > 0, "QF_NIA"),
        (z3.Function("f", z3.IntSort(), z3.IntSort())(X) > 0, "QF_UFNIA"),
        (z3.ForAll([X], X * X >= 0), "NIA"),
        (z3.Exists([X], z3.Function("f", z3.IntSort(), z3.IntSort())(X) > 0), "UFNIA"),
        (z3.Real("r") > 0, "ALL"),
    ],
)
def test_the_logic_is_read_off_the_terms(term: object, logic: str) -> None:
    assert script([term]).startswith(f"(set-logic {logic})\n")


def test_a_bound_variable_is_not_declared() -> None:
    assert "declare" not in script([z3.ForAll([X], X * X >= 0)])


def test_the_same_text_in_every_process_and_order() -> None:
    """Receipts name formulas by the hash of their text."""
    code = (
        "from poolproof_spec.smt.registry import THEOREMS\n"
        "from poolproof_spec.smt.prove import questions_of\n"
        "names = sorted(THEOREMS, reverse={reverse})\n"
        "found = {{(n, a.question.name): a.question.sha256 for n in names for a in questions_of(THEOREMS[n])}}\n"
        "print(sorted(found.items()))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code.format(reverse=reverse)], capture_output=True, text=True, check=True
        ).stdout
        for reverse in (False, True)
    }
    assert len(texts) == 1


def test_a_counterexample_satisfies_the_premises_and_not_the_conclusion() -> None:
    assert holds_in(DOUBLE.refuting, {"x": 1, "y": 2}) == "contradicted"
    wrong = Query("wrong", DOUBLE.premises, Y > 2 * X)
    assert holds_in(wrong.refuting, {"x": 1, "y": 2}) == "confirmed"
    assert holds_in(wrong.refuting, {"x": 1, "y": 3}) == "contradicted", "a premise does not hold"


def test_what_a_model_leaves_out_may_be_anything() -> None:
    assert holds_in([X + Y == Y], {"y": 5}) == "confirmed"
    assert holds_in([z3.Or(z3.Bool("b"), X == 0)], {}) == "confirmed"


def test_what_simplifying_does_not_decide_is_undecided() -> None:
    function = z3.Function("f", z3.IntSort(), z3.IntSort())
    assert holds_in([function(X) > 0], {"x": 1}) == "undecided"
    assert holds_in([function(X) > 0, X == 2], {"x": 1}) == "contradicted"


def test_quantities_are_named_and_computed() -> None:
    assert quantities(DOUBLE, {"y": 6, "x": 3}) == {"x": "3", "y": "6", "difference": "3"}
    assert quantities(Witness("w", (X > 0,), {"square": X * X, "sign": True}), {"x": 3}) == {
        "x": "3",
        "square": "9",
        "sign": "True",
    }
