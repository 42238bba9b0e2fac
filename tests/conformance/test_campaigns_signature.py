"""Signatures: different causes fall apart, the same cause does not; what shrinking may change and what not."""

import pytest

from poolproof_conformance.campaigns.deadline import limited
from poolproof_conformance.campaigns.limited_run import run_limited
from poolproof_conformance.campaigns.signature import failing_step, signature_of, wording
from poolproof_conformance.campaigns.simplify import simplifications, smallest
from poolproof_conformance.child import TargetFailureError
from poolproof_conformance.faulty.choosing import EmptiesTheCache, SlackOfOneEntry
from poolproof_conformance.generator import History
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.run import HistoryRun, run_history
from poolproof_reference.joint_pool import JointPool
from poolproof_spec import operation as op
from poolproof_spec.geometry import layout

PAIR = layout("swa2", 160, SWA=32, FULL=32)
PAGED = layout("swa2", 448, page_tokens=2, SWA=64, FULL=64)


def insert(*key: int) -> op.Insert:
    return op.Insert(key=key)  # type: ignore[arg-type]


def alloc(tokens: int, name: str = "a") -> op.Alloc:
    return op.Alloc(name=name, tokens=tokens)  # type: ignore[arg-type]


SMALL: History = (PAIR, (insert(1), alloc(1)))
"""One page needs no victim; a slack of one entry takes one."""
LARGER: History = (PAIR, (insert(1), insert(1), alloc(1)))
GATED: History = (PAIR, (insert(1), op.Gate(open=False), alloc(1)))


def on(pool_class: type[JointPool], history: History) -> HistoryRun:
    return run_history(ReferenceAdapter(pool_class), *history)


def signature(run: HistoryRun, name: str) -> str | None:
    found = failing_step(run, name)
    return None if found is None else signature_of(*found)


def test_signature_tells_layout_demand_answer_finding_victims_and_circumstances() -> None:
    plain = "swa2 | tokens | granted | none needed | evicts leaf"
    assert signature(on(SlackOfOneEntry, SMALL), "first-sufficient") == plain
    assert signature(on(SlackOfOneEntry, LARGER), "first-sufficient") == plain
    assert signature(on(SlackOfOneEntry, GATED), "first-sufficient") == f"{plain} | gate closed"
    assert signature(on(SlackOfOneEntry, SMALL), "preserving") is None
    assert signature(on(JointPool, SMALL), "first-sufficient") is None


def test_other_demand_and_other_finding_are_other_kinds() -> None:
    decode = (PAIR, (insert(1), op.Decode(name="a", seq_lens=(1,))))  # type: ignore[arg-type]
    assert " | decode | " in (signature(on(SlackOfOneEntry, decode), "first-sufficient") or "")
    fewer = (PAIR, (insert(1), insert(2), alloc(1)))
    assert " | fewer suffice | " in (signature(on(EmptiesTheCache, fewer), "first-sufficient") or "")


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("3 evicted, 0 suffice", "none needed"),
        ("3 evicted, 10 suffice", "fewer suffice"),
        ("evicted, and the grouped frees suffice", "the grouped frees suffice"),
        ("leaf [1, 2] could be spared", "leaf could be spared"),
        ("rejected, and 2 cached steps were evicted", "# cached steps were evicted"),
        ("SWA was compacted 2 times", "SWA was compacted # times"),
    ],
)
def test_a_finding_without_its_numbers(message: str, words: str) -> None:
    assert wording(message) == words


def test_shrinking_may_drop_circumstances_and_keeps_the_core() -> None:
    run = on(SlackOfOneEntry, SMALL)
    found = failing_step(run, "first-sufficient", "swa2 | tokens | granted | none needed | gate closed")
    assert found is not None and found[0].index == 1
    assert failing_step(run, "first-sufficient", "swa2 | tokens | granted | fewer suffice") is None
    assert failing_step(run, "first-sufficient", "swa2 | states | granted | none needed") is None


def test_pages_of_several_tokens_and_odd_setups_are_simplified_away() -> None:
    history: History = (PAGED, (insert(1), op.Decode(name="b", seq_lens=(3,)), alloc(2)))  # type: ignore[arg-type]

    def fails(candidate: History) -> int | None:
        return on(SlackOfOneEntry, candidate).violated().get("first-sufficient")

    assert fails(history) is not None
    geometry, operations = smallest(history, fails, 300)
    assert geometry.page_tokens == 1
    assert len(operations) == 2


def test_simplifications_scale_the_operations_with_the_pages() -> None:
    operations = (
        op.ExtendTail(name="a", prefix_len=2, seq_len=7, tail=3),  # type: ignore[arg-type]
        op.Decode(name="a", seq_lens=(3, 4)),  # type: ignore[arg-type]
        alloc(5),
    )
    geometry, scaled = next(iter(simplifications((PAGED, operations))))
    assert geometry.page_tokens == 1
    assert scaled == (
        op.ExtendTail(name="a", prefix_len=1, seq_len=4, tail=2),  # type: ignore[arg-type]
        op.Decode(name="a", seq_lens=(2,)),  # type: ignore[arg-type]
        alloc(3),
    )


class Endless(ReferenceAdapter):
    """Never comes back from an allocation."""

    def apply(self, operation: op.AnyOperation) -> object:  # type: ignore[override]
        while isinstance(operation, op.Alloc):
            pass
        return super().apply(operation)


class Senseless(ReferenceAdapter):
    """Fails inside this process in a way that nobody foresaw."""

    def apply(self, operation: op.AnyOperation) -> object:  # type: ignore[override]
        raise KeyError("page 7")


def test_an_endless_loop_in_this_process_ends_in_time() -> None:
    ended = run_limited(Endless(), SMALL, 0.2)  # type: ignore[arg-type]
    assert ended.run.verdict == "unknown"
    assert ended.doubt == "the history took longer than 0.2 s"
    assert ended.target_failed


def test_what_cannot_be_judged_is_a_doubt() -> None:
    ended = run_limited(Senseless(), SMALL, 5.0)  # type: ignore[arg-type]
    assert ended.run.verdict == "unknown"
    assert ended.doubt.startswith("could not be judged: KeyError: 'page 7'")


def test_the_limit_is_over_after_the_block() -> None:
    with limited(0.05):
        pass
    with pytest.raises(TargetFailureError), limited(0.05):  # noqa: PT012
        while True:
            pass
