"""Campaigns: killed and resumed, sharded and merged they report the same; what hangs or dies is unknown."""

import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from poolproof_conformance.campaigns.jobs import JobResult
from poolproof_conformance.campaigns.lock import only_run
from poolproof_conformance.campaigns.recording import Recording
from poolproof_conformance.campaigns.rows import Cell
from poolproof_conformance.campaigns.store import Store
from poolproof_conformance.cli.main import run
from poolproof_conformance.replay import replay
from poolproof_conformance.target_names import resolve_target
from poolproof_conformance.traces import read_trace

CHILDREN = Path(__file__).parent / "children"
SLACK = str(CHILDREN / "slack.py")
"""A target with failures of several kinds."""
JOBS = ["--jobs", "6", "--layout", "tri", "--layout", "swa2"]


def campaign(*arguments: str, code: int = 1) -> None:
    assert run(["campaign", *arguments]) == code


def told(path: Path, folder: Path) -> dict[str, Any]:
    """What `show` tells, less the time it took and where the traces are."""
    run(["campaign", "show", str(path), "--json", str(folder / "told.json")])
    summary = json.loads((folder / "told.json").read_text())
    assert summary.pop("seconds") >= 0
    for cell in summary["targets"]:
        for kind in cell["kinds"]:
            kind["trace_file"] = Path(kind["trace_file"]).name
    return summary


def child_in(folder: Path, fault: str) -> str:
    """An adapter that is wrong on purpose, as a path that a command takes."""
    path = folder / f"{fault}.py"
    wrong = CHILDREN / "wrong.py"
    path.write_text(f"import os, sys\nos.execv(sys.executable, [sys.executable, {str(wrong)!r}, {fault!r}])\n")
    return str(path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign that ran through."""
    path = tmp_path_factory.mktemp("whole") / "whole.sqlite"
    campaign(SLACK, *JOBS, "--db", str(path))
    return path


def test_finds_kinds_shrunk_with_traces_that_replay(whole: Path, tmp_path: Path) -> None:
    summary = told(whole, tmp_path)
    assert summary["run_state"] == "complete"
    assert {cell["layout"] for cell in summary["targets"]} == {"swa2", "tri"}
    assert all(cell["verdict"] == "violated" and cell["core"] is None for cell in summary["targets"])
    assert all(cell["histories"] > 100 and cell["operations"] > cell["histories"] for cell in summary["targets"])
    with Store.read(whole) as store:
        kinds = store.kinds()
        assert len({(kind.property, kind.signature) for kind in kinds}) == len(kinds) >= 4
        assert max(kind.operations for kind in kinds) <= 4
        with resolve_target(SLACK).opened() as adapter:
            for kind in kinds:
                trace = read_trace(store.traces_folder / kind.trace_file)
                again = replay(adapter, trace, SLACK, None, None)
                assert kind.property in again.violated
                assert again.as_expected, again.differences


def test_killed_and_started_again_it_reports_the_same(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "killed.sqlite"
    arguments = [SLACK, *JOBS, "--db", str(path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "poolproof_conformance.cli.main", "campaign", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for_jobs(path, 2)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = done_jobs(path)
    assert 2 <= len(before) < 6
    assert told(path, tmp_path)["run_state"] == "partial"
    campaign(*arguments)
    assert done_jobs(path).items() >= before.items(), "a job was done twice, or lost"
    assert told(path, tmp_path) == told(whole, tmp_path)


def test_two_shards_merge_into_the_whole(whole: Path, tmp_path: Path) -> None:
    for shard in "12":
        campaign(SLACK, *JOBS, "--db", str(tmp_path / f"{shard}.sqlite"), "--shard", f"{shard}/2")
    parts = [str(tmp_path / "2.sqlite"), str(tmp_path / "1.sqlite")]
    assert done_jobs(Path(parts[0])).keys().isdisjoint(done_jobs(Path(parts[1])))
    campaign("merge", str(tmp_path / "both.sqlite"), *parts)
    both = tmp_path / "both.sqlite"
    with Store.read(both) as store:
        seconds = store.seconds()
    campaign("merge", str(both), parts[0])
    with Store.read(both) as store:
        assert store.seconds() == seconds, "merged once more, nothing changes"
    assert told(both, tmp_path) == told(whole, tmp_path)


def test_a_partial_part_makes_the_whole_partial(whole: Path, tmp_path: Path) -> None:
    partial = tmp_path / "partial.sqlite"
    with Recording.write(partial, settings()) as store:
        cell = Cell(target="reference", core=None, mode=None, layout="swa2")
        store.add_job(JobResult(cell=cell, stage=0, number=0, histories=1, operations=1), store.begin_run([cell]), 2.0)
    for parts in ([whole, partial], [partial, whole]):
        merged = tmp_path / f"{parts[0].stem}-first.sqlite"
        campaign("merge", str(merged), *map(str, parts))
        assert told(merged, tmp_path)["run_state"] == "partial"


def test_two_workers_report_the_same(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "two.sqlite"
    campaign(SLACK, *JOBS, "--db", str(path), "--workers", "2")
    assert told(path, tmp_path) == told(whole, tmp_path)


def test_interrupted_keeps_what_is_finished_and_says_how_to_go_on(tmp_path: Path) -> None:
    path, report = tmp_path / "c.sqlite", tmp_path / "c.json"
    command = [sys.executable, "-m", "poolproof_conformance.cli.main", "campaign", SLACK, "--db", str(path)]
    process = subprocess.Popen(
        [*command, "--json", str(report)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for_jobs(path, 1)
    process.send_signal(signal.SIGINT)
    _, noted = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"to go on: poolproof campaign {shlex.quote(SLACK)} --db {shlex.quote(str(path))}" in noted
    summary = json.loads(report.read_text())
    assert summary["run_state"] == "partial"
    assert sum(cell["histories"] for cell in summary["targets"]) == sum(done_jobs(path).values()) > 0


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("hangs", "the history took longer than 0.5 s"), ("is killed", "was ended by SIGKILL")],
)
def test_a_target_that_hangs_or_dies_is_unknown_and_gets_a_fresh_process(
    fault: str, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "c.sqlite"
    limits = ["--jobs", "2", "--layout", "swa2", "--history-limit", "0.5"]
    campaign(child_in(tmp_path, fault), *limits, "--db", str(path), code=2)
    with Store.read(path) as store:
        (totals,) = store.cells()
    assert totals.verdict == "unknown"
    assert list(totals.doubts.items()) == [(reason, 6)], "three times in each job, then the job is left"


def test_a_spent_budget_begins_nothing_and_says_so(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "c.sqlite"
    assert run(["campaign", "merge", str(path), str(whole)]) == 1
    before = done_jobs(path)
    campaign(SLACK, "--budget", "0.1s", "--db", str(path))
    assert "the budget of 0.1 s is spent" in capsys.readouterr().err
    assert done_jobs(path) == before


def test_nothing_run_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    campaign("reference", "--jobs", "1", "--shard", "2/2", "--db", str(path), code=2)
    summary = told(path, tmp_path)
    assert [(cell["layout"], cell["histories"], cell["verdict"]) for cell in summary["targets"]] == [
        ("mamba2", 0, "unknown"),
        ("swa2", 0, "unknown"),
        ("tri", 0, "unknown"),
    ]


def test_a_cell_that_was_not_come_to_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    campaign("reference", "--jobs", "2", "--db", str(path), code=2)
    verdicts = {cell["layout"]: cell["verdict"] for cell in told(path, tmp_path)["targets"]}
    assert verdicts == {"swa2": "holds", "mamba2": "holds", "tri": "unknown"}


def test_the_reference_holds(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    campaign("reference", "--jobs", "3", "--db", str(path), code=0)
    with Store.read(path) as store:
        assert [totals.cell.layout for totals in store.cells()] == ["mamba2", "swa2", "tri"]
        assert store.kinds() == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["reference", "--budget", "soon", "--db", "c.sqlite"], "expected a number and a unit: 30s, 30m, 2h"),
        (["reference", "--shard", "3/2", "--db", "c.sqlite"], "expected I/N with I from 1 to N"),
        (["reference", "--db", "none/c.sqlite"], "no such folder"),
        (["reference", "--db", "text"], "no campaign's file"),
        (["reference", "--db", "other.sqlite"], "an SQLite file, but no campaign's"),
        (["reference", "--db", "mine.sqlite", "--seed", "2"], "a campaign with seed 1, this one has seed 2"),
        (["show", "missing.sqlite"], "no such file"),
        (["merge", "mine.sqlite", "mine.sqlite"], "is OUT as well"),
        (["merge", "out.sqlite", "mine.sqlite", "seed.sqlite"], "merge files of one campaign only"),
        (["sglang==9.9", "--db", "c.sqlite"], "not installed"),
    ],
)
def test_errors_say_what_is_wrong(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("this is not a database, whatever its name says" * 100)
    with sqlite3.connect("other.sqlite") as other:
        other.execute("CREATE TABLE something (else_ TEXT)")
    other.close()
    for name, seed in (("mine.sqlite", "1"), ("seed.sqlite", "2")):
        Recording.write(Path(name), {"seed": seed, "plan": settings()["plan"]}).close()
    assert run(["campaign", *arguments]) == 2
    errors = capsys.readouterr().err
    assert said in errors
    assert "fix: " in errors


def test_a_second_run_on_the_same_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.sqlite"
    with only_run(path):
        campaign("reference", "--jobs", "1", "--db", str(path), code=2)
    assert "another run is at work on it" in capsys.readouterr().err
    campaign("reference", "--jobs", "1", "--db", str(path), code=2)  # two of its three cells have no job yet
    assert not path.with_name("c.sqlite.lock").exists()


def settings() -> dict[str, str]:
    from poolproof_conformance.campaigns.plan import Plan

    cell = Cell(target="reference", core=None, mode=None, layout="swa2")
    return Plan(cells=(cell,), seed=1, budget_s=1.0).settings()


def wait_for_jobs(path: Path, count: int) -> None:
    """Until the running campaign has finished that many jobs."""
    for _ in range(1200):
        time.sleep(0.05)
        if path.exists() and len(done_jobs(path)) >= count:
            return
    raise AssertionError(f"{path}: fewer than {count} jobs after a minute")


def done_jobs(path: Path) -> dict[tuple[int, int, int], int]:
    """(cell, stage, number) of each finished job, and its histories."""
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute(
            "SELECT cell.layout, stage, number, histories FROM job JOIN cell ON cell.id = job.cell"
        ).fetchall()
    except sqlite3.OperationalError:  # the tables are not there yet
        rows = []
    finally:
        connection.close()
    return {(layout, stage, number): histories for layout, stage, number, histories in rows}
