"""A campaign on a pool that is wrong on purpose: found, shrunk, and written as a trace that replays."""

from pathlib import Path

from poolproof_conformance.adapter import Description
from poolproof_conformance.campaign import Campaign, run_campaign
from poolproof_conformance.child import TargetFailureError
from poolproof_conformance.cli.findings import campaign_lines
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.replay import replay
from poolproof_conformance.target_names import Target
from poolproof_conformance.traces import read_trace
from poolproof_reference.joint_pool import JointPool
from poolproof_spec.operation import DemandOperation
from poolproof_spec.outcome import AnyOutcome, Rejected


class RejectsEverything(JointPool):
    """Never grants a demand."""

    def reserve(self, operation: DemandOperation) -> AnyOutcome:
        return Rejected()


class DiesOnDemand(JointPool):
    """Ends its process, as far as a runner can tell."""

    def reserve(self, operation: DemandOperation) -> AnyOutcome:
        raise TargetFailureError("ended with exit code 3")


WRONG = Target("./rejects-everything.py", command=("unused",))


def campaign(pool: type[JointPool], folder: Path, traces: int = 20) -> Campaign:
    adapter = ReferenceAdapter(pool, WRONG.name)
    return run_campaign(WRONG, adapter, traces=traces, seed=3, layouts=("swa2",), folder=folder)


def test_failure_is_shrunk_and_written_as_a_trace_that_replays(tmp_path: Path) -> None:
    stale = tmp_path / "rejects-everything" / "first-sufficient.json"
    stale.parent.mkdir()
    stale.write_text("{}")
    found = campaign(RejectsEverything, tmp_path)
    assert not stale.exists()
    assert found.row.verdict == "violated"
    complete = next(failure for failure in found.failures if failure.property == "complete")
    assert complete.operations == 1
    path = tmp_path / "rejects-everything" / "complete.json"
    assert complete.trace_file == str(path)
    assert complete.command == f"poolproof replay {path} --target ./rejects-everything.py"
    trace = read_trace(path)
    again = replay(ReferenceAdapter(RejectsEverything), trace, WRONG.name, None, None)
    assert again.violated[0] == "complete"
    assert again.as_expected
    right = replay(ReferenceAdapter(), trace, "reference", None, None)
    assert right.verdict == "holds"
    assert right.as_expected
    assert "granted: it fits with nothing evicted." in trace.explanation


def test_the_same_seed_gives_the_same(tmp_path: Path) -> None:
    assert campaign(RejectsEverything, tmp_path) == campaign(RejectsEverything, tmp_path)


def test_dying_target_is_unknown_with_its_reason(tmp_path: Path) -> None:
    found = campaign(DiesOnDemand, tmp_path)
    assert found.row.verdict == "unknown"
    assert found.row.level is None
    assert list(found.doubts) == ["ended with exit code 3"]


def test_reference_holds_and_what_was_not_exercised_is_told(tmp_path: Path) -> None:
    found = campaign(JointPool, tmp_path, traces=2)
    assert found.row.verdict == "holds"
    assert found.not_exercised
    assert not list(tmp_path.iterdir())


class Candid(ReferenceAdapter):
    """Declares what it does otherwise."""

    def describe(self) -> Description:
        return Description(target=self.target, cannot=("recency", "work"))


def test_what_a_target_declares_is_told_as_not_judged(tmp_path: Path) -> None:
    found = run_campaign(WRONG, Candid(), traces=2, seed=3, layouts=("swa2",), folder=tmp_path)
    assert found.unchecked == ("recency-exact",)
    assert "recency-exact" not in found.not_exercised
    assert "  not judged, as the target declares: recency-exact" in list(campaign_lines(found))
