"""`poolproof prove`: exit codes, rows, questions and receipts as files, errors in two lines."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import z3

from poolproof_conformance.cli.main import run
from poolproof_spec.smt import registry, solver
from poolproof_spec.smt.query import Query
from poolproof_spec.smt.solver import SOLVERS, Solver
from poolproof_spec.smt.theorem import Theorem

A, B = z3.Ints("pages holes")
RIGHT = Theorem("X1-right", "A claim that holds.", "any", lambda: (Query("square", (A >= 2,), A * A > A),))
WRONG = Theorem("X2-wrong", "A claim.", "any", lambda: (Query("both", (A >= 1, B == 3), A > B, {"sum": A + B}),))
VACUOUS = Theorem("X3-vacuous", "A claim.", "any", lambda: (Query("none", (A > B, B > A), A == 7),))
BOUNDED = Theorem("X4-bounded", "A claim.", "at most 5", RIGHT.queries, bounded=5)


@pytest.fixture(autouse=True)
def theorems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "THEOREMS", {t.name: t for t in (RIGHT, WRONG, VACUOUS, BOUNDED)})


@pytest.fixture
def out(capsys: pytest.CaptureFixture[str]) -> Iterator[Any]:
    yield lambda: capsys.readouterr().out
    capsys.readouterr()


def test_what_is_proved_exits_0(out: Any) -> None:
    assert run(["prove", "X1", "X4-bounded"]) == 0
    lines = out().splitlines()
    assert lines[0].startswith("PROVED      X1-right")
    assert "cvc5: agrees" in lines[0]
    assert lines[1].startswith("BOUNDED(5)  X4-bounded")
    assert lines[-2].startswith("2 theorems: 1 PROVED, 1 BOUNDED; cvc5 agrees on 2; ")
    assert lines[-1] == "prove: holds"


def test_what_is_refuted_exits_1_and_shows_named_quantities(out: Any) -> None:
    assert run(["prove", "X2", "X1"]) == 1
    text = out()
    assert "REFUTED     X2-wrong" in text
    assert "    both: counterexample" in text
    assert "      holes = 3" in text
    assert "      sum = " in text
    assert text.endswith("prove: violated\n")


def test_what_is_vacuous_exits_2(out: Any) -> None:
    assert run(["prove", "X3"]) == 2
    assert "VACUOUS: none.premises" in out()


def test_a_budget_too_small_exits_2_with_its_reason(out: Any) -> None:
    assert run(["prove", "X1", "--budget", "1"]) == 2
    text = out()
    assert "UNKNOWN     X1-right" in text
    assert "UNKNOWN: square: resource limit of 1 reached" in text
    assert text.endswith("prove: unknown\n")


def test_a_killed_solver_exits_2_with_its_reason(out: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker is killed as it is about to read the question."""
    exchange = Solver._exchange

    def killing(self: Solver, line: bytes, wall_s: float) -> tuple[bytes, bool]:
        if line and self.name == "z3":
            assert self.process_id is not None
            os.kill(self.process_id, signal.SIGKILL)
        return exchange(self, line, wall_s)

    monkeypatch.setattr(Solver, "_exchange", killing)
    assert run(["prove", "X1"]) == 2
    assert "UNKNOWN: square: the z3 process ended by SIGKILL" in out()


def test_witnesses_are_shown_when_asked_for(out: Any) -> None:
    assert run(["prove", "X1"]) == 0
    assert "witness" not in out()
    assert run(["prove", "X1", "--witness"]) == 0
    assert "    square.premises: witness\n      pages = 2\n" in out()


def test_json_has_the_promised_fields_and_no_others(tmp_path: Path, out: Any) -> None:
    report = tmp_path / "new" / "proofs.json"
    assert run(["prove", "--json", str(report)]) == 1
    rows = json.loads(report.read_text())
    fields = ["name", "claim", "bounds", "verdict", "solver", "seconds", "resource", "cvc5", "vacuity"]
    assert [list(row) for row in rows] == [fields] * 4
    assert [(row["name"], row["verdict"], row["cvc5"], row["vacuity"]) for row in rows] == [
        ("X1-right", "PROVED", "agrees", "witnessed"),
        ("X2-wrong", "REFUTED(both)", "agrees", "witnessed"),
        ("X3-vacuous", "VACUOUS(none.premises)", "agrees", "vacuous"),
        ("X4-bounded", "BOUNDED(5)", "agrees", "witnessed"),
    ]
    assert run(["prove", "X1", "--no-cvc5", "--json", str(report)]) == 0
    assert json.loads(report.read_text())[0]["cvc5"] == "unknown"


def test_questions_are_written_as_the_solvers_read_them(tmp_path: Path, out: Any) -> None:
    assert run(["prove", "X1", "X2", "--smt2", str(tmp_path)]) == 1
    names = ["X1-right.square", "X1-right.square.premises", "X2-wrong.both", "X2-wrong.both.premises"]
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.smt2" for name in names}
    for name in SOLVERS:
        with Solver(name) as asked:
            text = (tmp_path / "X1-right.square.smt2").read_text()
            assert asked.ask(text, solver.Budget()).answer.result == "unsat"


def test_receipts_are_written_and_verified(tmp_path: Path, out: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(["prove", "X1", "X2", "--receipt", str(tmp_path)]) == 1
    right, wrong = str(tmp_path / "X1-right.json"), str(tmp_path / "X2-wrong.json")
    out()
    assert run(["prove", "--verify", right]) == 0
    assert out() == f"holds: {right}: X1-right PROVED\n"
    assert run(["prove", "--verify", right, "--verify", wrong]) == 1
    changed = Theorem("X1-right", "A claim.", "any", lambda: (Query("square", (A >= 3,), A * A > A),))
    monkeypatch.setattr(registry, "THEOREMS", {"X1-right": changed})
    out()
    assert run(["prove", "--verify", right]) == 2
    assert "    square: the formula has changed\n" in out()


def errors_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_an_unknown_name_lists_the_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert errors_of(["prove", "T99"], capsys) == [
        "error: no theorem 'T99'",
        "  fix: name some of: X1-right X2-wrong X3-vacuous X4-bounded",
    ]


def test_without_the_solvers_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solver, "find_spec", lambda name: None)
    assert errors_of(["prove"], capsys) == [
        "error: z3 is not installed; proofs need it",
        "  fix: python -m pip install 'poolproof[smt]'",
    ]


def test_another_version_of_a_solver_names_the_remedy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solver, "TESTED", {"z3": ("4.8.0", "4.9.0"), "cvc5": ("1.4.2", "1.4.2")})
    found, fix = errors_of(["prove", "X1"], capsys)
    assert found.endswith(": tested with 4.8.0 to 4.9.0")
    assert fix.startswith("  fix: python -m pip install 'z3-solver==")


def test_a_receipt_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.json"
    assert errors_of(["prove", "--verify", str(path)], capsys)[0] == (
        f"error: {path}: cannot be read: No such file or directory"
    )
    path.write_text("{}")
    assert errors_of(["prove", "--verify", str(path)], capsys)[0].startswith(f"error: {path}: not a receipt")
    assert "checks receipts alone" in errors_of(["prove", "X1", "--verify", str(path)], capsys)[0]


def test_an_interrupt_writes_no_report_and_leaves_no_process(tmp_path: Path) -> None:
    report, started = tmp_path / "proofs.json", tmp_path / "started"
    code = f"""
import sys, z3
from pathlib import Path
from poolproof_conformance.cli.main import main
from poolproof_spec.smt import registry
from poolproof_spec.smt.query import Query
from poolproof_spec.smt.theorem import Theorem
a, b, c = z3.Ints("a b c")
hard = Query("hard", (a > 9999, b > 9999), a * a * a + b * b * b != c * c * c + 114)
registry.THEOREMS = {{"X-hard": Theorem("X-hard", "c", "b", lambda: (hard,))}}
Path({str(started)!r}).touch()
main(["prove", "--budget", "4000000000", "--json", {str(report)!r}])
"""
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not started.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in errors
    assert not report.exists()
