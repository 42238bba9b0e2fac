"""The kit on the example's three pools: each reaches its level and no higher; what fails is told so that it helps."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from poolproof_conformance.kit import PoolAdapter, RefusedCallError, judging
from poolproof_conformance.report import conformance_level
from poolproof_conformance.traces import read_trace
from poolproof_spec.geometry import Geometry, layout
from poolproof_spec.operation import Alloc, Decode, Free, Query
from poolproof_spec.outcome import Answer, Crashed, Refused, Unsupported
from poolproof_spec.state import PoolState

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "own_allocator"
LAYOUTS = ("mamba2",)

VIOLATED = {
    "SplitPool": {"complete", "first-sufficient", "irredundant", "preserving", "recency-exact"},
    "JointPool": {"irredundant", "recency-exact"},
    "ExactPool": set[str](),
}
"""What each stage does not keep, at any level; docs/kit.md tells the same."""
HISTORIES = {"SplitPool": 60, "JointPool": 250, "ExactPool": 120}
"""Random ones: JointPool seldom evicts what it could spare."""
REACHED = {"SplitPool": 0, "JointPool": 1, "ExactPool": 2}


@pytest.fixture(scope="module")
def stages() -> Iterator[dict[str, type[PoolAdapter]]]:
    """The pools of the example, imported from their folder as its own tests do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLE))
        modules: list[ModuleType] = [__import__(f"level{level}") for level in (0, 1, 2)]
        yield {name: getattr(module, name) for name, module in zip(VIOLATED, modules, strict=True)}


@pytest.mark.parametrize("name", VIOLATED)
def test_each_stage_reaches_its_level_and_no_higher(name: str, stages: dict[str, type[PoolAdapter]]) -> None:
    violated: set[str] = set()
    for histories in (
        judging.random_histories(LAYOUTS, HISTORIES[name], 1),
        judging.small_histories(LAYOUTS, 10, 1),
        judging.known_histories(LAYOUTS),
    ):
        result = judging.judge(stages[name](), histories, 2, 600.0)
        assert result.conformance.operations > 10
        assert not result.conformance.doubts
        violated |= result.conformance.failures.keys()
    assert violated == VIOLATED[name]
    assert conformance_level(violated, "violated" if violated else "holds") == REACHED[name]


def test_the_page_tells_of_each_stage_what_it_keeps() -> None:
    rows = [line for line in (ROOT / "docs" / "kit.md").read_text().splitlines() if line.startswith("| `level")]
    assert len(rows) == len(VIOLATED)
    for (name, violated), row in zip(VIOLATED.items(), rows, strict=True):
        _, file, pool, level, cell, _ = (part.strip() for part in row.split("|"))
        assert (file, pool, level) == (f"`level{REACHED[name]}.py`", f"`{name}`", str(REACHED[name]))
        assert {word.strip("`, ") for word in cell.split() if word.startswith("`")} == violated


def run_pytest(folder: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """(exit status, output) of pytest in a process of its own, as a team runs it."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    variables = {"PATH": "", "PYTHONPATH": str(EXAMPLE), **environment}
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_example_passes_as_it_stands(tmp_path: Path) -> None:
    status, said = run_pytest(tmp_path, str(EXAMPLE), "-k", "not random")
    assert status == 0, said
    assert "16 passed, 2 skipped" in said, said


WRONG = """
from level0 import SplitPool
from poolproof_conformance.kit import PoolConformance

class TestWrong(PoolConformance):
    adapter = SplitPool
    level = 1
    layouts = ("mamba2",)
    histories = 40
    known_failures = {"complete": "a half of the arena for each, by design"}

class TestNothing(PoolConformance):
    adapter = SplitPool
    layouts = ("tri",)
    histories = 5
"""


def test_what_fails_is_told_with_its_smallest_history(tmp_path: Path) -> None:
    (tmp_path / "test_wrong.py").write_text(WRONG)
    chosen = ["-k", "random or nothing and (known or small)", "-rs"]
    status, said = run_pytest(tmp_path, "test_wrong.py", *chosen, GITHUB_ACTIONS="true")
    assert status == 1, said
    for told in (
        "P1 first-sufficient (level 1)",
        "No proper prefix of the evicted steps leaves a state that fits the demand. docs/spec.md#p1-first-sufficient",
        "    0. insert(key=[",
        "next: poolproof explain poolproof-traces/own-split-first-sufficient.json",
        "P3 preserving",
        "the adapter builds none of these arenas",
    ):
        assert told in said, said
    assert "P2 complete" not in said, "it is a known failure"
    annotations = [line for line in said.splitlines() if line.startswith("::error file=test_wrong.py,title=")]
    assert any("title=P1 first-sufficient::" in line for line in annotations)
    trace = read_trace(tmp_path / "poolproof-traces" / "own-split-first-sufficient.json")
    assert len(trace.operations) <= 3
    assert "1 failed" in said


def test_vectors_that_differ_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "test_differing.py"
    setup = "from level0 import SplitPool\nfrom poolproof_conformance.kit import PoolConformance\n"
    setup += "class TestWrong(PoolConformance):\n    adapter, level = SplitPool, 2\n    vectors_differ = "

    def judged(count: int) -> tuple[int, str]:
        file.write_text(f'{setup}{{"counterexamples": ({count}, "a split pool")}}\n')
        return run_pytest(tmp_path, file.name, "-k", "test_vectors and counterexamples")

    status, said = judged(0)
    found = re.search(r"0 cases of counterexamples are known to differ \(a split pool\), (\d+) do", said)
    assert status == 1 and found and int(found[1]) > 0, said
    status, said = judged(int(found[1]))
    assert status == 0 and "1 xfailed" in said, said
    assert judged(int(found[1]) + 1)[0] == 1, "fewer differ than is known: the list is stale"


class Odd(PoolAdapter):
    """Refuses, crashes, answers."""

    name = "odd"
    cannot = ("payloads",)

    def build(self, geometry: Geometry) -> None:
        self.geometry = geometry

    def alloc(self, operation: Alloc) -> Answer:
        raise RefusedCallError("not today")

    def decode(self, operation: Decode) -> Answer:
        raise KeyError("lost")

    def query(self, operation: Query) -> Answer:
        return Answer(token_pages=0)

    def observe(self) -> PoolState:
        raise AssertionError("not asked")


def test_an_adapter_is_what_it_has_methods_for() -> None:
    odd = Odd()
    assert odd.describe().operations == ("alloc", "decode", "query")
    refused = odd.apply(Alloc(name="a", tokens=1))
    assert refused == Refused(error="RefusedCallError", message="not today")
    crashed = odd.apply(Decode(name="a", seq_lens=(1,)))
    assert isinstance(crashed, Crashed)
    assert "KeyError" in crashed.reason
    assert "decode" in crashed.reason
    assert odd.apply(Free(name="a")) == Unsupported(what="free")
    assert odd.apply(Query()) == Answer(token_pages=0)
    odd.write("FULL", 1, 1)


def test_an_adapter_that_lacks_something_says_what() -> None:
    bare = PoolAdapter()
    for call in (lambda: bare.build(layout("swa2", 192, FULL=32, SWA=32)), bare.observe):
        with pytest.raises(NotImplementedError, match="PoolAdapter"):
            call()
    with pytest.raises(NotImplementedError, match="payloads"):
        bare.write("FULL", 1, 1)


CRASHING = """
from level0 import SplitPool
from poolproof_conformance.kit import PoolConformance

class Broken(SplitPool):
    name = "broken"

    def alloc(self, operation):
        raise MemoryError("no room for bugs")

class Mute(SplitPool):
    name = "mute"
    cannot = (*SplitPool.cannot, "payloads")

class TestBroken(PoolConformance):
    adapter = Broken
    layouts = ("mamba2",)
    histories = 20

class TestNames(PoolConformance):
    adapter = SplitPool
    layouts = ("mamba3",)
    histories = 1

class TestKnown(PoolConformance):
    adapter = SplitPool
    known_failures = {"complet": "?"}
"""


def test_no_answer_is_no_pass(tmp_path: Path) -> None:
    (tmp_path / "test_crashing.py").write_text(CRASHING)
    status, said = run_pytest(tmp_path, "test_crashing.py", "-k", "set_up or (broken and (random or demand))")
    assert status == 1, said
    for told in ("no answer is no pass", "MemoryError: no room for bugs (alloc, line", "mamba3", "complet"):
        assert told in said, said
    assert "4 failed, 1 passed" in said, said


def test_an_empty_run_is_no_pass() -> None:
    result = judging.judge(Odd(), iter(()), 2, 600.0)
    assert (result.conformance.operations, result.conformance.verdict) == (0, "unknown")


def test_time_that_is_over_is_told(stages: dict[str, type[PoolAdapter]]) -> None:
    result = judging.judge(stages["SplitPool"](), judging.known_histories(LAYOUTS), 0, -1.0)
    assert result.out_of_time
    assert result.conformance.traces == 0
