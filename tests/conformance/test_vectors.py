"""The vectors: fresh, complete, as the specification says, passed by this project's pools, failed by wrong ones."""

import json
from collections import Counter
from pathlib import Path

import jsonschema
import msgspec
import pytest
from msgspec.structs import replace

from poolproof_conformance.cli.main import run
from poolproof_conformance.faulty.registry import FAULTY, Faulty
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.vectors.checksum import checksum
from poolproof_conformance.vectors.export import export, schema_text
from poolproof_conformance.vectors.flags import FLAGS
from poolproof_conformance.vectors.on_target import judge_file
from poolproof_conformance.vectors.vector_errors import (
    VectorChecksumError,
    VectorFolderError,
    VectorShapeError,
    VectorVersionError,
)
from poolproof_conformance.vectors.vector_files import NAMES, cases_of, read_vectors, vector_paths, vector_text
from poolproof_conformance.vectors.vector_format import AnyVectorFile
from poolproof_conformance.vectors.verify import differences
from poolproof_reference.joint_pool import JointPool
from poolproof_spec.demand import Demand
from poolproof_spec.operation import DemandOperation
from poolproof_spec.outcome import Step
from poolproof_spec.state import PoolState
from poolproof_spec.steps import after_steps, policy_order, tree_of

FOLDER = Path(__file__).parents[2] / "vectors"
FILES: dict[str, AnyVectorFile] = {name: read_vectors(FOLDER / f"{name}.json") for name in NAMES}


def test_the_committed_files_are_what_an_export_writes(tmp_path: Path) -> None:
    counts = export(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in FOLDER.iterdir())
    for path in tmp_path.iterdir():
        assert path.read_text() == (FOLDER / path.name).read_text(), f"run: poolproof vectors export {FOLDER.name}"
    assert counts == {name: file.numberOfTests for name, file in FILES.items()}


def test_they_are_many_and_small() -> None:
    assert 300 <= sum(file.numberOfTests for file in FILES.values()) <= 2000
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 2_000_000


def test_the_page_tells_their_numbers() -> None:
    page = (FOLDER.parent / "docs" / "vectors.md").read_text()
    rows = [line.split("|")[1:4] for line in page.splitlines() if line.startswith("| `") and "schema" not in line]
    told = {name.strip(" `").removesuffix(".json"): (kind.strip(), int(count)) for name, kind, count in rows}
    assert told == {name: (str(file.__struct_config__.tag), file.numberOfTests) for name, file in FILES.items()}


def test_every_flag_occurs_and_is_told() -> None:
    used = Counter(flag for file in FILES.values() for case in cases_of(file) for flag in case.flags)
    assert used.keys() == FLAGS.keys()
    assert all(case.flags for file in FILES.values() for case in cases_of(file))


def test_every_flag_leads_to_a_heading_of_the_specification() -> None:
    lines = (FOLDER.parent / "docs" / "spec.md").read_text().splitlines()
    headings = [line.lstrip("# ").lower().replace("+", "").replace(" ", "-") for line in lines if line.startswith("#")]
    assert [flag for flag, told in FLAGS.items() if told.section not in headings] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_answer_is_what_the_specification_says(name: str) -> None:
    assert list(differences(name, FILES[name])) == []


@pytest.mark.parametrize("name", NAMES)
def test_files_obey_their_schema(name: str) -> None:
    schema = json.loads(schema_text())
    document = json.loads((FOLDER / f"{name}.json").read_text())
    document["testGroups"] = document["testGroups"][::7]  # a validator in plain Python takes its time
    jsonschema.validate(document, schema)
    document["testGroups"][0]["tests"][0]["odd"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)


PINNING = {"GateClosed", "Pending", "InFlight"}
"""Flags of cases in which it matters where pages lie: only there may a pool with places of its own be left unjudged."""


@pytest.mark.parametrize("target", ["reference", "fast"])
def test_pools_of_this_project_pass(target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "vectors.json"
    assert run(["vectors", "verify", str(FOLDER), "--target", target, "--json", str(path)]) == 0
    rows = [row for row in json.loads(path.read_text())["files"] if row["target"]]
    assert {row["file"] for row in rows} == set(NAMES)
    for row in rows:
        skipped = {case for cases in row["skipped"].values() for case in cases}
        file = FILES[row["file"]]
        assert row["passed"] + len(skipped) == file.numberOfTests
        assert len(skipped) < file.numberOfTests / 3
        assert [case.tcId for case in cases_of(file) if case.tcId in skipped and not PINNING & set(case.flags)] == []
        assert target == "fast" or not skipped


class GreedyPool(JointPool):
    """Takes one victim more than it needs."""

    def choose(self, state: PoolState, demand: Demand, operation: DemandOperation) -> list[Step] | None:
        steps = super().choose(state, demand, operation)
        if steps is None:
            return None
        return steps + [step for step in policy_order(tree_of(after_steps(state, steps)))[:1] if step.kind == "leaf"]


def test_a_pool_that_takes_too_much_fails() -> None:
    judged = judge_file("reserve", FILES["reserve"], ReferenceAdapter(GreedyPool, "greedy"))
    assert len(judged.differences) > 100
    judged = judge_file("demand", FILES["demand"], ReferenceAdapter(GreedyPool, "greedy"))
    assert judged.differences == []


NOT_SEEN = {"head-for-tail": "as many pages as are demanded, for the wrong tokens"}
"""Wrong answers to demands that no number in an answer shows."""
ANSWERING = [wrong for wrong in FAULTY if wrong.pool_class.__module__.rpartition(".")[2] in ("choosing", "demanding")]


def test_there_are_wrong_answers_to_find() -> None:
    assert len(ANSWERING) > 15
    assert {wrong.name for wrong in ANSWERING} > NOT_SEEN.keys()


@pytest.mark.parametrize("wrong", [pytest.param(wrong, id=wrong.name) for wrong in ANSWERING])
def test_a_pool_that_is_wrong_about_demands_fails(wrong: Faulty) -> None:
    assert fails(wrong.pool_class) == (wrong.name not in NOT_SEEN)


def fails(pool_class: type[JointPool]) -> bool:
    """Whether some case differs; group by group, so that the first one ends it."""
    adapter = ReferenceAdapter(pool_class, "wrong")
    return any(
        judge_file(name, replace(FILES[name], testGroups=(group,)), adapter).differences
        for name in ("counterexamples", "demand", "reserve")
        for group in FILES[name].testGroups
    )


def changed(tmp_path: Path, name: str, old: str, new: str, *, sign: bool = False) -> Path:
    """A folder with one file changed in its first place that reads `old`; signed anew where asked for."""
    text = (FOLDER / f"{name}.json").read_text()
    assert old in text
    text = text.replace(old, new, 1)
    if sign:
        document = json.loads(text)
        document["checksum"] = checksum(document)
        text = json.dumps(document)
    path = tmp_path / f"{name}.json"
    path.write_text(text)
    return path


def test_a_changed_file_is_refused_and_its_cases_can_still_be_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = changed(tmp_path, "demand", '"pages": {"full_pages": 1,', '"pages": {"full_pages": 2,')
    with pytest.raises(VectorChecksumError):
        read_vectors(path)
    assert run(["vectors", "verify", str(tmp_path)]) == 2
    assert "poolproof vectors export" in capsys.readouterr().err
    assert run(["vectors", "verify", str(tmp_path), "--ignore-checksum"]) == 1
    assert "full_pages=2" in capsys.readouterr().out


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(VectorFolderError, match="no such folder"):
        vector_paths(tmp_path / "nowhere")
    with pytest.raises(VectorFolderError, match="none of"):
        vector_paths(tmp_path)
    with pytest.raises(VectorVersionError, match="format 2"):
        read_vectors(changed(tmp_path, "fits", '"format": 1', '"format": 2', sign=True))
    with pytest.raises(VectorShapeError, match="lose"):
        read_vectors(changed(tmp_path, "fits", '"loose": 1', '"lose": 1', sign=True))
    (tmp_path / "fits.json").write_text("[1, 2")
    with pytest.raises(VectorShapeError, match="not JSON"):
        read_vectors(tmp_path / "fits.json")


def test_an_empty_file_is_no_pass(tmp_path: Path) -> None:
    file = replace(FILES["fits"], testGroups=(), numberOfTests=0, notes={})
    (tmp_path / "fits.json").write_text(vector_text(file))
    assert run(["vectors", "verify", str(tmp_path)]) == 1


DYING = """
import os
from poolproof_conformance.child_server import serve_standard_streams
from poolproof_conformance.reference_adapter import ReferenceAdapter

class Dying(ReferenceAdapter):
    def apply(self, operation):
        os._exit(3)

serve_standard_streams(Dying(target="dying"))
"""


def test_a_target_that_dies_leaves_it_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (group, *_), source = FILES["demand"].testGroups, FILES["demand"]
    tests = group.tests[:2]
    notes = {flag: source.notes[flag] for case in tests for flag in case.flags}
    file = replace(source, testGroups=(replace(group, tests=tests),), numberOfTests=2, notes=notes)
    (tmp_path / "demand.json").write_text(vector_text(file))
    (tmp_path / "dying.py").write_text(DYING)
    assert run(["vectors", "verify", str(tmp_path)]) == 0
    assert run(["vectors", "verify", str(tmp_path), "--target", str(tmp_path / "dying.py")]) == 2
    assert "unknown: demand 1: " in capsys.readouterr().out


def test_text_and_reading_are_inverse() -> None:
    for name, file in FILES.items():
        assert msgspec.structs.replace(file, checksum=0) == msgspec.structs.replace(
            msgspec.convert(json.loads(vector_text(file)), AnyVectorFile), checksum=0
        ), name
