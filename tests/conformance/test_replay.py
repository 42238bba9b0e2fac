"""Replay: a trace on a target is judged and compared; what differs is told, a failing target is unknown."""

import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from poolproof_conformance.child import ChildAdapter
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.replay import Replay
from poolproof_conformance.replay import replay as replay_trace
from poolproof_conformance.trace_format import Expected, ExpectedOutcome, TargetExpectation, Trace
from poolproof_conformance.traces import parse_trace
from poolproof_conformance.wording import call_words
from poolproof_spec.geometry import layout
from poolproof_spec.operation import Alloc, Capacity, GroupBegin, Insert, Launch, Query
from poolproof_spec.outcome import Step

CHILDREN = Path(__file__).parent / "children"
ROOT = Path(__file__).parents[2]
TWO_OF_THREE = Trace(
    format=1,
    name="two-of-three",
    geometry=layout("swa2", 256, FULL=32, SWA=32),
    operations=(Insert(key=(1,)), Insert(key=(2,)), Insert(key=(3,)), Alloc(name="a", tokens=2), Query()),
    expected=Expected(
        outcomes={
            0: ExpectedOutcome(result="done"),
            3: ExpectedOutcome(
                result="granted",
                steps=(Step(kind="leaf", key=(1,)), Step(kind="leaf", key=(2,))),
                evicted_pages=2,
            ),
            4: ExpectedOutcome(result="answer", token_pages=0),
        }
    ),
)


def on_reference(trace: Trace) -> Replay:
    return replay_trace(ReferenceAdapter(), trace, "reference", None, None)


def expecting(outcome: ExpectedOutcome, index: int = 3) -> tuple[str, ...]:
    """The differences when an operation is expected to come to that."""
    return on_reference(replace(TWO_OF_THREE, expected=Expected(outcomes={index: outcome}))).differences


def test_as_expected() -> None:
    result = on_reference(TWO_OF_THREE)
    assert result.verdict == "holds"
    assert result.differences == ()
    assert result.as_expected
    assert result.steps[3].operation == "alloc(name=a, tokens=2)"
    assert result.steps[3].outcome == "granted, 2 cached pages lost"


def test_differences_are_told() -> None:
    assert expecting(ExpectedOutcome(result="rejected")) == ("operation 3: rejected expected, granted found",)
    assert expecting(ExpectedOutcome(result="granted", evicted_pages=1)) == (
        "operation 3: 1 evicted page expected, 2 found",
    )
    assert expecting(ExpectedOutcome(result="granted", steps=(Step(kind="leaf", key=(3,)),))) == (
        "operation 3: steps leaf [3] expected, leaf [1], leaf [2] found",
    )
    assert expecting(ExpectedOutcome(result="answer", token_pages=3), 4) == (
        "operation 4: 3 token pages expected, 0 found",
    )


def test_reasons_of_rejections_are_compared() -> None:
    trace = replace(TWO_OF_THREE, operations=(Insert(key=(1,)), Alloc(name="a", tokens=9)))
    right = Expected(outcomes={1: ExpectedOutcome(result="rejected", reason="impossible", evicted_pages=0)})
    assert on_reference(replace(trace, expected=right)).as_expected
    wrong = Expected(outcomes={1: ExpectedOutcome(result="rejected", reason="blocked")})
    assert on_reference(replace(trace, expected=wrong)).differences == (
        "operation 1: reason blocked expected, impossible found",
    )


def test_skipped_operation_is_a_difference() -> None:
    trace = replace(TWO_OF_THREE, operations=(GroupBegin(), Capacity()))
    expected = Expected(outcomes={1: ExpectedOutcome(result="answer")})
    (difference,) = on_reference(replace(trace, expected=expected)).differences
    assert "skipped" in difference


def test_foretold_violation_that_does_not_show_is_a_difference() -> None:
    known = TargetExpectation(target="reference", violates=("P1",))
    result = on_reference(replace(TWO_OF_THREE, expected=Expected(targets=(known,))))
    assert result.differences == ("first-sufficient: expected to be violated, and is not",)
    assert not result.as_expected


def child(name: str, *arguments: str) -> ChildAdapter:
    return ChildAdapter([sys.executable, str(CHILDREN / name), *arguments], request_timeout_s=1, start_timeout_s=20)


@pytest.mark.parametrize("fault", ["hangs", "exits", "prints garbage", "hangs at the start", "speaks another protocol"])
def test_failing_target_is_unknown_and_never_as_expected(fault: str) -> None:
    trace = replace(TWO_OF_THREE, expected=Expected())
    adapter = ChildAdapter([sys.executable, str(CHILDREN / "wrong.py"), fault], request_timeout_s=1, start_timeout_s=2)
    with adapter:
        result = replay_trace(adapter, trace, "wrong", None, None)
    assert result.verdict == "unknown"
    assert result.reason
    assert not result.as_expected


def test_target_that_refuses_everything_does_not_pass() -> None:
    with child("toy.py") as adapter:
        result = replay_trace(adapter, replace(TWO_OF_THREE, expected=Expected()), "toy", None, None)
    assert result.verdict != "holds"
    assert "complete" in result.violated


def test_calls_in_words() -> None:
    assert call_words(Query()) == "query()"
    assert call_words(Launch(event="e", writes=("a",))) == "launch(event=e, writes=[a])"
    assert call_words(Insert(key=tuple(range(10)), state=True)) == (
        "insert(key=[0, 1, 2, 3, 4, 5, ... 10 in all], state=True)"
    )


def test_example_in_the_docs_is_right() -> None:
    text = (ROOT / "docs" / "traces.md").read_text()
    trace = parse_trace(text.split("```json\n")[1].split("```")[0].encode(), "docs/traces.md")
    assert on_reference(trace).as_expected
