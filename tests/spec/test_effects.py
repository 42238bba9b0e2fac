"""What an operation must have done, and nothing else: on transitions made by hand."""

import pytest
from msgspec.structs import replace

from poolproof_spec import operation as op
from poolproof_spec.effects import effects_exact
from poolproof_spec.outcome import Done, Granted, Refused, Rejected
from poolproof_spec.state import Flight, Hold, PoolState
from poolproof_spec.transition import Transition
from poolproof_spec.units import TokenCount

from .builders import (
    NEW,
    OLD,
    ROOMY,
    alloc,
    entry,
    found,
    grant,
    hold,
    ids,
    key,
    moved,
    pages,
    pool,
    step,
    swa2,
    tri,
)

# G1


@pytest.mark.parametrize(
    ("outcome", "after", "message"),
    [
        (grant(new=[3], walks=0), ROOMY, "SWA: 0 new pages, 1 demanded, 0 others lost"),
        (grant(new=[3, 4], walks=0), pool(swa2(8), OLD, NEW, holds=[hold("r", [3, 4])]), "2 new pages, 1 demanded"),
        (grant(new=[3], walks=0), pool(swa2(8), OLD, holds=[hold("r", [3])]), "1 new pages, 1 demanded, 1 others lost"),
    ],
)
def test_giving_another_number_of_pages_breaks_g1(outcome: Granted, after: PoolState, message: str) -> None:
    assert message in found(ROOMY, alloc(1), outcome, after)["grant-exact"]


def test_reporting_other_steps_than_were_taken_breaks_g1() -> None:
    swa_only = op.Recover(name="r")
    newer, older = replace(OLD, full_locks=1, last_use=2), entry(key(2), [2], last_use=1, locks=(1, 0, 0))
    before = pool(swa2(5), newer, older, holds=[hold("r", [3], swa=False)])
    after = pool(swa2(5), newer, replace(older, swa_ids=()), holds=[hold("r", [3])])
    right = Granted(steps=(step("tombstone", 2),), pages=(("SWA", ids(3)[0]),))
    assert found(before, swa_only, right, after) == {}
    wrong = replace(right, steps=(step("tombstone", 1),))
    assert "grant-exact" in found(before, swa_only, wrong, after)


def test_reporting_other_pages_than_were_given_breaks_g1() -> None:
    after = pool(swa2(8), OLD, NEW, holds=[hold("r", [3])])
    assert set(found(ROOMY, alloc(1), grant(new=[4], walks=0), after)) == {"grant-exact"}


def test_a_page_reported_twice_breaks_g1() -> None:
    after = pool(swa2(8), OLD, NEW, holds=[hold("r", [3])])
    assert set(found(ROOMY, alloc(1), Granted(pages=(*pages(3), pages(3)[0])), after)) == {"grant-exact"}


HELD_BY_TWO = pool(swa2(12), OLD, holds=[hold("q", [4]), hold("r", [3])])


@pytest.mark.parametrize(
    ("holds", "is_right"),
    [
        ([hold("q", [4]), hold("r", [3, 5])], True),
        ([hold("q", [4, 5]), hold("r", [3])], False),
        ([hold("q", [4]), hold("r", [5, 3])], False),
        ([hold("q", [3]), hold("r", [4, 5])], False),
        ([hold("q", [4]), hold("r", [3]), hold("s", [5])], False),
    ],
    ids=["right", "to another", "before its own", "changed hands", "to nobody"],
)
def test_a_grant_is_for_the_request_that_asked(holds: list[Hold], is_right: bool) -> None:
    broken = found(HELD_BY_TWO, alloc(1), grant(new=[5], walks=0), pool(swa2(12), OLD, holds=holds))
    assert set(broken) == (set() if is_right else {"grant-exact"})


@pytest.mark.parametrize(("with_swa", "is_right"), [([4], True), ([3], False)])
def test_a_tail_has_the_last_of_the_new_ids(with_swa: list[int], is_right: bool) -> None:
    tail = op.ExtendTail(name="r", prefix_len=TokenCount(0), seq_len=TokenCount(2), tail=TokenCount(1))
    after = pool(swa2(12), OLD, NEW, holds=[Hold(name="r", ids=ids(3, 4), swa_ids=ids(*with_swa))])
    outcome = Granted(pages=tuple(("FULL", i) for i in ids(3, 4)) + tuple(("SWA", i) for i in ids(*with_swa)))
    assert set(found(pool(swa2(12), OLD, NEW), tail, outcome, after)) == (set() if is_right else {"grant-exact"})


# G2


def test_a_refused_call_that_changes_something_breaks_g2() -> None:
    refused = Refused(error="UnknownNameError", message="no request 'x'")
    assert found(ROOMY, op.Free(name="x"), refused, ROOMY) == {}
    changed = replace(ROOMY, group_open=True)
    assert found(ROOMY, op.Free(name="x"), refused, changed) == {
        "refusal-changes-nothing": "a refused call changed the state"
    }


@pytest.mark.parametrize(
    "malformed",
    [
        alloc(-3),
        op.AllocStates(name="r", count=-1),
        op.Decode(name="r", seq_lens=(TokenCount(0),)),
        op.Extend(name="r", prefix_lens=(TokenCount(5),), seq_lens=(TokenCount(2),)),
        op.Extend(name="r", prefix_lens=(), seq_lens=(TokenCount(3),)),
        op.ExtendTail(name="r", prefix_len=TokenCount(1), seq_len=TokenCount(3), tail=TokenCount(-1)),
    ],
    ids=["alloc", "states", "decode", "shrinking", "lopsided", "tail"],
)
def test_refusing_a_malformed_demand_is_right(malformed: op.AnyOperation) -> None:
    assert found(ROOMY, malformed, Refused(error="SizeError", message="a bad size"), ROOMY) == {}


# G3


HELD = pool(swa2(8), OLD, holds=[hold("r", [3, 4])])


@pytest.mark.parametrize(
    ("operation", "after", "holds_there"),
    [
        (op.Free(name="r"), pool(swa2(8), OLD), True),
        (op.Free(name="r"), pool(swa2(8), OLD, holds=[hold("r", [3])]), False),
        (op.Free(name="r"), pool(swa2(8)), False),
        (op.FreeWindow(name="r"), pool(swa2(8), OLD, holds=[hold("r", [3, 4], swa=False)]), True),
        (op.FreeWindow(name="r"), HELD, False),
        (op.FreeWindow(name="r"), pool(swa2(8), OLD), False),
        (op.Match(key=key(1)), HELD, True),
        (op.Match(key=key(1)), pool(swa2(8), OLD, holds=[hold("r", [3, 4, 5])]), False),
    ],
)
def test_an_operation_frees_and_takes_what_it_names(
    operation: op.AnyOperation, after: PoolState, holds_there: bool
) -> None:
    assert ("effects-exact" not in found(HELD, operation, Done(), after)) == holds_there


def test_a_free_in_an_open_group_is_deferred() -> None:
    before = replace(HELD, group_open=True)
    after = pool(swa2(8), OLD, queued=hold("", [3, 4]))
    assert found(before, op.Free(name="r"), Done(), after) == {}
    assert found(after, op.GroupEnd(), Done(), pool(swa2(8), OLD)) == {}


def test_a_group_that_ends_leaves_nothing_queued() -> None:
    before = pool(swa2(8), OLD, queued=hold("", [3, 4]))
    kept = replace(before, group_open=False)
    assert "effects-exact" in found(before, op.GroupEnd(), Done(), kept)


def test_an_insert_takes_what_it_reports() -> None:
    before = pool(swa2(8))
    assert found(before, op.Insert(key=key(1)), Done(pages=pages(1)), pool(swa2(8), OLD)) == {}
    assert set(found(before, op.Insert(key=key(1)), Done(), pool(swa2(8), OLD))) == {"effects-exact"}
    assert found(before, op.Insert(key=key(1)), Rejected(), before) == {}


def test_an_insert_that_reports_what_was_there_breaks_g3() -> None:
    outcome = Done(pages=pages(1))
    assert set(found(ROOMY, op.Insert(key=key(1)), outcome, pool(swa2(8), replace(OLD, last_use=3), NEW))) == {
        "effects-exact"
    }


@pytest.mark.parametrize(
    "after",
    [
        pool(swa2(8)),
        pool(swa2(8), entry(key(1), [1])),
        pool(swa2(8), entry(key(1, 2), [1, 2], swa=False)),
        pool(swa2(8), entry(key(1, 3), [1, 2])),
    ],
    ids=["nothing", "half of it", "without a window", "another"],
)
def test_an_insert_leaves_a_prefix_that_can_be_used(after: PoolState) -> None:
    new = tuple((m.name, i) for m, now in zip(after.geometry.members, after.members, strict=True) for i in now.live_ids)
    broken = found(pool(swa2(8)), op.Insert(key=key(1, 2)), Done(pages=new), after)
    assert "effects-exact" in broken


def test_an_insert_need_not_restore_what_lies_before_the_window() -> None:
    upper, lower = entry(key(1), [1], swa=False), entry(key(1, 2), [2])
    before = pool(swa2(8), upper, lower)
    assert found(before, op.Insert(key=key(1, 2)), Done(), before) == {}
    restored = pool(swa2(8), replace(upper, swa_ids=ids(1)), lower)
    assert found(before, op.Insert(key=key(1, 2)), Done(pages=(("SWA", ids(1)[0]),)), restored) == {}
    assert "effects-exact" in found(restored, op.Insert(key=key(1, 2)), Done(), before)


TOMBSTONED = pool(swa2(8), entry(key(1), [1], swa=False))
RENEWED = pool(swa2(8), entry(key(1), [2]))


def test_an_insert_may_bring_a_tombstoned_page_anew() -> None:
    """The pair of pages is the caller's then, and the old FULL page is free, or waits in the group."""
    insert, new = op.Insert(key=key(1)), Done(pages=pages(2))
    assert found(TOMBSTONED, insert, new, RENEWED) == {}
    in_group = replace(TOMBSTONED, group_open=True)
    assert found(in_group, insert, new, pool(swa2(8), entry(key(1), [2]), queued=hold("", [1], swa=False))) == {}
    assert "effects-exact" in found(pool(swa2(8), OLD), insert, new, RENEWED)
    locked = pool(swa2(8), entry(key(1), [1], swa=False, locks=(1, 0, 0)))
    renewed_under_lock = pool(swa2(8), entry(key(1), [2], locks=(1, 0, 0)))
    assert "effects-exact" in found(locked, insert, new, renewed_under_lock)


def test_what_an_insert_brought_twice_may_wait_in_the_group() -> None:
    before = pool(swa2(8), OLD, group_open=True)
    after = pool(swa2(8), OLD, queued=hold("", [3]))
    assert found(before, op.Insert(key=key(1)), Done(pages=pages(3)), after) == {}
    assert "effects-exact" in found(before, op.Insert(key=key(1)), Done(), after)


def test_an_insert_changes_no_other_prefix() -> None:
    before = pool(swa2(8), OLD)
    added = entry(key(2), [2], last_use=2)
    turned = [entry(key(1), [2], last_use=1), entry(key(2), [1], last_use=2)]
    assert found(before, op.Insert(key=key(2)), Done(pages=pages(2)), pool(swa2(8), OLD, added)) == {}
    assert "effects-exact" in found(before, op.Insert(key=key(2)), Done(pages=pages(2)), pool(swa2(8), *turned))


def test_a_rejected_insert_caches_nothing() -> None:
    before = pool(swa2(8), OLD)
    assert "effects-exact" in found(before, op.Insert(key=key(2)), Rejected(), pool(swa2(8), OLD, NEW))


def test_a_split_keeps_each_prefix_its_page_and_state() -> None:
    whole = pool(tri(30), entry(key(1, 2), [1, 2], state=1))
    right = pool(tri(30), entry(key(1), [1]), entry(key(1, 2), [2], state=1))
    turned = pool(tri(30), entry(key(1), [2]), entry(key(1, 2), [1], state=1))
    lifted = pool(tri(30), entry(key(1), [1], state=1), entry(key(1, 2), [2]))
    match = op.Match(key=key(1))
    assert found(whole, match, Done(matched_pages=0), right) == {}
    assert set(found(whole, match, Done(matched_pages=0), turned)) == {"effects-exact"}
    assert set(found(whole, match, Done(matched_pages=0), lifted)) == {"effects-exact", "locks-kept"}


def test_a_gate_is_as_it_was_asked_to_be() -> None:
    shut = pool(swa2(8), OLD, gate_open=False)
    opened = pool(swa2(8), OLD)
    assert found(opened, op.Gate(open=False), Done(), shut) == {}
    assert found(opened, op.Gate(open=False), Done(), opened) == {
        "effects-exact": "SWA: the gate is open and should not be"
    }
    assert set(found(opened, op.Match(key=key(1)), Done(matched_pages=1), shut)) == {"effects-exact"}


def test_a_group_is_open_from_its_begin_to_its_end() -> None:
    closed, opened = pool(swa2(8), OLD), pool(swa2(8), OLD, group_open=True)
    assert found(closed, op.GroupBegin(), Done(), opened) == {}
    assert set(found(closed, op.GroupBegin(), Done(), closed)) == {"effects-exact"}
    assert set(found(opened, op.GroupEnd(), Done(), opened)) == {"effects-exact"}
    assert set(found(opened, op.Compact(), Done(), closed)) == {"effects-exact"}


def test_the_group_has_what_was_freed_and_nothing_else() -> None:
    before = replace(HELD, group_open=True)
    at_once = pool(swa2(8), OLD, group_open=True)
    assert set(found(before, op.Free(name="r"), Done(), at_once)) == {"effects-exact"}
    queued = pool(swa2(8), OLD, queued=hold("", [3, 4]))
    assert "effects-exact" in found(queued, op.Match(key=key(1)), Done(matched_pages=1), at_once)
    swa_freed = pool(swa2(8), OLD, queued=hold("", [3, 4], swa=False))
    assert found(before, op.Free(name="r"), Done(), swa_freed) == {}


BUSY = pool(swa2(8), OLD, holds=[hold("r", [2])])
READ = tuple(sorted(pages(1, 2)))


@pytest.mark.parametrize(
    ("flights", "is_right"),
    [
        ([Flight(event="e", reads=READ, writes=pages(2))], True),
        ([Flight(event="e", reads=READ)], False),
        ([Flight(event="e", writes=pages(2))], False),
        ([Flight(event="f", reads=READ, writes=pages(2))], False),
        ([], False),
    ],
    ids=["right", "no writes", "no reads", "another event", "none"],
)
def test_a_launch_puts_a_forward_in_flight(flights: list[Flight], is_right: bool) -> None:
    after = replace(BUSY, flights=tuple(flights))
    broken = found(BUSY, op.Launch(event="e", writes=("r",)), Done(), after)
    assert set(broken) == (set() if is_right else {"effects-exact"})


def test_a_target_may_not_know_which_states_a_forward_writes() -> None:
    before = pool(tri(30), holds=[hold("r", [], states=[1])])
    state = (("STATE", ids(1)[0]),)
    launch = op.Launch(event="e", writes=("r",))
    knows, knows_not = (replace(before, flights=(Flight(event="e", reads=state, writes=w),)) for w in (state, ()))
    assert found(before, launch, Done(), knows) == {}
    assert set(found(before, launch, Done(), knows_not)) == {"effects-exact"}
    assert effects_exact(Transition(before, launch, Done(), knows_not, tells_state_writes=False)) is None


def test_a_forward_in_flight_goes_on_reading_what_stays() -> None:
    flying = replace(BUSY, flights=(Flight(event="e", reads=READ, writes=pages(2)),))
    freed = moved(pool(swa2(8), OLD, flights=[Flight(event="e", reads=pages(1))]), "FULL", 1, 7)
    assert found(flying, op.Free(name="r"), Done(), freed) == {}
    forgot = replace(freed, flights=(Flight(event="e"),))
    assert set(found(flying, op.Free(name="r"), Done(), forgot)) == {"effects-exact"}


def test_what_has_fired_is_over() -> None:
    flying = replace(pool(swa2(8), OLD, pending={"SWA": {3: "e"}}), flights=(Flight(event="e"),))
    assert found(flying, op.Fire(event="e"), Done(), pool(swa2(8), OLD)) == {}
    assert found(flying, op.Fire(event="e"), Done(), flying) == {
        "effects-exact": "events ['e'] have fired, and something still waits for them"
    }
