"""`poolproof explore`, as typed."""

import json
from pathlib import Path

import pytest

from poolproof_conformance.cli import explore as command
from poolproof_conformance.cli.main import run
from poolproof_conformance.explorer.exploration import Counts

from .explorer_counts import COUNTS


def test_json_has_what_others_rely_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "nested.json"
    assert run(["explore", "swa2-nested", "--json", str(file)]) == 0
    written = json.loads(file.read_text())
    names = "config policy distinct transitions depth seconds transitions_per_s symmetry verdict violations"
    assert {*names.split(), "witnesses_reached"} <= written.keys()
    assert (written["distinct"], written["transitions"], written["depth"]) == COUNTS["swa2-nested"]
    assert "swa2-nested, reference, reference engine: holds" in capsys.readouterr().out


def test_a_violation_exits_1_and_its_trace_replays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for engine in ("reference", "packed"):
        arguments = ["--policy", "skips-spare-pass", "--engine", engine, "--out", str(tmp_path / engine)]
        assert run(["explore", "swa2-window", *arguments]) == 1
        trace = tmp_path / engine / "explore-swa2-window-skips-spare-pass-irredundant.json"
        assert run(["replay", str(trace)]) == 0
    assert "P1+ irredundant: 3 operations" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["swa2-nested", "--depth", "2"],
        ["swa2-nested", "--states", "5"],
        ["swa2-nested", "--depth", "0"],
        ["swa2-nested", "--memory-limit", "4K"],
        ["swa2-nested", "--engine", "packed", "--depth", "2"],
    ],
)
def test_a_limit_exits_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explore", *arguments]) == 2
    assert "unknown" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "found", "fix"),
    [
        (["swa2-nestd"], "near: swa2-nested", "explore --list"),
        (["swa2-nested", "--policy", "newest"], "near: newest-first", "explore --list"),
        (["swa2-nested", "--resume"], "--resume is an option of the packed engine", "--engine packed"),
        (["swa2-nested", "--engine", "packed", "--resume"], "needs the folder", "--checkpoint"),
        (["swa2-group", "--engine", "packed"], "group_begin", "--engine reference"),
        (["swa2-nested", "--engine", "packed", "--policy", "leaks-page"], "no policy", "--engine reference"),
        (["swa2-nested", "--memory-limit", "lots"], "is no size", "--help"),
    ],
)
def test_errors_name_the_next_command(
    arguments: list[str], found: str, fix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explore", *arguments]) == 2
    error = capsys.readouterr().err
    assert found in error
    assert fix in error.splitlines()[-1]


def test_the_list_has_configurations_and_policies(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explore", "--list"]) == 0
    told = capsys.readouterr().out
    assert all(f"{name}:" in told for name in COUNTS)
    assert "evicts-locked" in told
    assert run(["explore"]) == 2


def test_export_writes_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explore", "swa2-event", "--export", "promela"]) == 0
    assert "active proctype explore()" in capsys.readouterr().out


def test_interrupted_it_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_plain", interrupted)
    file = tmp_path / "none.json"
    assert run(["explore", "swa2-nested", "--json", str(file)]) == 130
    assert "no JSON written" in capsys.readouterr().err
    assert not file.exists()


def test_progress_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("poolproof_conformance.cli.explore_progress.PLAIN_LINE_EVERY_S", 0)
    with command.progress("explore x") as told:
        told(Counts(distinct=2000, transitions=5000, depth=4, waiting=1000))
    words = capsys.readouterr().err
    assert "2,000 states, 5,000 transitions" in words
    assert "depth 4, 1,000 waiting" in words
    assert "s left or more" in words
