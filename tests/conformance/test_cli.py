"""The command line: exit codes, errors in two lines, JSON written whole, an interrupt that leaves nothing behind."""

import fcntl
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from poolproof_conformance.cli.main import run
from poolproof_conformance.trace_format import Expected, ExpectedOutcome, Trace
from poolproof_conformance.traces import write_trace
from poolproof_spec.geometry import layout
from poolproof_spec.operation import Alloc, Insert

CHILDREN = Path(__file__).parent / "children"
TRACE = Trace(
    format=1,
    name="one-of-two",
    geometry=layout("swa2", 192, FULL=32, SWA=32),
    operations=(Insert(key=(1,)), Insert(key=(2,)), Alloc(name="a", tokens=1)),
    expected=Expected(outcomes={2: ExpectedOutcome(result="granted", evicted_pages=1)}),
)


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    write_trace(path, TRACE)
    return path


@pytest.fixture
def other_file(tmp_path: Path) -> Path:
    """The same, expecting what does not come."""
    path = tmp_path / "other.json"
    wrong = Expected(outcomes={2: ExpectedOutcome(result="rejected")})
    write_trace(path, replace(TRACE, name="other", expected=wrong))
    return path


def test_replay_that_holds(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", str(trace_file)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "one-of-two on reference: holds, as the trace expects",
        "  0. insert(key=[1]): done",
        "  1. insert(key=[2]): done",
        "  2. alloc(name=a, tokens=1): granted, 1 cached page lost",
    ]


def test_replay_that_differs(trace_file: Path, other_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", str(trace_file), str(other_file), "--as-expected"]) == 1
    assert "not as expected: operation 2: rejected expected, granted found" in capsys.readouterr().out


def test_replay_of_a_violation_exits_1_unless_foretold(
    trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toy = str(CHILDREN / "toy.py")
    report = tmp_path / "new" / "report.json"
    assert run(["replay", str(trace_file), "--target", toy, "--json", str(report)]) == 1
    (result,) = json.loads(report.read_text())
    assert result["verdict"] == "violated"
    assert result["violated"] == ["complete"]
    assert result["as_expected"] is False
    known = {"target": toy, "outcomes": {"2": {"result": "refused"}}, "violates": ["complete"]}
    document = json.loads(trace_file.read_text())
    document["expected"] = {"targets": [known]}
    trace_file.write_text(json.dumps(document))
    assert run(["replay", str(trace_file), "--target", toy]) == 1
    assert run(["replay", str(trace_file), "--target", toy, "--as-expected"]) == 0
    capsys.readouterr()


def test_failing_target_is_unknown(trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    adapter = tmp_path / "dies.py"
    adapter.write_text("import sys; sys.exit('cannot load the engine')")
    assert run(["replay", str(trace_file), "--target", str(adapter)]) == 2
    out = capsys.readouterr().out
    assert "unknown" in out
    assert "cannot load the engine" in out


@pytest.mark.parametrize(
    ("arguments", "error", "fix"),
    [
        (["replay", "none.json"], "none.json: no such file", "path of a trace"),
        (["replay"], "Missing argument", "poolproof replay --help"),
        (["repla"], "No such command 'repla'", "poolproof --help"),
        (["replay", "{trace}", "--target", "refrence"], "unknown target 'refrence'", "poolproof targets list"),
        (["replay", "{trace}", "--mode", "fast"], "Invalid value for '--mode'", "poolproof replay --help"),
        (["replay", "{trace}", "--json", "{trace}/x"], "cannot be written", "a folder that you may write to"),
        (["explain", "{trace}", "--at", "0"], "no demand to explain", "--tokens"),
        (["explain", "{trace}", "--tokens", "1", "--states", "1"], "not both", "poolproof explain --help"),
        (["targets", "install", "reference"], "only releases", "poolproof targets install sglang=="),
        (["conform", "nobody"], "unknown target 'nobody'", "poolproof targets list"),
        (["conform", "fast:tpu"], "no such variant of the fast pool", "use fast"),
    ],
)
def test_wrong_command_exits_2_with_one_line_what_and_one_line_fix(
    arguments: list[str], error: str, fix: str, trace_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([argument.replace("{trace}", str(trace_file)) for argument in arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    what, how = captured.err.splitlines()
    assert what.startswith("error: ")
    assert error in what
    assert how.startswith("  fix: ")
    assert fix in how


def test_own_failure_does_not_read_as_a_violation(
    trace_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("poolproof_conformance.cli.replay.replay_trace", lambda *_: 1 / 0)
    assert run(["replay", str(trace_file)]) == 2
    assert "poolproof itself failed" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["check"], ["conform"], ["replay"], ["explain"], ["targets", "install"]])
def test_help_has_an_example(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command, "--help"]) == 0
    assert " ".join(["  poolproof", *command]) in capsys.readouterr().out


def test_explain_of_a_trace_and_of_a_state(
    trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "explained.json"
    assert run(["explain", str(trace_file), "--json", str(report)]) == 0
    assert "why not 0: with 0 victims gone" in capsys.readouterr().out
    (explained,) = json.loads(report.read_text())
    assert explained["index"] == 2
    assert explained["explanation"]["victims"] == [{"kind": "leaf", "key": [1]}]
    state = tmp_path / "state.json"
    geometry = json.loads(trace_file.read_text())["geometry"]
    state.write_text(json.dumps({"geometry": geometry, "members": [{}, {}], "free_token_ids": [1, 2, 3, 4, 5]}))
    assert run(["explain", str(state), "--tokens", "2"]) == 0
    assert "granted: it fits with nothing evicted." in capsys.readouterr().out
    assert run(["explain", str(state)]) == 2
    assert "a state needs a demand" in capsys.readouterr().err


def test_targets_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["targets", "list", "--json", str(tmp_path / "targets.json")]) == 0
    assert {row["target"] for row in json.loads((tmp_path / "targets.json").read_text())} >= {"reference", "fast"}
    assert "bundled" in capsys.readouterr().out


def test_interrupt_exits_130_and_ends_the_target(trace_file: Path, tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    adapter = tmp_path / "hangs.py"
    adapter.write_text(
        "import fcntl, time\n"
        f"held = open({str(lock)!r}, 'w')\n"
        "fcntl.flock(held, fcntl.LOCK_EX)\n"
        "held.write('here')\n"
        "held.flush()\n"
        "time.sleep(3600)\n"
    )
    command = [sys.executable, "-m", "poolproof_conformance.cli.main", "replay", str(trace_file)]
    report = tmp_path / "report.json"
    with subprocess.Popen(
        [*command, "--target", str(adapter), "--json", str(report)], stderr=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 30
        while not (lock.exists() and lock.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted: 0 of 1 replayed" in said
    assert not report.exists()
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # would wait for ever if the target were alive
