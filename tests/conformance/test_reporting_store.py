"""A campaign's database as a report: kinds merged over cells, doubts and unfinished work never a pass."""

import json
from pathlib import Path

import pytest

from poolproof_conformance.campaigns.jobs import JobResult, PendingShrink, ShrinkResult, Sighting
from poolproof_conformance.campaigns.recording import Recording
from poolproof_conformance.campaigns.rows import Cell
from poolproof_conformance.cli.main import run
from poolproof_conformance.reporting.counterexamples import counterexamples_of
from poolproof_conformance.reporting.sources import gather
from poolproof_conformance.trace_format import Trace
from poolproof_conformance.traces import trace_text
from poolproof_spec.geometry import layout
from poolproof_spec.operation import Alloc, Insert

GEOMETRY = layout("swa2", 320, FULL=32, SWA=32)
OPERATIONS = (Insert(key=(1,)), Alloc(name="a", tokens=2))
SIGNATURE = "swa2 | tokens | granted | fewer suffice"


def cell(name: str) -> Cell:
    return Cell(target=name, core=None, mode=None, layout="swa2")


def add_failure(store: Recording, name: str, *, shrunk: bool = True) -> None:
    history = (GEOMETRY, OPERATIONS)
    sighting = Sighting(property="first-sufficient", bucket="unshrunk", histories=3, history=history)
    store.add_job(
        JobResult(
            cell=cell(name),
            stage=0,
            number=0,
            histories=10,
            operations=20,
            witnessed={"first-sufficient": 4, "complete": 2},
            unchecked=("recency-exact",),
            sightings=(sighting,),
        )
    )
    if shrunk:
        trace = Trace(format=1, name="found", geometry=GEOMETRY, operations=OPERATIONS)
        place = PendingShrink(
            cell=cell(name), stage=0, number=0, property=sighting.property, bucket=sighting.bucket, history=history
        )
        store.add_shrunk(
            ShrinkResult(sighting=place, signature=SIGNATURE, operations=2, message="2, 1", trace=trace_text(trace))
        )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "campaign.sqlite"


def finish(store: Recording) -> None:
    store.end_run(store.begin_run(()), 1.0, "complete")


def test_a_kind_seen_in_two_cells_is_one_with_two_sightings(path: Path) -> None:
    with Recording.write(path, {"seed": "1"}) as store:
        for name in ("reference", "elsewhere"):
            add_failure(store, name)
        finish(store)
    gathered, runs = gather([path], {})
    (kind,) = gathered.kinds
    assert (kind.property, kind.signature) == ("first-sufficient", SIGNATURE)
    assert sorted((s.variant.target, s.histories) for s in kind.sightings) == [("elsewhere", 3), ("reference", 3)]
    assert gathered.complete
    assert runs == []
    reference = next(variant for variant in gathered.variants if variant.target == "reference")
    assert gathered.property_verdict(reference, "first-sufficient") == "violated"
    assert gathered.property_verdict(reference, "complete") == "holds"
    assert gathered.property_verdict(reference, "preserving") is None
    (example,) = counterexamples_of(gathered, runs)
    assert example.slug.startswith("first-sufficient-")
    assert len(example.frames) == 2


def test_a_failure_that_is_not_shrunk_yet_counts(path: Path) -> None:
    with Recording.write(path, {"seed": "1"}) as store:
        add_failure(store, "reference", shrunk=False)
        finish(store)
    gathered, _ = gather([path], {})
    assert [kind.signature for kind in gathered.kinds] == ["unshrunk"]
    assert not gathered.complete
    assert run(["report", str(path)]) == 1


def test_doubt_is_unknown_and_exits_2(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Recording.write(path, {"seed": "1"}) as store:
        doubts = {"no answer in 30 s": 1}
        store.add_job(JobResult(cell=cell("reference"), stage=0, number=0, histories=5, operations=9, doubts=doubts))
        finish(store)
    out = tmp_path / "report.json"
    assert run(["report", str(path), "--json", str(out)]) == 2
    report = json.loads(out.read_text())
    assert report["verdict"] == "unknown"
    assert report["unknown"] == [{"target": "reference", "reason": "no answer in 30 s (1 of 5 histories)"}]
    capsys.readouterr()


def test_a_campaign_that_was_killed_is_unknown(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Recording.write(path, {"seed": "1"}) as store:
        store.begin_run(())
        store.add_job(JobResult(cell=cell("reference"), stage=0, number=0, histories=5, operations=9))
    assert run(["report", str(path)]) == 2
    assert "cut short" in capsys.readouterr().out


def test_an_empty_campaign_is_unknown(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Recording.write(path, {"seed": "1"}) as store:
        finish(store)
    assert run(["report", str(path)]) == 2
    assert "no target was run" in capsys.readouterr().out
