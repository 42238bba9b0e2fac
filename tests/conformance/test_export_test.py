"""Exported tests fail where their traces fail, on what is really installed, and pass where the model is obeyed."""

import ast
import re
import subprocess
import sys
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest
from msgspec.structs import replace

from poolproof_conformance.cli.main import run
from poolproof_conformance.export_test import texts
from poolproof_conformance.export_test.export_errors import ExportError
from poolproof_conformance.export_test.pytest_file import pytest_text, shown_violated
from poolproof_conformance.export_test.sglang_file import sglang_text
from poolproof_conformance.targets import install_release
from poolproof_conformance.trace_format import Expected, Mode, TargetExpectation, Trace
from poolproof_conformance.traces import read_trace
from poolproof_spec import operation as op
from poolproof_spec.geometry import derive, layout

RUNNER = Path(__file__).parent / "children" / "run_exported.py"
KNOWN = {path.stem: path for path in sorted(Path(str(files("poolproof_conformance") / "known_traces")).glob("*.json"))}
RELEASES = ("sglang==0.5.22", "sglang==0.5.23")
COMPLAINTS = ("it is to be", "nothing cached need go", "no more need go", "grouped frees count")
"""How the messages of the last assertions begin: a test that fails elsewhere has failed for another reason."""
NOT_SEEN = {"bounded-work"}
"""Violations that no answer to a demand shows."""


@cache
def known(name: str) -> Trace:
    return read_trace(KNOWN[name])


def made(name: str, mode: Mode, geometry_of: str, *operations: op.AnyOperation, **sizes: int) -> Trace:
    """A trace with what no known one has."""
    arena = layout(geometry_of, sizes.pop("total"), **sizes)
    return Trace(format=1, name=name, mode=mode, geometry=arena, operations=operations)


TOURS = (
    made(
        "tour of swa2",
        "lazy",
        "swa2",
        op.Insert(key=(1, 2)),
        op.Insert(key=(1, 3)),
        op.Match(key=(1, 2)),
        op.LockPrefix(name="x-1", key=(1, 3)),
        op.UnlockWindow(name="x-1"),
        op.Extend(name="a", prefix_lens=(1, 4), seq_lens=(3, 4)),
        op.ExtendTail(name="b", prefix_len=2, seq_len=9, tail=3),
        op.FreeWindow(name="a"),
        op.Gate(open=False),
        op.Gate(open=True),
        op.GroupBegin(),
        op.Free(name="a"),
        op.GroupEnd(),
        op.Free(name="b"),
        op.Compact(),
        op.Unlock(name="x-1"),
        op.Query(),
        op.Decode(name="c", seq_lens=(2, 3, 5)),
        op.Extend(name="c", prefix_lens=(0,), seq_lens=(6,)),
        total=2048,
        page_tokens=2,
        FULL=64,
        SWA=64,
    ),
    made(
        "tour of tri",
        "eager",
        "tri",
        op.Insert(key=(1, 2), state=True),
        op.Insert(key=(1, 2), state=True),
        op.AllocStates(name="a", count=2),
        op.Alloc(name="a", tokens=3),
        op.Decode(name="a", seq_lens=(4, 1)),
        op.ExtendTail(name="b", prefix_len=0, seq_len=3, tail=1),
        op.Free(name="b"),
        op.Free(name="a"),
        op.Extend(name="d", prefix_lens=(0,), seq_lens=(4,)),
        total=2048,
        FULL=32,
        SWA=64,
        STATE=176,
    ),
    made(
        "tour of mamba2",
        "lazy",
        "mamba2",
        op.Insert(key=(1,)),
        op.ExtendTail(name="a", prefix_len=0, seq_len=5, tail=2),
        op.Free(name="a"),
        op.Alloc(name="b", tokens=4),
        total=1024,
        page_tokens=2,
        FULL=64,
        STATE=48,
    ),
)
"""Every call that can be exported, none of them under pressure: both releases do as the model says."""


GROUPED = replace(
    made(
        "victim left in the group",
        "lazy",
        "mamba2",
        op.Insert(key=(1,), state=True),
        op.GroupBegin(),
        op.AllocStates(name="b", count=5),
        total=336,
        FULL=32,
        STATE=48,
    ),
    expected=Expected(targets=(TargetExpectation(target="sglang>=0.5.22,<=0.5.23", violates=("deferred-frees",)),)),
)
"""The right answer at the right cost, and what was evicted for it waits in the caller's group."""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file for each known trace and each tour."""
    folder = tmp_path_factory.mktemp("exported")
    written = {texts.test_name(trace): sglang_text(trace) for trace in (*map(known, KNOWN), *TOURS, GROUPED)}
    for name, text in written.items():
        (folder / f"{name}.py").write_text(text)
    return {name: folder / f"{name}.py" for name in written}


def outcomes(output: str) -> dict[str, str]:
    """Name of each test to PASSED or FAILED, from pytest's own summary."""
    return {name: result for result, name in re.findall(r"^(PASSED|FAILED|ERROR) \S+::(\w+)", output, re.MULTILINE)}


@pytest.mark.parametrize(("release", "core"), [(RELEASES[0], "rust"), (RELEASES[1], "rust"), (RELEASES[1], "python")])
def test_in_the_engines_own_api_it_fails_where_the_trace_fails(
    release: str, core: str, exported: dict[str, Path]
) -> None:
    root = install_release(release)
    command = [sys.executable, str(RUNNER), str(root), core, *map(str, exported.values())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = outcomes(done.stdout)
    assert found.keys() == exported.keys(), done.stdout + done.stderr
    foretold = {}
    for name in KNOWN:
        violated = set(known(name).expected.of(release, core, known(name).mode or "eager").violates) - NOT_SEEN
        foretold[texts.test_name(known(name))] = "FAILED" if violated else "PASSED"
    foretold |= {texts.test_name(tour): "PASSED" for tour in TOURS} | {texts.test_name(GROUPED): "FAILED"}
    assert found == foretold, done.stdout
    for error in re.findall(r"^E   (\w+(?:Error|Exception).*)", done.stdout, re.MULTILINE):
        assert re.match(
            r"AssertionError: (it is to be|nothing cached need go|no more need go|grouped frees count)", error
        ), error


def test_the_seed_case_tells_the_releases_apart() -> None:
    foretold = [known("seed-fullswa-6").expected.of(release, "rust", "eager").violates for release in RELEASES]
    assert [set(violated) - NOT_SEEN == set() for violated in foretold] == [False, True]


def imported(text: str) -> set[str]:
    """Top-level packages that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


def test_it_imports_what_it_says(exported: dict[str, Path]) -> None:
    for path in exported.values():
        assert imported(path.read_text()) <= {"inspect", "array", "types", "torch", "sglang"}, path.name
        code = path.read_text().partition('"""\n')[2]
        assert "poolproof" not in code, path.name
    for name in KNOWN:
        assert imported(pytest_text(known(name))) == {"os", "poolproof_conformance"}


def test_the_files_are_clean(exported: dict[str, Path], tmp_path: Path) -> None:
    """Nothing unused, nothing undefined, lines that fit."""
    for name in KNOWN:
        (tmp_path / f"{texts.test_name(known(name))}.py").write_text(pytest_text(known(name)))
    lint = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F,W,E9", str(tmp_path)]
    done = subprocess.run(
        [*lint, str(next(iter(exported.values())).parent)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert max(len(line) for path in exported.values() for line in path.read_text().splitlines()) <= 120


@pytest.mark.parametrize(
    ("target", "failing"),
    [
        ("reference", set[str]()),
        ("fast", set[str]()),
        ("sglang==0.5.22", {"V5-page-for-each-decoding-request", "seed-fullswa-6"}),
        ("sglang==0.5.23", {"V5-page-for-each-decoding-request"}),
    ],
)
def test_against_an_adapter_it_fails_where_the_trace_fails(target: str, failing: set[str], tmp_path: Path) -> None:
    chosen = ("V5-page-for-each-decoding-request", "seed-fullswa-6")
    for name in chosen:
        (tmp_path / f"{texts.test_name(known(name))}.py").write_text(pytest_text(known(name), target))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA", *map(str, tmp_path.glob("*.py"))]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert outcomes(done.stdout) == {
        texts.test_name(known(name)): "FAILED" if name in failing else "PASSED" for name in chosen
    }, done.stdout
    assert ("operation 1: first-sufficient: " in done.stdout) == bool(failing)


def test_it_is_about_what_its_targets_share() -> None:
    assert shown_violated(known("seed-fullswa-6")) == ("first-sufficient", "irredundant")
    assert shown_violated(known("V10-no-check-before-the-walk")) == ("preserving",)
    assert len(shown_violated(TOURS[0])) > 20


def refused(trace: Trace) -> str:
    with pytest.raises(ExportError) as raised:
        sglang_text(trace)
    assert "--for pytest" in raised.value.fix
    return raised.value.found


def test_what_cannot_be_exported_is_said() -> None:
    swa2 = TOURS[0]
    tri = TOURS[1]
    assert "ends with query" in refused(replace(swa2, operations=(op.Query(),)))
    assert "ends with nothing" in refused(replace(swa2, operations=()))
    alloc = op.Alloc(name="a", tokens=1)
    assert "launch" in refused(replace(swa2, operations=(op.Launch(event="e"), alloc)))
    assert "the model refuses a call" in refused(replace(swa2, operations=(op.Free(name="a"), alloc)))
    assert "without a state" in refused(replace(tri, operations=(op.Insert(key=(1,)), alloc)))
    odd = derive(400, [("A", "swa", 32, "up"), ("B", "swa", 32, "float"), ("C", "full", 32, "down")])
    assert "layouts swa2, mamba2, tri" in refused(replace(swa2, geometry=odd, operations=(alloc,)))
    for full, swa, found in ((48, 32, "FULL: page_bytes 48"), (32, 40, "SWA: page_bytes 40")):
        arena = layout("swa2", 512, FULL=full, SWA=swa)
        assert found in refused(replace(swa2, geometry=arena, operations=(alloc,)))
    states = layout("mamba2", 512, FULL=32, STATE=40)
    assert "STATE: page_bytes 40" in refused(replace(swa2, geometry=states, operations=(alloc,)))


def test_what_no_answer_tells_is_not_exported() -> None:
    seed = known("seed-fullswa-6")
    unseen = replace(seed, expected=replace(seed.expected, targets=seed.expected.targets[:1]))
    assert "shows bounded-work violated, which no answer to a demand tells" in refused(unseen)
    grouped = replace(GROUPED, operations=(op.Insert(key=(1,), state=True), GROUPED.operations[-1]))
    assert "deferred-frees" in refused(grouped), "no group is open"


def test_names_and_words_are_safe() -> None:
    trace = replace(TOURS[0], name='Ünïcode "x" \\n', note='ends the string """ here', explanation="a\\")
    assert texts.test_name(trace) == "test_n_code_x_n"
    assert ast.literal_eval(texts.docstring(trace, "Last."))
    for text in (sglang_text(trace), pytest_text(trace)):
        ast.parse(text)
    assert texts.test_name(replace(trace, name="日本")) == "test_trace"


@pytest.mark.parametrize("kind", [["sglang"], ["pytest", "--target", "fast"]], ids=lambda kind: kind[0])
def test_the_command_writes_the_file(kind: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["export-test", str(KNOWN["V1-float-edge-counted"]), "--for", *kind]
    assert run(arguments) == 0
    printed = capsys.readouterr().out
    ast.parse(printed)
    out = tmp_path / "test_it.py"
    assert run([*arguments, "--out", str(out)]) == 0
    assert out.read_text() == printed
    assert f"pytest {out}" in capsys.readouterr().err


def test_the_command_refuses_in_two_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export-test", str(tmp_path / "none.json"), "--for", "pytest"]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert run(["export-test", str(KNOWN["V1-float-edge-counted"]), "--for", "junit"]) == 2
