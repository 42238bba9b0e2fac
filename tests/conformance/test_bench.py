"""The benchmark itself: interleaving, failures that cost their own cell only, bars, files, the gate, the command."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from poolproof_conformance.bench import gate, session
from poolproof_conformance.bench.bars import BARS, judged
from poolproof_conformance.bench.machine import libraries, machine
from poolproof_conformance.bench.measure import cells_of, measure
from poolproof_conformance.bench.page import PLOT_NAME, page_text
from poolproof_conformance.bench.plot import plot_text
from poolproof_conformance.bench.results import BarRow, GpuFigure, Results, Row, read_results, to_json
from poolproof_conformance.bench.session import Named, Session, SubjectFailedError, named_subjects
from poolproof_conformance.bench.table import cell_words, notes, time_words
from poolproof_conformance.bench.works import WORKS
from poolproof_conformance.cli import bench as command
from poolproof_conformance.cli.main import run
from poolproof_conformance.errors import TargetNameError

DOCS = Path(__file__).parents[2] / "docs"

TOY = """
import json, os, sys, time
log, name, fault = sys.argv[1:4]
for line in sys.stdin:
    ask = json.loads(line)
    with open(log, "a") as file:
        file.write(f"{name} {ask['ask']} {ask.get('work', '')}\\n")
    if fault == "dies" and ask["ask"] == "run":
        print("no more", file=sys.stderr)
        os._exit(3)
    if fault == "hangs" and ask["ask"] == "run":
        time.sleep(60)
    if fault == "cannot" and ask["ask"] == "prepare":
        answer = {"cannot": "has none"}
    elif fault == "errs" and ask["ask"] == "prepare":
        answer = {"error": "ValueError: wrong"}
    elif fault == "babbles":
        answer = ["?"]
    else:
        answer = {"versions": {"release": name}} if ask["ask"] == "describe" else {}
        if ask["ask"] == "run":
            answer = {"value": 2.0}
    print(json.dumps(answer), flush=True)
"""


def toy(tmp_path: Path, name: str, fault: str = "") -> Named:
    return Named(name, (sys.executable, "-c", TOY, str(tmp_path / "log"), name, fault), baseline=name)


def quiet(_: str) -> None:
    pass


def row(work: str, size: int, subject: str, median: float | None = None) -> Row:
    return Row(
        work=work,
        size=size,
        subject=subject,
        median_us=median,
        min_us=median,
        max_us=median,
        runs=0 if median is None else 3,
        ratio_to_fast=None,
    )


def results(rows: Sequence[Row], bars: Sequence[BarRow] = ()) -> Results:
    return Results(
        machine={"cores": "2"}, versions={"fast": {"release": "1"}}, gate="green", rows=tuple(rows), bars=tuple(bars)
    )


def test_runs_are_interleaved(tmp_path: Path) -> None:
    rows, versions = measure([toy(tmp_path, "fast"), toy(tmp_path, "b")], [("evict-1", 10), ("refuse", 10)], 3, quiet)
    asked = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    assert [line[0] for line in asked if line[1] == "run"] == ["fast", "b"] * 6
    assert [line[1] for line in asked if line[0] == "b"] == ["describe", *["prepare", "run", "run", "run"] * 2]
    assert versions == {"fast": {"release": "fast"}, "b": {"release": "b"}}
    assert [(r.work, r.subject, r.median_us, r.runs, r.ratio_to_fast) for r in rows] == [
        ("evict-1", "fast", 2.0, 3, 1.0),
        ("evict-1", "b", 2.0, 3, 1.0),
        ("refuse", "fast", 2.0, 3, 1.0),
        ("refuse", "b", 2.0, 3, 1.0),
    ]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("dies", "ended with exit code 3: no more"),
        ("hangs", "gave no answer within"),
        ("errs", "ValueError: wrong"),
        ("babbles", "Expected `object`, got `array`"),
    ],
)
def test_a_failure_is_unknown_and_costs_the_others_nothing(
    fault: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "RUN_TIMEOUT_S", 0.3)
    rows, _ = measure([toy(tmp_path, "fast"), toy(tmp_path, "b", fault)], [("evict-1", 10)], 2, quiet)
    good, bad = rows
    assert (good.median_us, good.runs, good.unknown) == (2.0, 2, None)
    assert bad.median_us is None and bad.ratio_to_fast is None and reason in (bad.unknown or "")


def test_a_failed_subject_is_started_afresh_for_the_next_cell(tmp_path: Path) -> None:
    with Session(toy(tmp_path, "b", "dies")) as toys:
        for _ in range(2):
            assert toys.prepare("evict-1", 10) is None
            with pytest.raises(SubjectFailedError, match="exit code 3"):
                toys.run()


def test_what_a_subject_cannot_do_is_no_failure(tmp_path: Path) -> None:
    rows, _ = measure([toy(tmp_path, "fast"), toy(tmp_path, "b", "cannot")], [("float-move", 10)], 1, quiet)
    assert (rows[1].cannot, rows[1].unknown) == ("has none", None)
    assert cell_words(rows[1]) == "-"
    assert list(notes(results(rows))) == ["b, float-move: has none"]


def test_what_is_not_installed_is_unknown(tmp_path: Path) -> None:
    missing = Named("b", ("false",), missing="poolproof targets install b")
    rows, _ = measure([toy(tmp_path, "fast"), missing], [("evict-1", 10)], 1, quiet)
    assert rows[1].unknown == "not installed: poolproof targets install b"
    assert cell_words(rows[1]) == "unknown"


def test_memory_is_measured_in_a_fresh_process(tmp_path: Path) -> None:
    measure([toy(tmp_path, "fast")], [("memory", 10), ("evict-1", 10)], 2, quiet)
    asked = [line.split()[1:] for line in (tmp_path / "log").read_text().splitlines()]
    assert asked[-2:] == [["prepare", "memory"], ["run"]]
    with Session(toy(tmp_path, "fast")) as toys:
        toys.prepare("evict-1", 1)
        before = toys._process
        toys.prepare("memory", 1)
        assert toys._process is not before


def test_each_bar_is_a_ratio_of_medians_and_judged_by_its_bound() -> None:
    for bar in BARS:
        cells = {(*bar.cell, bar.subject): 100.0}
        if bar.by is not None:
            cells[(*bar.by[0], bar.by[1])] = 50.0
        measured = bar.measured(cells)
        assert measured == (100.0 if bar.by is None else 2.0)
        assert bar.met(None) is None
        bound = bar.least if bar.least is not None else bar.most
        assert bound is not None and bar.met(bound) is True
        assert bar.met(bound * 0.99) is (bar.least is None)
        assert bar.met(bound * 1.01) is (bar.most is None)


def test_bars_name_cells_that_are_measured() -> None:
    cells = set(cells_of(WORKS, quick=False))
    for bar in BARS:
        assert bar.cell in cells
        assert bar.by is None or bar.by[0] in cells


def test_a_bar_without_its_figures_is_not_measured() -> None:
    rows = [row("alloc-free", 1, "fast", 10.0), row("alloc-free", 1, "vllm==0.33.0", 19.0)]
    found = {(bar.work, bar.bar): (bar.measured, bar.met) for bar in judged(rows)}
    assert found["alloc-free 1", "no slower than vllm==0.33.0"] == (1.9, True)
    assert found["alloc-free 1", "5x faster than sglang==0.5.23"] == (None, None)
    assert found["memory 100000", "under 500 bytes"] == (None, None)


def test_verdicts() -> None:
    met, missed, open_ = (BarRow(work="w", bar="b", measured=1.0, met=met) for met in (True, False, None))
    failed = msgspec.structs.replace(row("evict-1", 1, "b"), unknown="died")
    assert command.verdict_of(results([], [met, open_])) == "holds"
    assert command.verdict_of(results([failed], [met, open_])) == "unknown"
    assert command.verdict_of(results([failed], [met, missed])) == "violated"
    assert command.verdict_of(results([], [open_])) == "unknown"


def test_subjects_are_named_in_order() -> None:
    assert [n.title for n in named_subjects(("sglang==9", "vllm==9"), variants=True)] == [
        "fast",
        "fast (tables apart)",
        "sglang==9",
        "sglang==9 (eager)",
        "vllm==9",
        "vllm==9 (nothing cached)",
    ]
    assert [n.missing for n in named_subjects(("vllm==9",), variants=False)] == [
        "",
        "poolproof targets install vllm==9",
    ]
    with pytest.raises(TargetNameError, match="nothing to measure against"):
        named_subjects(("torch==2",), variants=False)


@pytest.mark.parametrize(
    ("us", "words"), [(0.756, "0.76 us"), (9.999, "10.0 us"), (999.4, "999 us"), (999.6, "1.00 ms"), (2.5e6, "2.50 s")]
)
def test_times_have_three_digits(us: float, words: str) -> None:
    assert time_words(us) == words


def test_figures_of_a_gpu_are_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    figures = (
        GpuFigure(work="copy_pages", size="64 bytes", value=3000.0, unit="GB/s", bound=4000.0, ratio=0.75),
        GpuFigure(work="alloc 1", size="1 operation", value=1, unit="launches", bound=1),
    )
    page = page_text(msgspec.structs.replace(results([]), gpu=figures))
    assert "| copy_pages | 64 bytes | 3000 GB/s | 4000 (75%) |" in page
    monkeypatch.setattr(command, "pass_gate", lambda *_: "green")
    monkeypatch.setattr(command, "measure", lambda *_: ((), {}))
    monkeypatch.setattr(command, "_gpu_measure", lambda: lambda: figures)
    assert run(["bench", "--gpu"]) == 2
    assert "75%" in capsys.readouterr().out


SMALL = results(
    [
        row("evict-1", 1_000, "fast", 20.0),
        row("evict-1", 10_000, "fast", 21.0),
        row("evict-1", 1_000, "b", 200.0),
        row("evict-1", 10_000, "b"),
        row("memory", 100_000, "fast", 376.0),
    ],
    [BarRow(work="evict-1 1000", bar="5x faster than b", measured=10.0, met=True)],
)


def test_files_read_back_and_are_repeatable(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(to_json(SMALL))
    assert read_results(tmp_path / "r.json") == SMALL
    assert plot_text(SMALL) == plot_text(SMALL)
    assert "<svg" in plot_text(SMALL) and "<dc:date>" not in plot_text(SMALL)
    page = page_text(SMALL)
    assert "| evict-1 1000 | 5x faster than b | 10x | met |" in page
    assert "| 10,000 | 21.0 us (21.0–21.0 us) | unknown |" in page


def test_the_page_is_made_from_the_committed_results() -> None:
    source = DOCS / "performance.json"
    assert (DOCS / "performance.md").read_text() == page_text(read_results(source))
    assert (DOCS / PLOT_NAME).read_text().startswith("<?xml")


def test_machine_tells_no_name_and_no_path() -> None:
    import platform

    text = json.dumps([machine(), libraries()])
    assert platform.node() not in text and str(Path.home()) not in text
    assert {"processor", "cores", "system", "python"} == set(machine())


def test_the_gate_lets_a_right_pool_through() -> None:
    assert "fast holds on 5 random histories" in gate.pass_gate(5)


def test_a_red_gate_measures_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from poolproof_conformance.faulty.registry import FAULTY
    from poolproof_conformance.reference_adapter import ReferenceAdapter
    from poolproof_conformance.target_names import Target

    class Wrong(Target):
        def opened(self):  # type: ignore[no-untyped-def]
            from contextlib import nullcontext

            return nullcontext(ReferenceAdapter(FAULTY[0].pool_class))

    monkeypatch.setattr(gate, "resolve_target", lambda name: Wrong(name))
    monkeypatch.setattr(command, "measure", lambda *_: pytest.fail("measured behind a red gate"))
    assert run(["bench", "--quick", "--json", str(tmp_path / "r.json")]) == 2
    assert "does not pass 50 random histories: violated" in capsys.readouterr().err
    assert not (tmp_path / "r.json").exists()


def test_command_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.json").write_text(to_json(SMALL))
    arguments = ["bench", "--from", str(tmp_path / "r.json")]
    assert run([*arguments, "--markdown", str(tmp_path / "p.md"), "--plot", str(tmp_path / "p.svg")]) == 0
    assert (tmp_path / "p.md").read_text() == page_text(SMALL)
    assert (tmp_path / "p.svg").read_text() == plot_text(SMALL)
    assert "5x faster than b" in capsys.readouterr().out
    (tmp_path / "r.json").write_text("{")
    assert run(arguments) == 2
    assert "no results of a benchmark" in capsys.readouterr().err


@pytest.mark.parametrize("sizes", ["a", "0", "1,,2"])
def test_sizes_that_are_none(sizes: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "--sizes", sizes]) == 2
    assert "expected numbers from 1 on" in capsys.readouterr().err


def test_ctrl_c_ends_the_children_and_writes_nothing(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_bench import toy
from poolproof_conformance.cli import bench, main
bench.pass_gate = lambda *_: "green"
bench.named_subjects = lambda *_, **__: [toy(Path({str(tmp_path)!r}), "fast", "hangs")]
sys.exit(main.run(["bench", "--only", "refuse", "--sizes", "10", "--json", {str(tmp_path / "r.json")!r}]))
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    log = tmp_path / "log"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (log.exists() and "run" in log.read_text()):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted: no file was written." in stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log"]
