"""The terminal's view of a trace: the same frames, in characters, with nothing that steers a terminal."""

import json
from pathlib import Path

import pytest

from poolproof_conformance.cli.main import run
from poolproof_conformance.reporting.in_terminal import printed
from poolproof_conformance.trace_format import Trace
from poolproof_conformance.traces import write_trace
from poolproof_spec.geometry import layout
from poolproof_spec.operation import Alloc, Gate, Insert

TOY = str(Path(__file__).parent / "children" / "toy.py")


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "edge.json"
    operations = (Insert(key=(1, 2, 3), state=True), Alloc(name="a", tokens=5))
    write_trace(
        path,
        Trace(
            format=1,
            name="edge",
            note="a \x1b[31mred\x1b[0m [bold]note[/bold]",
            geometry=layout("tri", 768, STATE=48, SWA=32, FULL=64),
            operations=operations,
        ),
    )
    return path


def test_shows_strip_tree_verdicts_and_why(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", str(trace_file)]) == 0
    out = capsys.readouterr().out
    assert "1. alloc(name=a, tokens=5)" in out
    assert "granted: evicts leaf [1, 2, 3]; 1 cached page lost" in out
    assert "so it does not fit: the bytes of FULL bind." in out
    lines = out.splitlines()
    after = max(number for number, line in enumerate(lines) if line.startswith("after, reference"))
    lane = lines[after + 1]
    assert lane.startswith("   FULL ░")
    # FULL has 12 pages of 64 bytes in 90 columns: the sink, then 4 free, 5 of the request, 2 cached.
    assert [lane[8:].count(sign) for sign in "aA░"] == pytest.approx([37, 15, 7], abs=2)
    assert any(line.strip().startswith("└ B 1·2·3") and "evicted" in line for line in lines)


def test_text_of_others_does_not_steer_the_terminal(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["show", str(trace_file)])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "[bold]note[/bold]" in out
    assert (
        printed("a\x07\u202eb\x9bc").plain
        == "a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"
    )


def test_one_step_and_json(trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "frames.json"
    assert run(["show", str(trace_file), "--step", "1", "--json", str(path)]) == 0
    out = capsys.readouterr().out
    assert "1. alloc" in out
    assert "0. insert" not in out
    document = json.loads(path.read_text())
    assert [frame["call"] for frame in document["frames"]] == [
        "insert(key=[1, 2, 3], state=True)",
        "alloc(name=a, tokens=5)",
    ]
    assert document["frames"][1]["before"]["lanes"][0]["member"] == "STATE"


def test_exit_codes(trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", str(trace_file), "--target", TOY]) == 1
    assert "✗ P2 complete violated" in capsys.readouterr().out
    dies = tmp_path / "dies.py"
    dies.write_text("raise SystemExit(3)")
    assert run(["show", str(trace_file), "--target", str(dies)]) == 2
    assert "unknown: " in capsys.readouterr().out
    assert run(["show", str(trace_file), "--step", "2"]) == 2
    assert "no operation 2, the last is 1" in capsys.readouterr().err
    assert run(["show", str(tmp_path / "none.json")]) == 2


def test_closed_gate_pins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gate.json"
    geometry = layout("swa2", 320, FULL=32, SWA=32)
    operations = (Alloc(name="a", tokens=1), Gate(open=False), Alloc(name="b", tokens=1))
    write_trace(path, Trace(format=1, name="gate", geometry=geometry, operations=operations))
    assert run(["show", str(path), "--step", "2"]) == 0
    out = capsys.readouterr().out
    assert "gates closed: SWA, FULL" in out
    assert "^^^^" in out
