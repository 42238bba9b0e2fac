"""Solvers as processes: answers, budgets, and every way in which one can fail to answer."""

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Mapping

import msgspec
import pytest
import z3

from poolproof_spec.smt import solver as module
from poolproof_spec.smt.query import script
from poolproof_spec.smt.solver import (
    LADDERS,
    SOLVERS,
    Budget,
    Name,
    Rung,
    Solver,
    SolverMissingError,
    SolverVersionError,
    budget_of,
    check_version,
    require_installed,
)
from poolproof_spec.smt.worker import CVC5_RUNGS, Z3_RUNGS

A, B, C = z3.Ints("a b c")
SAT = script([A * B == 35, A > 1, B > A])
UNSAT = script([A * A == 2])
CUBES = script([A * A * A + B * B * B + C * C * C == 114, A > 10**4, B > 10**4])
"""Nobody knows an answer: work without end."""
SMALL = Budget(z3_units=200_000, cvc5_units=20_000, cpu_s=20, wall_s=60)

HELLO = """
import json, sys, time, os, signal
print(json.dumps({{"solver": "z3", "version": "{version}", "missing": "{missing}"}}), flush=True)
for line in sys.stdin:
    {answer}
"""


def fake(answer: str = "pass", version: str = "5.4.1", missing: str = "") -> list[str]:
    """A worker that says this and then does that with each request."""
    return [sys.executable, "-c", HELLO.format(answer=answer, version=version, missing=missing)]


@pytest.mark.parametrize("name", SOLVERS)
def test_a_solver_decides_and_says_what_it_used(name: Name) -> None:
    with Solver(name) as solver:
        settled = solver.ask(SAT, SMALL)
        assert settled.answer.result == "sat"
        assert settled.answer.resource > 0
        assert re.fullmatch(r"\d+\.\d+\.\d+(\.\d+)?", settled.version)
        assert settled.last.rung == LADDERS[name][0]
        assert solver.ask(script([A > 0, A < 0]), SMALL).answer.result == "unsat"


def test_z3_tells_a_model() -> None:
    with Solver("z3") as solver:
        assert solver.ask(SAT, SMALL).answer.model == {"a": 5, "b": 7}
        flag = z3.Bool("flag")
        assert solver.ask(script([flag, A == -4]), SMALL).answer.model == {"flag": True, "a": -4}


def test_one_process_answers_many_questions_the_same_each_time() -> None:
    with Solver("z3") as solver:
        first, process = solver.ask(SAT, SMALL), solver.process_id
        solver.ask(UNSAT, SMALL)
        again = solver.ask(SAT, SMALL)
        assert solver.process_id == process
    assert (first.answer.resource, first.answer.model) == (again.answer.resource, again.answer.model)


@pytest.mark.parametrize("name", SOLVERS)
def test_too_small_a_limit_is_unknown_with_its_reason_after_the_whole_ladder(name: Name) -> None:
    with Solver(name) as solver:
        settled = solver.ask(CUBES, budget_of(1))
    assert settled.answer.result == "unknown"
    assert settled.answer.reason == "resource limit of 1 reached"
    assert tuple(attempt.rung for attempt in settled.attempts) == LADDERS[name]


def test_the_ladder_ends_with_the_first_that_decides() -> None:
    rungs = [Rung("simple", 1), Rung("default", 0), Rung("arith-2", 0)]
    limited = msgspec.structs.replace(SMALL, z3_units=40)
    with Solver("z3") as solver:
        assert len(solver.ask(CUBES, limited, rungs).attempts) == 3
        assert len(solver.ask(SAT, SMALL, rungs).attempts) == 1


def test_spent_cpu_seconds_are_a_timeout_and_a_fresh_worker_comes_next() -> None:
    with Solver("z3") as solver:
        solver.ask(SAT, SMALL)
        settled = solver.ask(CUBES, Budget(z3_units=2**32 - 1, cpu_s=1))
        assert settled.answer.result == "timeout"
        assert settled.answer.reason == "1 CPU seconds spent"
        assert solver.ask(SAT, SMALL).answer.result == "sat"


def test_cpu_seconds_of_earlier_questions_do_not_count() -> None:
    with Solver("z3") as solver:
        for _ in range(3):
            assert solver.ask(CUBES, Budget(z3_units=4_000_000, cpu_s=60)).answer.result == "unknown"
        assert solver.ask(SAT, Budget(cpu_s=1)).answer.result == "sat"


def test_a_killed_worker_is_unknown_and_a_fresh_one_comes_next() -> None:
    with Solver("z3") as solver:
        solver.ask(SAT, SMALL)
        first = solver.process_id
        assert first is not None
        killer = threading.Timer(0.5, os.kill, (first, signal.SIGKILL))
        killer.start()
        settled = solver.ask(CUBES, Budget(z3_units=2**32 - 1, cpu_s=60))
        killer.join()
        assert settled.answer.result == "unknown"
        assert settled.answer.reason == "the z3 process ended by SIGKILL"
        assert len(settled.attempts) == 1, "what killed one may kill the next: the climb ends"
        assert solver.ask(SAT, SMALL).answer.result == "sat"
        assert solver.process_id not in (first, None)


def test_a_worker_killed_between_questions_is_replaced() -> None:
    with Solver("z3") as solver:
        solver.ask(SAT, SMALL)
        assert solver.process_id is not None
        os.kill(solver.process_id, signal.SIGKILL)
        time.sleep(0.1)
        assert solver.ask(SAT, SMALL).answer.result == "sat"


def test_a_hung_worker_is_killed() -> None:
    with Solver("z3", fake("time.sleep(600)")) as solver:
        started = time.monotonic()
        settled = solver.ask(SAT, Budget(wall_s=1.0))
        assert settled.answer.result == "timeout"
        assert settled.answer.reason == "z3 hung: no answer in 1 s, killed"
        assert solver.process_id is None
    assert time.monotonic() - started < 10


def test_a_hung_worker_that_does_not_even_read_is_killed() -> None:
    """The question is longer than a pipe holds, so that writing it waits too."""
    with Solver("z3", fake("time.sleep(600)")) as solver:
        solver.ask(SAT, Budget(wall_s=1.0))
        long = SAT + "; " + "x" * 2_000_000
        assert solver.ask(long, Budget(wall_s=1.0)).answer.result == "timeout"


def test_a_worker_that_ends_tells_its_last_words() -> None:
    with Solver("z3", fake("sys.exit('out of tape')")) as solver:
        settled = solver.ask(SAT, SMALL)
    assert settled.answer.result == "unknown"
    assert settled.answer.reason == "the z3 process ended with exit code 1: out of tape"


def test_a_worker_killed_before_it_says_anything_is_unknown_too() -> None:
    command = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
    with Solver("z3", command) as solver:
        assert solver.ask(SAT, SMALL).answer.reason == "the z3 process ended by SIGKILL"


def test_a_worker_that_never_says_what_it_is_is_killed() -> None:
    with Solver("z3", [sys.executable, "-c", "import time; time.sleep(600)"]) as solver:
        assert solver.ask(SAT, Budget(wall_s=1.0)).answer.result == "timeout"


def test_half_a_line_is_no_answer() -> None:
    half = 'sys.stdout.write(\'{"result":"unsat"\'); sys.stdout.flush(); sys.exit(0)'
    with Solver("z3", fake(half)) as solver:
        assert solver.ask(SAT, SMALL).answer.result == "unknown"


@pytest.mark.parametrize("name", SOLVERS)
def test_a_text_that_is_no_smt_lib_is_an_error(name: Name) -> None:
    with Solver(name) as solver:
        settled = solver.ask("(set-logic QF_NIA)\n(assert (> nothing 0))\n(check-sat)\n", SMALL)
        assert settled.answer.result == "error"
        assert "nothing" in settled.answer.reason
        assert solver.ask(SAT, SMALL).answer.result == "sat"


def test_a_closed_solver_starts_no_worker() -> None:
    solver = Solver("z3")
    solver.close()
    assert solver.ask(SAT, SMALL).answer.result == "unknown"
    assert solver.process_id is None


@pytest.mark.parametrize("version", ["4.8.12", "5.4.0.9", "5.5.0", ""])
def test_a_version_outside_the_tested_range_is_an_error_that_names_the_remedy(version: str) -> None:
    with Solver("z3", fake(version=version)) as solver, pytest.raises(SolverVersionError) as raised:
        solver.ask(SAT, SMALL)
    assert raised.value.found == f"z3 {version or '(no version)'}: tested with 5.4.1"
    assert raised.value.fix == "python -m pip install 'z3-solver==5.4.1.0'"


def test_versions_inside_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    ranges: Mapping[Name, tuple[str, str]] = {"z3": ("5.4.1", "5.6.0"), "cvc5": ("1.3.0", "1.4.2")}
    monkeypatch.setattr(module, "TESTED", ranges)
    for name, version in (("z3", "5.4.1.0"), ("z3", "5.5.12"), ("z3", "5.6.0.1"), ("cvc5", "1.4.2")):
        check_version(name, version)
    with pytest.raises(SolverVersionError, match=r"cvc5 1\.10\.0: tested with 1\.3\.0 to 1\.4\.2"):
        check_version("cvc5", "1.10.0")


def test_a_solver_that_is_not_installed_is_an_error_that_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    with Solver("z3", fake(missing="No module named 'z3'")) as solver, pytest.raises(SolverMissingError) as raised:
        solver.ask(SAT, SMALL)
    assert raised.value.fix == "python -m pip install 'poolproof[smt]'"
    require_installed(("z3", "cvc5"))
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(SolverMissingError, match="cvc5 is not installed"):
        require_installed(("cvc5",))


def test_a_worker_that_cannot_start_is_an_error() -> None:
    command = [sys.executable, "-c", "raise SystemExit('no library')"]
    with Solver("z3", command) as solver, pytest.raises(SolverMissingError, match="did not start: no library"):
        solver.ask(SAT, SMALL)


def test_every_rung_of_the_ladders_exists() -> None:
    assert {rung.name for rung in LADDERS["z3"]} == set(Z3_RUNGS)
    assert {rung.name for rung in LADDERS["cvc5"]} == set(CVC5_RUNGS)
    assert all(len(set(ladder)) == len(ladder) >= 3 for ladder in LADDERS.values())


@pytest.mark.parametrize(
    ("name", "rung"), [("z3", rung) for rung in Z3_RUNGS] + [("cvc5", rung) for rung in CVC5_RUNGS]
)
def test_every_rung_decides_something(name: Name, rung: str) -> None:
    with Solver(name) as solver:
        assert solver.ask(SAT, Budget(), [Rung(rung, 3)]).answer.result == "sat"
        assert solver.ask(script([A > B, B > A]), Budget(), [Rung(rung, 3)]).answer.result == "unsat"
