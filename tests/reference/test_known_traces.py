"""The known traces on the reference, V1 to V10, the seed's and those that search found: as the model says."""

from importlib.resources import as_file, files
from pathlib import Path

import pytest

from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.replay import replay
from poolproof_conformance.trace_format import Trace
from poolproof_conformance.traces import read_trace, trace_text
from poolproof_spec.geometry import geometry_problems

with as_file(files("poolproof_conformance") / "known_traces") as folder:
    PATHS = sorted(folder.glob("*.json"))
TRACES = {path.stem: read_trace(path) for path in PATHS}

EVICTED_PAGES = {"V1": 1, "V2": 0, "V3": 0, "V4": 0, "V5": 0, "V6": 0, "V7": 0, "V8": 0, "V9": 1, "V10": 1} | {
    "seed-fullswa-6": 3,
    "seed-tri-4": 1,
    "seed-tri-200": 0,
}
"""Cached pages that the last operation costs."""
REJECTED = {"V4", "seed-tri-200"}


BY_HAND = {name: trace for name, trace in TRACES.items() if not name.startswith("search-")}
"""Those with a line in the table above; a search's trace is pinned by what it expects."""


def case(trace: Trace) -> str:
    """V1 of V1-float-edge-counted; the seed's names are whole."""
    return trace.name if trace.name.startswith("seed") else trace.name.partition("-")[0]


def test_every_case_is_there_once() -> None:
    assert sorted(map(case, BY_HAND.values())) == sorted(EVICTED_PAGES)
    assert len(TRACES) > len(BY_HAND)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: str(path.stem))
def test_file_is_canonical_and_named_by_its_trace(path: Path) -> None:
    trace = TRACES[path.stem]
    assert trace.name == path.stem
    assert path.read_text(encoding="utf-8") == trace_text(trace)
    assert trace.source
    assert trace.note
    assert trace.explanation


@pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES)
def test_trace_holds_on_the_reference(trace: Trace) -> None:
    assert geometry_problems(trace.geometry) == []
    result = replay(ReferenceAdapter(), trace, "reference", None, None)
    assert result.differences == ()
    assert result.verdict == "holds"


@pytest.mark.parametrize("trace", BY_HAND.values(), ids=BY_HAND)
def test_trace_costs_what_the_table_says(trace: Trace) -> None:
    result = replay(ReferenceAdapter(), trace, "reference", None, None)
    assert result.steps[-1].evicted_pages == EVICTED_PAGES[case(trace)]
    assert result.steps[-1].outcome.startswith("rejected") == (case(trace) in REJECTED)


@pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES)
def test_trace_expects_something_of_each_demand(trace: Trace) -> None:
    last = len(trace.operations) - 1
    assert last in trace.expected.outcomes
    assert all(last in known.outcomes or known.violates for known in trace.expected.targets)


@pytest.mark.parametrize("name", [name for name in TRACES if name.startswith("V")])
def test_trace_foretells_a_violation_on_the_release_with_either_tree_core(name: str) -> None:
    trace = TRACES[name]
    for tree_core in ("rust", "python"):
        assert trace.expected.of("sglang==0.5.23", tree_core, trace.mode).violates
