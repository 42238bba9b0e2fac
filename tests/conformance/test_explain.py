"""What explain says of the specification's cases: the sweep's numbers, in words."""

from poolproof_conformance.explain import Explanation, explain_demand, explanation_lines
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_spec.geometry import Geometry, layout
from poolproof_spec.operation import (
    Alloc,
    AllocStates,
    AnyOperation,
    Compact,
    Extend,
    Gate,
    Insert,
    LockPrefix,
    Query,
)
from poolproof_spec.state import PoolState

TRI = layout("tri", 6784, STATE=48, SWA=32, FULL=32)
CACHED: tuple[AnyOperation, ...] = (
    Insert(key=(1,), state=True),
    Insert(key=(2,), state=True),
    Insert(key=tuple(range(10, 104)), state=True),
    AllocStates(name="s", count=5),
)
"""The three-pool case of the specification."""


def state_after(geometry: Geometry, operations: tuple[AnyOperation, ...]) -> PoolState:
    adapter = ReferenceAdapter()
    adapter.build(geometry)
    for operation in operations:
        adapter.apply(operation)
    return adapter.observe()


def explained(geometry: Geometry, operations: tuple[AnyOperation, ...], demand: AnyOperation) -> Explanation:
    explanation = explain_demand(state_after(geometry, operations), demand)
    assert explanation is not None
    return explanation


def text(geometry: Geometry, operations: tuple[AnyOperation, ...], demand: AnyOperation) -> str:
    return "\n".join(explanation_lines(explained(geometry, operations, demand)))


def test_one_victim_and_why_not_none() -> None:
    said = text(TRI, CACHED, Alloc(name="x", tokens=4))
    assert "granted with 1 victim" in said
    assert "why not 0: with 0 victims gone" in said
    assert "least window is [114, 214) of 212, to byte 6848: 2 pages (64 bytes) too many." in said
    assert "so it does not fit: the bytes of FULL bind." in said
    assert "SWA (32-byte pages): 95 live + 4 new; from page 12 (byte 384 below it)" in said
    assert said.endswith("so it fits.")


def test_impossible_names_the_band() -> None:
    explanation = explained(TRI, CACHED, Alloc(name="x", tokens=200))
    assert not explanation.granted
    assert explanation.victims == ()
    said = "\n".join(explanation_lines(explanation))
    assert "rejected: impossible: even in the emptiest pool there can be, FULL would end at page 409 of 212." in said


def test_fits_as_it_is() -> None:
    said = text(TRI, CACHED, Alloc(name="x", tokens=1))
    assert "granted: it fits with nothing evicted." in said
    assert said.count("low bytes to high") == 1


def test_pinned_pages_and_gates() -> None:
    swa2 = layout("swa2", 640, FULL=32, SWA=32)
    filled = (Insert(key=(1, 2, 3, 4)), LockPrefix(name="l", key=(1, 2, 3, 4)), Gate(open=False))
    said = text(swa2, filled, Alloc(name="x", tokens=8))
    assert "rejected: blocked by gates and locks." in said or "rejected: blocked by locks." in said
    assert "4 pinned in [" in said
    assert "FULL" in said


def test_ids_bind() -> None:
    tri = layout("tri", 960, STATE=48, SWA=32, FULL=32)
    usable = len(tri.id_range("state"))
    said = text(tri, (), AllocStates(name="s", count=usable + 3))
    assert f"state ids: {usable + 3} needed, {usable} free: 3 short." in said
    assert "so it does not fit: state ids bind." in said


def test_wording_of_calls_and_empty_members() -> None:
    swa2 = layout("swa2", 640, page_tokens=2, FULL=64, SWA=64)
    said = text(swa2, (), Extend(name="x", prefix_lens=(2,), seq_lens=(2,), may_wait=False))
    assert said.startswith("demand: extend(name=x, may_wait=False, prefix_lens=[2], seq_lens=[2]): no page\n")
    assert "FULL: empty; bounds nobody." in said


def test_no_demand_no_explanation() -> None:
    state = state_after(TRI, ())
    assert explain_demand(state, Query()) is None
    assert explain_demand(state, Compact()) is None
