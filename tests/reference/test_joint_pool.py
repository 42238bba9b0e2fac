"""The reference as a whole, by example: demands, the cache, grouped frees, gates, events, capacity, each refusal."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from poolproof_conformance.generator import History, histories
from poolproof_reference import errors
from poolproof_reference.errors import RefusedError
from poolproof_reference.joint_pool import JointPool
from poolproof_spec import operation as op
from poolproof_spec.geometry import Geometry, layout
from poolproof_spec.outcome import Answer, Blocked, Done, Granted, Impossible, Rejected, Step
from poolproof_spec.state import Hold
from poolproof_spec.units import LARGEST_QUANTITY, PageKey, TokenCount, VirtualId


def swa2(pages: int, **options: int) -> Geometry:
    """FULL and SWA with `pages` usable pages of 32 bytes between them."""
    return layout("swa2", 32 * (1 + pages), SWA=32, FULL=32, **options)


def key(*keys: int) -> tuple[PageKey, ...]:
    return tuple(PageKey(k) for k in keys)


def tokens(*lengths: int) -> tuple[TokenCount, ...]:
    return tuple(TokenCount(length) for length in lengths)


def alloc(name: str, count: int, *, may_wait: bool = True) -> op.Alloc:
    return op.Alloc(name=name, tokens=TokenCount(count), may_wait=may_wait)


def tail(name: str, prefix: int, seq: int, last: int) -> op.ExtendTail:
    return op.ExtendTail(name=name, prefix_len=TokenCount(prefix), seq_len=TokenCount(seq), tail=TokenCount(last))


def insert(*keys: int, state: bool = False) -> op.Insert:
    return op.Insert(key=key(*keys), state=state)


def run(pool: JointPool, *operations: op.AnyOperation) -> list[object]:
    return [pool.apply(operation) for operation in operations]


def hold(pool: JointPool, name: str) -> Hold:
    return pool.holds[name]


def pages(pool: JointPool, member: str) -> list[int]:
    return sorted(pool.observe().member(member).live_pages)


# Demands


def test_alloc_takes_one_id_for_both_pages() -> None:
    pool = JointPool(swa2(8))
    taken = (("SWA", 1), ("SWA", 2), ("FULL", 1), ("FULL", 2))
    assert pool.apply(alloc("a", 2)) == Granted(pages=taken, compactions=(), walks=0)  # type: ignore[arg-type]
    assert hold(pool, "a") == Hold(name="a", ids=(1, 2), swa_ids=(1, 2))  # type: ignore[arg-type]
    assert (pages(pool, "SWA"), pages(pool, "FULL")) == ([1, 2], [7, 8])


def test_a_second_demand_of_a_name_adds_to_it() -> None:
    pool = JointPool(layout("tri", 32 * 13, STATE=32, SWA=32, FULL=32))
    run(pool, alloc("a", 1), op.AllocStates(name="a", count=2), alloc("a", 1))
    assert hold(pool, "a") == Hold(name="a", ids=(1, 2), swa_ids=(1, 2), state_ids=(1, 2))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("operation", "full", "swa"),
    [
        (alloc("a", 5), 2, 2),
        (op.Extend(name="a", prefix_lens=tokens(3, 4), seq_lens=tokens(4, 9)), 2, 2),
        (op.Decode(name="a", seq_lens=tokens(1, 4, 5, 8)), 2, 2),
        (tail("a", 0, 12, 4), 3, 1),
        (tail("a", 0, 12, 5), 3, 2),
        (tail("a", 0, 12, 99), 3, 3),
        (tail("a", 0, 12, 0), 3, 0),
        (tail("a", 10, 12, 1), 0, 0),
        (tail("a", 8, 12, 12), 1, 1),
        (alloc("a", 0), 0, 0),
    ],
)
def test_pages_of_four_tokens_are_counted_exactly(operation: op.AnyDemand, full: int, swa: int) -> None:
    pool = JointPool(swa2(12, page_tokens=4, window_tokens=4))
    pool.apply(operation)
    assert len(hold(pool, "a").ids) == full
    assert len(hold(pool, "a").swa_ids) == swa


def test_a_tail_has_swa_on_the_last_pages() -> None:
    pool = JointPool(swa2(12))
    pool.apply(tail("a", 0, 4, 2))
    assert hold(pool, "a") == Hold(name="a", ids=(1, 2, 3, 4), swa_ids=(3, 4))  # type: ignore[arg-type]


def test_recover_binds_swa_to_the_ids_that_have_none() -> None:
    pool = JointPool(swa2(12))
    run(pool, tail("a", 0, 3, 1), alloc("b", 1))
    outcome = pool.apply(op.Recover(name="a"))
    assert outcome == Granted(pages=(("SWA", VirtualId(1)), ("SWA", VirtualId(2))), compactions=(), walks=0)
    assert sorted(hold(pool, "a").swa_ids) == [1, 2, 3]
    assert pages(pool, "SWA") == [1, 2, 3, 4]
    assert pool.apply(op.Recover(name="a")) == Granted(compactions=(), walks=0)


def test_a_grant_evicts_moves_and_reports_both() -> None:
    pool = JointPool(swa2(6))
    run(pool, insert(1), alloc("a", 1), insert(2), op.Match(key=key(1)))
    outcome = pool.apply(tail("b", 0, 2, 0))
    assert outcome == Granted(
        steps=(Step(kind="leaf", key=key(2)),),
        pages=(("FULL", VirtualId(3)), ("FULL", VirtualId(4))),
        compactions=(),
        walks=1,
    )
    outcome = pool.apply(op.AllocStates(name="c", count=1))
    assert outcome == Granted(compactions=(), walks=0)


def test_states_are_paid_for_by_full_pages() -> None:
    pool = JointPool(layout("mamba2", 480, STATE=96, FULL=32))
    run(pool, *(insert(k) for k in range(1, 13)))
    assert len(pages(pool, "FULL")) == 12
    outcome = pool.apply(op.AllocStates(name="a", count=1))
    assert isinstance(outcome, Granted)
    assert outcome.steps == tuple(Step(kind="leaf", key=key(k)) for k in (1, 2, 3))
    assert outcome.compactions == (("FULL", 1),)
    assert (pages(pool, "STATE"), pages(pool, "FULL")) == ([1], list(range(6, 15)))


# Rejections


def test_an_impossible_demand_names_the_bound_and_changes_nothing() -> None:
    pool = JointPool(swa2(6))
    run(pool, insert(1, 2), op.LockPrefix(name="x", key=key(1)))
    before = pool.observe(with_payloads=True)
    reason = Impossible(bound="bytes", where="FULL", needed=9, available=7)
    assert pool.apply(alloc("a", 4)) == Rejected(reason=reason, compactions=(), walks=1)
    ids = Impossible(bound="ids", where="token", needed=7, available=6)
    assert pool.apply(alloc("a", 7)) == Rejected(reason=ids, compactions=(), walks=1)
    assert pool.observe(with_payloads=True) == before


def test_a_blocked_demand_names_locks_gates_and_events() -> None:
    pool = JointPool(swa2(6))
    run(pool, insert(1), insert(2), insert(3), op.LockPrefix(name="x", key=key(1)), op.LockPrefix(name="y", key=key(2)))
    before = pool.observe()
    assert pool.apply(alloc("a", 2)) == Rejected(reason=Blocked(by=("locks",)), compactions=(), walks=1)
    assert pool.observe() == before
    pool = JointPool(swa2(6))
    run(pool, *(alloc(name, 1) for name in "abc"), op.FreeWindow(name="b"), op.Gate(open=False))
    before = pool.observe()
    assert pool.apply(tail("d", 0, 1, 0)) == Rejected(reason=Blocked(by=("gates",)), compactions=(), walks=1)
    assert pool.observe() == before
    run(pool, op.Gate(open=True), op.Launch(event="e"))
    before = pool.observe()
    outcome = pool.apply(replace(tail("d", 0, 1, 0), may_wait=False))
    assert outcome == Rejected(reason=Blocked(by=("events",)), compactions=(), walks=1)
    assert pool.observe() == before


def test_a_demand_that_may_wait_fires_the_events_and_says_so() -> None:
    pool = JointPool(swa2(6))
    run(pool, *(alloc(name, 1) for name in "abc"), op.FreeWindow(name="b"), op.Launch(event="e", writes=("a",)))
    outcome = pool.apply(tail("d", 0, 1, 0))
    assert isinstance(outcome, Granted)
    assert (outcome.waited, outcome.compactions) == (("e",), (("SWA", 1),))
    assert pool.observe().flights == ()
    assert pages(pool, "SWA") == [1, 2]


# The cache


def test_an_insert_allocates_what_is_missing_without_evicting() -> None:
    pool = JointPool(swa2(6))
    outcome = pool.apply(insert(1, 2))
    assert outcome == Done(pages=(("SWA", 1), ("SWA", 2), ("FULL", 1), ("FULL", 2)))  # type: ignore[arg-type]
    assert pool.apply(insert(1, 2)) == Done()
    assert pool.apply(insert(1, 2, 3)) == Done(pages=(("SWA", VirtualId(3)), ("FULL", VirtualId(3))))
    before = pool.observe()
    assert pool.apply(insert(4)) == Rejected()
    assert pool.observe() == before


def test_an_insert_that_does_not_fit_changes_nothing() -> None:
    pool = JointPool(swa2(6, window_tokens=3))
    run(pool, insert(1, 2, 3))
    before = pool.observe()
    assert pool.apply(insert(1, 2, 9)) == Rejected()
    assert pool.observe() == before


def test_an_insert_restores_tombstones_under_their_ids() -> None:
    pool = JointPool(swa2(7))
    run(pool, insert(1), insert(1, 2), op.LockPrefix(name="x", key=key(1, 2)), alloc("a", 1))
    outcome = pool.apply(alloc("b", 1))
    assert isinstance(outcome, Granted)
    assert outcome.steps == (Step(kind="tombstone", key=key(1)),)
    run(pool, op.Free(name="a"), op.Free(name="b"))
    assert pool.apply(insert(1)) == Done(pages=(("SWA", VirtualId(1)),))
    assert pool.observe().entries[0].swa_ids == (1,)


def test_an_insert_waits_for_no_event() -> None:
    pool = JointPool(swa2(6))
    run(pool, *(alloc(name, 1) for name in "abc"), op.Launch(event="e"), op.Free(name="b"), op.Compact())
    before = pool.observe()
    assert [len(member.pending) for member in before.members] == [1, 1]
    assert pool.apply(insert(1)) == Rejected(reason=Blocked(by=("events",)))
    assert pool.observe() == before
    pool.apply(op.Fire(event="e"))
    assert isinstance(pool.apply(insert(1)), Done)


def test_match_and_lock_tell_how_much_they_found() -> None:
    pool = JointPool(swa2(8))
    assert run(pool, insert(1, 2), op.Match(key=key(1, 2, 3)), op.Match(key=key(7)))[1:] == [
        Done(matched_pages=2),
        Done(matched_pages=0),
    ]
    assert pool.apply(op.LockPrefix(name="x", key=key(1, 9))) == Done(matched_pages=1)
    assert pool.apply(op.LockPrefix(name="y", key=key(9))) == Done(matched_pages=0)
    assert [lock.name for lock in pool.observe().locks] == ["x"]
    assert run(pool, op.UnlockWindow(name="x"), op.Unlock(name="x")) == [Done(), Done()]


# Frees and groups


def test_free_ends_a_request_and_free_window_its_swa_pages() -> None:
    pool = JointPool(swa2(8))
    run(pool, alloc("a", 2), op.FreeWindow(name="a"))
    assert hold(pool, "a") == Hold(name="a", ids=(1, 2))  # type: ignore[arg-type]
    assert (pages(pool, "SWA"), pages(pool, "FULL")) == ([], [7, 8])
    run(pool, op.Free(name="a"))
    assert pool.observe() == JointPool(swa2(8)).observe()


def test_grouped_frees_are_live_until_a_demand_or_the_end() -> None:
    pool = JointPool(layout("tri", 32 * 13, STATE=32, SWA=32, FULL=32))
    run(pool, alloc("a", 1), op.AllocStates(name="a", count=1), tail("b", 0, 1, 0), op.GroupBegin())
    run(pool, op.Free(name="a"), op.Free(name="b"))
    state = pool.observe()
    assert state.holds == ()
    assert state.queued == Hold(name="", ids=(1, 2), swa_ids=(1,), state_ids=(1,))  # type: ignore[arg-type]
    assert [len(member.bindings) for member in state.members] == [1, 1, 2]
    pool.apply(alloc("c", 1))
    state = pool.observe()
    assert (state.group_open, state.queued) == (True, Hold(name=""))
    assert [len(member.bindings) for member in state.members] == [0, 1, 1]
    run(pool, op.Free(name="c"), op.GroupEnd())
    assert (pool.observe().group_open, pages(pool, "FULL")) == (False, [])


def test_grouped_frees_count_before_the_first_eviction() -> None:
    pool = JointPool(swa2(4))
    run(pool, insert(1), alloc("a", 1), op.GroupBegin(), op.Free(name="a"))
    outcome = pool.apply(alloc("b", 1))
    assert isinstance(outcome, Granted)
    assert outcome.steps == ()


def test_a_rejection_leaves_the_group_open() -> None:
    pool = JointPool(swa2(4))
    run(pool, alloc("a", 1), op.GroupBegin(), op.Free(name="a"))
    assert isinstance(pool.apply(alloc("b", 3)), Rejected)
    assert pool.observe().group_open


# Gates, events, housekeeping, capacity


def test_launch_reads_all_and_writes_what_it_names() -> None:
    pool = JointPool(swa2(8))
    run(pool, insert(1), alloc("a", 1), op.Launch(event="e", writes=("a",)))
    (flight,) = pool.observe().flights
    assert flight.reads == (("FULL", 1), ("FULL", 2), ("SWA", 1), ("SWA", 2))
    assert flight.writes == (("FULL", 2), ("SWA", 2))
    pool.apply(op.Fire(event="e"))
    assert pool.observe().flights == ()


def test_compact_keeps_what_was_written() -> None:
    pool = JointPool(swa2(6))
    run(pool, *(alloc(name, 1) for name in "abc"))
    for index in (0, 1):
        for identifier in pool.pool.page_of[index]:
            pool.pool.write(index, identifier, 10 * index + identifier)
    pool.apply(op.Free(name="b"))
    before = pool.observe(with_payloads=True)
    pool.apply(op.Compact())
    after = pool.observe(with_payloads=True)
    assert after.payloads == before.payloads
    assert (pages(pool, "SWA"), pages(pool, "FULL")) == ([1, 2], [5, 6])


@pytest.mark.parametrize(
    ("geometry", "pages_available"),
    [
        (swa2(8), 4),
        (swa2(9), 4),
        (swa2(8, page_tokens=2), 4),
        (layout("mamba2", 480, STATE=96, FULL=32), 12),
        (layout("tri", 416, STATE=48, SWA=32, FULL=64), 3),
    ],
)
def test_capacity_of_an_empty_pool(geometry: Geometry, pages_available: int) -> None:
    pool = JointPool(geometry)
    before = pool.observe()
    assert pool.apply(op.Query()) == Answer(token_pages=pages_available)
    answer = pool.apply(op.Capacity())
    assert answer == Answer(token_pages=pages_available, exact_granted=True, one_more_granted=False)
    assert pool.observe() == before


def test_capacity_may_move_and_never_evicts_or_waits() -> None:
    pool = JointPool(swa2(11))
    run(pool, insert(1), alloc("b", 3), alloc("c", 1), op.FreeWindow(name="b"), op.Launch(event="e"))
    assert pool.apply(op.Query()) == Answer(token_pages=1)
    before = pool.observe()
    assert pool.apply(op.Capacity()) == Answer(token_pages=1, exact_granted=True, one_more_granted=False)
    assert pool.observe() == before
    run(pool, op.Fire(event="e"))
    assert pool.apply(op.Query()) == Answer(token_pages=2)
    assert pages(pool, "SWA") == [1, 5]
    assert pool.apply(op.Capacity()) == Answer(token_pages=2, exact_granted=True, one_more_granted=False)
    assert pages(pool, "SWA") == [1, 2]
    assert pool.observe().entries == before.entries


# Refusals

BIG = LARGEST_QUANTITY + 1
BAD_CALLS: list[tuple[op.AnyOperation, type[RefusedError]]] = [
    (op.Free(name="?"), errors.UnknownNameError),
    (op.FreeWindow(name="?"), errors.UnknownNameError),
    (op.Recover(name="?"), errors.UnknownNameError),
    (op.Unlock(name="?"), errors.UnknownNameError),
    (op.UnlockWindow(name="?"), errors.UnknownNameError),
    (op.Fire(event="?"), errors.UnknownNameError),
    (op.Launch(event="new", writes=("?",)), errors.UnknownNameError),
    (alloc("a", -1), errors.SizeError),
    (alloc("a", BIG), errors.SizeError),
    (op.AllocStates(name="a", count=-1), errors.SizeError),
    (op.AllocStates(name="a", count=BIG), errors.SizeError),
    (op.Extend(name="a", prefix_lens=tokens(1), seq_lens=tokens(1, 2)), errors.SizeError),
    (op.Extend(name="a", prefix_lens=tokens(2), seq_lens=tokens(1)), errors.SizeError),
    (op.Extend(name="a", prefix_lens=tokens(-1), seq_lens=tokens(1)), errors.SizeError),
    (op.Extend(name="a", prefix_lens=tokens(1), seq_lens=tokens(BIG)), errors.SizeError),
    (op.Decode(name="a", seq_lens=tokens(0)), errors.SizeError),
    (op.Decode(name="a", seq_lens=tokens(1, BIG + 1)), errors.SizeError),
    (tail("a", 2, 1, 0), errors.SizeError),
    (tail("a", 0, 1, -1), errors.SizeError),
    (tail("a", -1, 1, 1), errors.SizeError),
    (tail("a", 0, 1, BIG), errors.SizeError),
    (op.Insert(key=()), errors.EmptyKeyError),
    (op.Match(key=()), errors.EmptyKeyError),
    (op.LockPrefix(name="new", key=()), errors.EmptyKeyError),
]
"""Calls that are bad in any state of any layout."""


def bad_here(pool: JointPool) -> list[tuple[op.AnyOperation, type[RefusedError]]]:
    """Calls that are bad in this very state."""
    group: op.AnyOperation = op.GroupBegin() if pool.group_open else op.GroupEnd()
    bad: list[tuple[op.AnyOperation, type[RefusedError]]] = [(group, errors.GroupError)]
    bad += [(op.LockPrefix(name=name, key=key(1)), errors.NameInUseError) for name in pool.cache.locks]
    bad += [(op.Launch(event=event), errors.NameInUseError) for event in pool.pool.flights]
    if not pool.cache.caches_states:
        bad.append((insert(1, state=True), errors.NoStatesError))
    return bad


def assert_refused(pool: JointPool, operation: op.AnyOperation, error: type[RefusedError]) -> None:
    before, clock = pool.observe(with_payloads=True), pool.cache.clock
    with pytest.raises(error):
        pool.apply(operation)
    assert pool.observe(with_payloads=True) == before
    assert pool.cache.clock == clock


def busy() -> JointPool:
    """A cached, locked prefix, a running request, an open group with something in it, a forward in flight."""
    pool = JointPool(swa2(12))
    run(pool, insert(1, 2, 3), op.LockPrefix(name="x", key=key(1, 2)), alloc("a", 2), alloc("b", 1), tail("a", 0, 1, 0))
    run(pool, op.Launch(event="e", writes=("a",)), op.GroupBegin(), op.Free(name="b"))
    return pool


@pytest.mark.parametrize(("operation", "error"), BAD_CALLS)
def test_a_bad_call_is_refused_and_changes_nothing(operation: op.AnyOperation, error: type[RefusedError]) -> None:
    assert_refused(busy(), operation, error)


def test_a_call_that_is_bad_in_this_state_is_refused() -> None:
    pool = busy()
    found = bad_here(pool)
    assert {error for _, error in found} == {errors.GroupError, errors.NameInUseError, errors.NoStatesError}
    for operation, error in found:
        assert_refused(pool, operation, error)


def test_a_refusal_says_what_was_found() -> None:
    pool = busy()
    for operation, words in (
        (op.Free(name="?"), r"no running request named '\?'; there are \['a'\]"),
        (op.Unlock(name="?"), r"no lock named '\?'; held are \['x'\]"),
        (op.GroupBegin(), "a group is open"),
        (alloc("a", -1), "size -1: must be between 0 and"),
    ):
        with pytest.raises(RefusedError, match=words):
            pool.apply(operation)


@settings(max_examples=150)
@given(histories(shortest=1, longest=8), st.data())
def test_random_bad_calls_change_nothing(history: History, data: st.DataObject) -> None:
    geometry, operations = history
    pool = JointPool(geometry)
    for operation in operations:
        with suppress(RefusedError):
            pool.apply(operation)
    for operation, error in data.draw(st.lists(st.sampled_from([*BAD_CALLS, *bad_here(pool)]), min_size=1, max_size=5)):
        assert_refused(pool, operation, error)
