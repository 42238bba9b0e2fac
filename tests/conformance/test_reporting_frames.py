"""What a person steps through: strips, trees and answers say what the run said, on any target."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from poolproof_conformance.faulty.registry import FAULTY
from poolproof_conformance.generator import History, histories
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.reporting.counterexamples import counterexample_of
from poolproof_conformance.reporting.frames import frames_of
from poolproof_conformance.reporting.modelled import model_answer, pool_at
from poolproof_conformance.reporting.owners import node_letters
from poolproof_conformance.reporting.rows import Variant
from poolproof_conformance.reporting.strip import MOST_RUNS, strip_of
from poolproof_conformance.reporting.traced import TracedRun, run_traces, targets_of
from poolproof_conformance.run import run_history
from poolproof_conformance.trace_format import Expected, ExpectedOutcome, TargetExpectation, Trace
from poolproof_reference.joint_pool import JointPool
from poolproof_spec.geometry import layout
from poolproof_spec.operation import Alloc, AnyOperation, Free, Gate, GroupBegin, Insert, Launch
from poolproof_spec.state import PoolState

SWA2 = layout("swa2", 192, FULL=32, SWA=32)
TRI = layout("tri", 768, STATE=48, SWA=32, FULL=64)
FLOAT_EDGE = (Insert(key=(1, 2, 3), state=True), Alloc(name="a", tokens=5))


def run_of(operations: tuple[AnyOperation, ...], geometry=SWA2, pool_class: type[JointPool] = JointPool) -> TracedRun:
    trace = Trace(format=1, name="made", geometry=geometry, operations=operations)
    run = run_history(ReferenceAdapter(pool_class, "made"), geometry, operations)
    return TracedRun(Path("made.json"), trace, Variant(target="made"), "made", run.steps, run.verdict, run.reason)


def wrong_pool(name: str) -> type[JointPool]:
    return next(pool.pool_class for pool in FAULTY if pool.name == name)


@settings(max_examples=20)
@given(histories())
def test_the_model_set_into_a_state_answers_as_the_reference_in_it(history: History) -> None:
    run = run_history(ReferenceAdapter(), *history)
    for step in run.steps:
        answer = model_answer(step.before, step.operation)
        assert answer is not None
        assert answer.outcome == step.outcome
        assert bare(answer.after) == bare(step.after)
        assert bare(pool_at(step.before).observe()) == bare(step.before)


def bare(state: PoolState) -> PoolState:
    """Without what pages hold; recency by rank, since a clock that is set anew shows other numbers."""
    rank = {use: number for number, use in enumerate(sorted({entry.last_use for entry in state.entries}))}
    entries = tuple(replace(entry, last_use=rank[entry.last_use]) for entry in state.entries)
    return replace(state, entries=entries, written=(), payloads=())


@settings(max_examples=12)
@given(histories())
def test_runs_of_a_lane_cover_its_pages_once_and_say_what_is_there(history: History) -> None:
    run = run_history(ReferenceAdapter(), *history)
    for step in run.steps:
        check_strip(step.after)


def check_strip(state: PoolState) -> None:
    for lane, now in zip(strip_of(state, node_letters([state])).lanes, state.members, strict=True):
        pages = [page for run in lane.runs for page in range(run.start, run.end)]
        assert pages == list(range(lane.page_count))
        for kind, wanted in (("live", now.live_pages), ("pending", now.pending_pages)):
            assert {p for run in lane.runs if run.kind == kind for p in range(run.start, run.end)} == wanted
        assert {p for run in lane.runs if run.kind == "sink" for p in range(run.start, run.end)} == set(
            range(lane.first_page)
        )
        assert all(run.owner_kind != "nobody" for run in lane.runs)
        assert all(run.end_byte - run.start_byte == (run.end - run.start) * lane.page_bytes for run in lane.runs)


def test_reference_agrees_with_the_model_everywhere() -> None:
    frames = frames_of(run_of(FLOAT_EDGE, TRI).steps, "reference")
    assert [frame.agrees for frame in frames] == [True, True]
    assert not any(frame.first_divergence for frame in frames)
    assert all(frame.modelled_after is None for frame in frames)


def test_windows_and_words_of_a_demand() -> None:
    _, frame = frames_of(run_of(FLOAT_EDGE, TRI).steps, "reference")
    assert (
        frame.request
        == "Request a demands 5 new tokens: 5 FULL pages and 5 SWA pages. It may wait for readers in flight."
    )
    assert frame.model is not None
    assert (frame.model.word, frame.model.victims, frame.model.lost_pages) == ("granted", "leaf [1, 2, 3]", 1)
    assert [stage.fits for stage in frame.explanation] == [None, False, True]
    windows = {lane.member: lane.window for lane in frame.before.lanes}
    assert windows["STATE"] is None
    assert windows["FULL"] is not None
    assert windows["FULL"].end_byte == 768
    assert [(node.letter, node.branch, node.key, node.fate) for node in frame.nodes] == [
        ("A", "", "1·2", ""),
        ("B", "└ ", "1·2·3", "evicted"),
    ]


def test_first_divergence_is_the_operation_that_a_rule_names() -> None:
    pool = wrong_pool("empties-the-cache")
    operations = (Insert(key=(1,)), Insert(key=(2,)), Insert(key=(3,)), Alloc(name="a", tokens=2), Free(name="a"))
    run = run_of(operations, layout("swa2", 320, FULL=32, SWA=32), pool_class=pool)
    frames = frames_of(run.steps, "wrong")
    assert [frame.first_divergence for frame in frames] == [False, False, False, True, False]
    frame = frames[3]
    assert "first-sufficient" in {finding.property for finding in frame.findings}
    assert frame.modelled_after is not None
    fates = [(node.fate, node.model_fate) for node in frame.nodes]
    assert fates == [("evicted", "evicted"), ("evicted", ""), ("evicted", "")]
    assert frame.model is not None
    assert frame.model.lost_pages < frame.target.lost_pages


def test_owners_pins_and_what_is_besides() -> None:
    operations = (
        Alloc(name="a", tokens=1),
        Alloc(name="b", tokens=1),
        Insert(key=(7,)),
        Launch(event="e1", writes=("a",)),
        GroupBegin(),
        Free(name="b"),
        Gate(open=False),
        Alloc(name="c", tokens=1),
    )
    frame = frames_of(run_of(operations, layout("swa2", 320, FULL=32, SWA=32)).steps, "reference")[-1]
    full = next(lane for lane in frame.before.lanes if lane.member == "FULL")
    live = {run.label: run for run in full.runs if run.kind == "live"}
    assert {label: run.owner_kind for label, run in live.items()} == {"a": "request", "g": "group", "A": "cached"}
    assert all(run.pinned for run in live.values())
    assert not full.gate_open
    text = "\n".join(frame.besides)
    for words in (
        "request a: 1 FULL, 1 SWA",
        "group open, queued: 1 FULL, 1 SWA",
        "until e1",
        "gates closed: SWA, FULL",
    ):
        assert words in text


def test_a_lane_of_many_owners_is_drawn_in_few_runs() -> None:
    geometry = layout("swa2", 6400, FULL=32, SWA=32)
    run = run_of(tuple(Insert(key=(number,)) for number in range(1, 97)), geometry)
    frame = frames_of(run.steps, "reference")[-1]
    assert all(len(lane.runs) <= MOST_RUNS for lane in frame.after.lanes)
    full = frame.after.lanes[-1]
    assert [run.owner for run in full.runs if run.kind == "live"] == ["96 cached nodes (CR to A)"]
    assert len(frame.nodes) < 30


def test_a_state_that_no_correct_pool_can_be_in_has_no_model_answer() -> None:
    state = run_of((Alloc(name="a", tokens=1),)).steps[-1].after
    lost = replace(state, members=tuple(replace(member, bindings=()) for member in state.members))
    assert model_answer(lost, Free(name="a")) is None


def test_leaked_page_is_owned_by_nobody() -> None:
    state = run_of((Alloc(name="a", tokens=1),)).steps[-1].after
    leaked = strip_of(replace(state, holds=()), {})
    assert {run.owner_kind for lane in leaked.lanes for run in lane.runs if run.kind == "live"} == {"nobody"}


def test_target_that_is_not_installed_is_shown_on_the_reference_as_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("POOLPROOF_TARGETS", str(tmp_path))
    known = TargetExpectation(
        target="sglang==0.5.23",
        outcomes={1: ExpectedOutcome(result="granted", evicted_pages=3)},
        violates=("first-sufficient",),
    )
    trace = Trace(format=1, name="edge", geometry=TRI, operations=FLOAT_EDGE, expected=Expected(targets=(known,)))
    (target,) = targets_of(trace, [], "rust", None)
    assert target == "sglang==0.5.23"
    (run,) = run_traces([(Path("edge.json"), trace, target)])
    assert (run.verdict, run.is_recorded) == ("unknown", True)
    example = counterexample_of(run)
    assert (example.shown_on, example.target) == ("reference", "sglang==0.5.23")
    assert example.first_divergence == 1
    last = example.frames[-1]
    assert (last.target.word, last.target.words, last.target.lost_pages) == ("granted", "as recorded", 3)
    assert [finding.code for finding in last.findings] == ["P1"]
    first = example.frames[0].target
    assert (first.word, first.lost_pages) == ("not recorded", None), "what nobody saw is not shown as seen"


def test_targets_of_a_trace_that_expects_nothing() -> None:
    trace = Trace(format=1, name="plain", geometry=SWA2, operations=(Alloc(name="a", tokens=1),))
    (target,) = targets_of(trace, [], "rust", None)
    assert not isinstance(target, str)
    assert target.name == "reference"
