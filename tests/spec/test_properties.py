"""Each rule on transitions made by hand: some that keep it, some that break it, and what else then breaks.

Arenas of one-byte pages: SWA grows up from page 1, FULL down from the top; ids are small numbers.
"""

import pytest
from msgspec.structs import replace

from poolproof_spec import operation as op
from poolproof_spec.demand import Demand
from poolproof_spec.geometry import layout
from poolproof_spec.outcome import Answer, Blocked, Done, Granted, Impossible, Refused, Rejected
from poolproof_spec.properties import pure_query, token_demand
from poolproof_spec.state import Entry, Flight, Hold, Lock, PoolState
from poolproof_spec.transition import Transition
from poolproof_spec.units import PageId

from .builders import (
    FULL_ARENA,
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

GRANTED = (FULL_ARENA, alloc(1), grant(step("leaf", 1)), pool(swa2(4), NEW, holds=[hold("r", [1])]))
"""The oldest prefix goes, its page is given."""
TOO_MUCH = Impossible(bound="bytes", where="FULL", needed=7, available=5)
REJECTED = (FULL_ARENA, alloc(3), Rejected(reason=TOO_MUCH, walks=1), FULL_ARENA)


def test_what_is_right_has_no_findings() -> None:
    assert found(*GRANTED) == {}
    assert found(*GRANTED, reports_steps=False) == {}
    assert found(*REJECTED) == {}
    assert found(ROOMY, alloc(1), grant(new=[3], walks=0), pool(swa2(8), OLD, NEW, holds=[hold("r", [3])])) == {}


# P1, P1+, P5


def test_one_victim_too_many_breaks_p1() -> None:
    after = pool(swa2(4), holds=[hold("r", [1])])
    broken = found(FULL_ARENA, alloc(1), grant(step("leaf", 1), step("leaf", 2)), after)
    assert broken == {
        "first-sufficient": "2 evicted, 1 suffice",
        "irredundant": "leaf [1] could be spared",
        "within-quota": "before the last step every demanded page and id had been freed",
    }


def test_a_victim_where_none_is_needed_breaks_p1() -> None:
    after = pool(swa2(8), NEW, holds=[hold("r", [1])])
    assert found(ROOMY, alloc(1), grant(step("leaf", 1)), after) == {
        "first-sufficient": "1 evicted, 0 suffice",
        "irredundant": "leaf [1] could be spared",
    }


def test_the_same_is_seen_where_the_steps_are_not_reported() -> None:
    after = pool(swa2(4), holds=[hold("r", [1])])
    silent = Granted(pages=pages(1))
    assert "first-sufficient" in found(FULL_ARENA, alloc(1), silent, after, reports_steps=False)
    assert found(FULL_ARENA, alloc(1), silent, after) == {
        "grant-exact": "SWA: 0 new pages, 1 demanded, 1 others lost",
    }


def test_a_first_victim_that_frees_too_little_breaks_p1_plus_alone() -> None:
    before = pool(swa2(3), entry(key(1), [1], swa=False, last_use=1), entry(key(2), [2], last_use=2))
    after = pool(swa2(3), holds=[hold("r", [1])])
    assert found(before, alloc(1), grant(step("leaf", 1), step("leaf", 2)), after) == {
        "irredundant": "leaf [1] could be spared"
    }
    spared = pool(swa2(3), entry(key(1), [1], swa=False, last_use=1), holds=[hold("r", [2])])
    assert found(before, alloc(1), grant(step("leaf", 2), new=[2]), spared) == {}


def test_funded_by_another_member_breaks_p5() -> None:
    """Pages of 2 bytes for states: the first state alone pays for the demanded FULL page."""
    geometry = layout("mamba2", 9, STATE=2, FULL=1)
    cached = [entry(key(n), [n + 1], swa=False, state=n, last_use=n, locks=(1, 0, 0)) for n in (1, 2)]
    before = pool(geometry, *cached, holds=[hold("h", [4], swa=False)])
    bare = [replace(one, state_id=None) for one in cached]
    right = pool(geometry, bare[0], cached[1], holds=[hold("h", [4], swa=False), hold("r", [5], swa=False)])
    wrong = pool(geometry, *bare, holds=right.holds)
    page = (("FULL", ids(5)[0]),)
    first, second = step("state", 1), step("state", 2)
    assert found(before, alloc(1), Granted(steps=(first,), pages=page), right) == {}
    broken = found(before, alloc(1), Granted(steps=(first, second), pages=page), wrong)
    assert set(broken) == {"first-sufficient", "irredundant", "within-quota"}
    assert broken["within-quota"] == "before the last step STATE had freed bytes that surely fund the demand"


# P2, P3, P4


def test_rejecting_what_would_fit_breaks_p2() -> None:
    no_reason = Rejected()
    assert found(FULL_ARENA, alloc(1), no_reason, FULL_ARENA) == {
        "complete": "rejected, and it fits once unlocked entries are freed",
        "honest-reason": "rejected without a reason",
    }
    assert found(ROOMY, alloc(2), no_reason, ROOMY)["complete"] == "rejected, and it fits with nothing evicted"
    assert "complete" not in found(FULL_ARENA, alloc(3), no_reason, FULL_ARENA)
    refused = Refused(error="Error", message="no")
    assert found(ROOMY, alloc(2), refused, ROOMY) == {"complete": "rejected, and it fits with nothing evicted"}


def test_losing_an_entry_on_a_rejection_breaks_p3() -> None:
    reason = Rejected(reason=TOO_MUCH, steps=(step("leaf", 1),))
    expected = {"preserving": "rejected, and 1 cached steps were evicted"}
    assert found(FULL_ARENA, alloc(3), reason, pool(swa2(4), NEW)) == expected
    silent = replace(reason, steps=())
    assert found(FULL_ARENA, alloc(3), silent, pool(swa2(4), NEW)) == expected


WRITTEN_OVER = (("FULL", ids(1)[0], 7), *FULL_ARENA.payloads[1:])


@pytest.mark.parametrize(
    ("after", "message", "others"),
    [
        (
            pool(swa2(4), replace(OLD, last_use=3), NEW),
            "the cache changed: an entry, a lock or the order",
            {"recency-exact"},
        ),
        (
            replace(FULL_ARENA, entries=(replace(OLD, full_locks=1), NEW)),
            "the cache changed: an entry, a lock or the order",
            {"handles-exact"},
        ),
        (pool(swa2(4), OLD, holds=[hold("r", [2])]), "rejected, and 1 cached steps were evicted", set()),
        (replace(FULL_ARENA, payloads=WRITTEN_OVER), "payloads changed", {"payloads-kept"}),
        (replace(FULL_ARENA, locks=(Lock(name="x", key=key(1)),)), "locks changed", {"handles-exact"}),
        (replace(FULL_ARENA, holds=(Hold(name="r"),)), "holds changed", set()),
        (replace(FULL_ARENA, free_token_ids=()), "free_token_ids changed", {"pages-and-ids-partition"}),
    ],
)
def test_any_change_on_a_rejection_breaks_p3(after: PoolState, message: str, others: set[str]) -> None:
    broken = found(*REJECTED[:3], after)
    assert broken.pop("preserving").startswith(message)
    assert set(broken) == others


def test_a_page_kept_elsewhere_does_not_break_p3() -> None:
    state = pool(swa2(8), entry(key(1), [1, 2, 3]))
    reason = Impossible(bound="ids", where="token", needed=9, available=8)
    assert found(state, alloc(9), Rejected(reason=reason), moved(state, "SWA", 3, 5)) == {}
    more = pool(swa2(8), entry(key(1), [1, 2, 3]), holds=[hold("r", [4])])
    assert found(state, alloc(9), Rejected(reason=reason), more) == {
        "preserving": "SWA: live ids changed by [4]",
    }


KEPT = pool(swa2(4), replace(OLD, full_locks=1, swa_locks=1), NEW)


@pytest.mark.parametrize(
    ("before", "tokens", "reason", "message"),
    [
        (FULL_ARENA, 3, Blocked(by=("locks",)), "blocked by locks, and lifting them is not enough"),
        (FULL_ARENA, 3, replace(TOO_MUCH, needed=8), "names Impossible(bound='bytes', where='FULL', needed=8"),
        (FULL_ARENA, 3, Impossible(bound="ids", where="token", needed=3, available=2), "the bound that fails is"),
        (FULL_ARENA, 3, None, "rejected without a reason"),
        (KEPT, 2, TOO_MUCH, "called impossible, and it fits once gates, events and locks are lifted"),
        (KEPT, 2, Blocked(by=()), "called blocked, and names nothing"),
        (KEPT, 2, Blocked(by=("gates",)), "blocked by gates, and lifting them is not enough"),
        (KEPT, 2, Blocked(by=("gates", "locks")), "names gates, which need not be lifted"),
    ],
)
def test_a_wrong_reason_breaks_p4(
    before: PoolState, tokens: int, reason: Impossible | Blocked | None, message: str
) -> None:
    broken = found(before, alloc(tokens), Rejected(reason=reason), before)
    assert set(broken) == {"honest-reason"}
    assert message in broken["honest-reason"]


def test_a_right_reason_keeps_p4() -> None:
    assert found(KEPT, alloc(2), Rejected(reason=Blocked(by=("locks",))), KEPT) == {}


# P6, P11


def test_a_query_that_changes_or_promises_breaks_p6() -> None:
    asked = (ROOMY, op.Query(), Answer(token_pages=2))
    assert found(*asked, ROOMY) == {}
    assert found(ROOMY, op.Query(), Answer(token_pages=0), ROOMY) == {}
    assert found(*asked, pool(swa2(8), OLD, replace(NEW, last_use=9))) == {"pure-query": "a query changed entries"}
    assert found(ROOMY, op.Query(), Answer(token_pages=3), ROOMY) == {
        "pure-query": "promises 3 token pages, which do not fit"
    }


def test_an_answer_credits_no_hole_behind_a_closed_gate() -> None:
    hole = moved(pool(swa2(8), holds=[hold("r", [1, 2], swa=False)]), "FULL", 1, 2)
    shut = replace(hole, members=tuple(replace(member, gate_open=False) for member in hole.members))
    assert found(hole, op.Query(), Answer(token_pages=3), hole) == {}
    assert found(shut, op.Query(), Answer(token_pages=3), shut) == {
        "pure-query": "promises 3 token pages, which do not fit"
    }


def test_a_target_that_always_waits_may_promise_what_needs_waits() -> None:
    waiting = pool(swa2(8), OLD, pending={"FULL": {6: "e"}})
    asked = (waiting, op.Query(), Answer(token_pages=3), waiting)
    assert set(found(*asked)) == {"pure-query"}
    assert pure_query(Transition(*asked, promises_waits=True)) is None


@pytest.mark.parametrize(
    ("exact", "one_more", "message"),
    [
        (True, False, None),
        (None, None, None),
        (False, False, "says 2 token pages, and cannot give them"),
        (True, True, "says 2 token pages, and gives one more"),
    ],
    ids=["right", "not tried", "too many", "too few"],
)
def test_capacity_is_tried_for_real(exact: bool | None, one_more: bool | None, message: str | None) -> None:
    answer = Answer(token_pages=2, exact_granted=exact, one_more_granted=one_more)
    assert found(ROOMY, op.Capacity(), answer, ROOMY) == ({"capacity-honesty": message} if message else {})


def test_what_does_not_fit_cannot_have_been_had() -> None:
    """The target's own trial is not all that counts."""
    answer = Answer(token_pages=3, exact_granted=True, one_more_granted=False)
    assert found(ROOMY, op.Capacity(), answer, ROOMY) == {
        "capacity-honesty": "says that it gave 3 token pages, which do not fit"
    }


def test_capacity_that_waited_is_judged_after_its_waits() -> None:
    held = pool(swa2(8), OLD, pending={"FULL": {5: "e"}})
    after = pool(swa2(8), OLD)
    answer = Answer(token_pages=3, exact_granted=True, one_more_granted=False)
    assert set(found(held, op.Capacity(), answer, held)) == {"capacity-honesty"}
    assert found(held, op.Capacity(), replace(answer, waited=("e",)), after) == {}


def test_capacity_that_evicts_breaks_p11() -> None:
    answer = Answer(token_pages=3, exact_granted=True, one_more_granted=False)
    broken = found(ROOMY, op.Capacity(), answer, pool(swa2(8), NEW))
    assert broken["capacity-honesty"] == "an entry was evicted"
    assert set(broken) == {"capacity-honesty", "locks-kept", "effects-exact"}


# P7

READ = Flight(event="e", reads=pages(1))
WRITE = Flight(event="e", reads=pages(1), writes=pages(1))
BUSY = pool(swa2(8), OLD, flights=[READ])


def test_a_move_behind_a_closed_gate_breaks_p7() -> None:
    shut = pool(swa2(8), OLD, gate_open=False)
    assert found(shut, op.Compact(), Done(), moved(shut, "SWA", 1, 2)) == {
        "gates-and-events": "SWA: id 1 moved from page 1 to 2 behind a closed gate"
    }
    opened = pool(swa2(8), OLD)
    assert found(opened, op.Compact(), Done(), moved(opened, "SWA", 1, 2)) == {}


def test_a_move_of_what_is_written_breaks_p7() -> None:
    written = pool(swa2(8), OLD, flights=[WRITE])
    after = moved(written, "SWA", 1, 2, pending="e")
    assert found(written, op.Compact(), Done(), after) == {
        "gates-and-events": "SWA: id 1 moved from page 1 to 2 while a forward writes it"
    }


def test_a_move_under_a_reader_leaves_a_pending_page() -> None:
    assert found(BUSY, op.Compact(), Done(), moved(BUSY, "SWA", 1, 2, pending="e")) == {}
    assert found(BUSY, op.Compact(), Done(), moved(BUSY, "SWA", 1, 2)) == {
        "gates-and-events": "SWA: page 1 was moved away under a reader in flight and is not pending"
    }


WAITING = pool(swa2(8), OLD, pending={"FULL": {4: "e", 5: "f"}})


def test_a_pending_page_that_leaves_early_breaks_p7() -> None:
    fired = pool(swa2(8), OLD, pending={"FULL": {5: "f"}})
    assert found(WAITING, op.Fire(event="e"), Done(), fired) == {}
    assert found(WAITING, op.Fire(event="f"), Done(), pool(swa2(8), OLD)) == {
        "gates-and-events": "FULL: pages [4] left pending before their event fired"
    }
    taken = pool(swa2(8), OLD, holds=[hold("r", [2])], pending={"FULL": {5: "f"}})
    early = {"gates-and-events": "FULL: pages [4] left pending before their event fired"}
    assert found(WAITING, alloc(1), grant(new=[2], walks=0), taken) == early
    assert found(WAITING, alloc(1), grant(new=[2], walks=0, waited=("e",)), taken) == {}


def test_a_page_that_two_events_keep_waits_for_both() -> None:
    twice = pool(swa2(8), OLD)
    swa, full = twice.members
    both = ((PageId(4), "e"), (PageId(4), "f"))
    twice = replace(twice, members=(swa, replace(full, pending=both)))
    once = replace(twice, members=(swa, replace(full, pending=both[1:])))
    assert found(twice, op.Fire(event="e"), Done(), once) == {}
    assert set(found(twice, op.Fire(event="e"), Done(), pool(swa2(8), OLD))) == {"gates-and-events"}


def test_waiting_where_the_caller_does_not_breaks_p7() -> None:
    after = pool(swa2(8), OLD, holds=[hold("r", [2])], pending={"FULL": {5: "f"}})
    outcome = grant(new=[2], walks=0, waited=("e",))
    assert set(found(WAITING, alloc(1, may_wait=False), outcome, after)) == {"gates-and-events"}


def test_a_forward_that_is_forgotten_before_its_event_breaks_p7() -> None:
    """Else its pages could be moved in the next step without anybody's noticing."""
    assert set(found(BUSY, op.Match(key=key(1)), Done(matched_pages=1), pool(swa2(8), OLD))) == {"gates-and-events"}
    assert found(BUSY, op.Fire(event="e"), Done(), pool(swa2(8), OLD)) == {}


# P8

QUEUED = pool(swa2(4), NEW, queued=hold("", [1]))
"""One cached page, and one in the open group."""


def test_the_callers_group_stays_open() -> None:
    after = pool(swa2(4), NEW, holds=[hold("r", [1])], group_open=True)
    assert found(QUEUED, alloc(1), grant(walks=0), after) == {}
    assert found(QUEUED, alloc(1), grant(walks=0), replace(after, group_open=False)) == {
        "deferred-frees": "the caller's group was closed"
    }


def test_evicting_where_the_grouped_frees_suffice_breaks_p8() -> None:
    after = pool(swa2(4), holds=[hold("r", [1])], group_open=True)
    broken = found(QUEUED, alloc(1), grant(step("leaf", 2)), after)
    assert broken["deferred-frees"] == "evicted, and the grouped frees suffice"
    assert set(broken) == {"deferred-frees", "first-sufficient", "irredundant"}


def test_rejecting_where_the_grouped_frees_suffice_breaks_p8() -> None:
    held = pool(swa2(4), queued=hold("", [1]), holds=[hold("h", [2])])
    broken = found(held, alloc(1), Rejected(reason=TOO_MUCH), held)
    assert broken["deferred-frees"] == "rejected, and the grouped frees suffice"
    assert set(broken) == {"deferred-frees", "complete", "honest-reason"}


def test_a_victim_left_in_the_group_breaks_p8() -> None:
    before = pool(swa2(6), OLD, NEW, queued=hold("", [3]))
    after = pool(swa2(6), NEW, holds=[hold("r", [3, 4])], queued=hold("", [1]))
    broken = found(before, alloc(2), grant(step("leaf", 1), new=[3, 4]), after)
    assert broken["deferred-frees"] == "ids are still queued after an eviction"
    assert "grant-exact" not in broken


def test_a_target_that_need_not_evict_need_not_flush() -> None:
    before = pool(swa2(8), NEW, queued=hold("", [1]))
    flushed = pool(swa2(8), NEW, holds=[hold("r", [3])], group_open=True)
    unflushed = pool(swa2(8), NEW, holds=[hold("r", [3])], queued=hold("", [1]))
    reused = pool(swa2(8), NEW, holds=[hold("r", [1])], group_open=True)
    for after, new in [(flushed, 3), (unflushed, 3), (reused, 1)]:
        assert found(before, alloc(1), grant(new=[new], walks=0), after) == {}
    impossible = Impossible(bound="ids", where="token", needed=9, available=8)
    for after in (before, pool(swa2(8), NEW, group_open=True)):
        assert found(before, alloc(9), Rejected(reason=impossible), after) == {}


# P9


def test_evicting_what_is_locked_breaks_p9() -> None:
    broken = found(KEPT, alloc(1), grant(step("leaf", 1)), pool(swa2(4), NEW, holds=[hold("r", [1])]))
    assert broken["locks-kept"] == "leaf [1] is no legal step: locked, not there, or it has children"
    assert set(broken) == {"locks-kept", "handles-exact"}


CHILD = entry(key(1, 2), [2], last_use=1)


def test_evicting_a_parent_before_its_child_breaks_p9() -> None:
    before = pool(swa2(4), OLD, CHILD)
    broken = found(before, alloc(1), grant(step("leaf", 1)), pool(swa2(4), CHILD, holds=[hold("r", [1])]))
    assert "leaf [1] is no legal step" in broken["locks-kept"]


def test_a_step_on_no_entry_is_a_finding_and_no_crash() -> None:
    broken = found(FULL_ARENA, alloc(1), grant(step("leaf", 7)), pool(swa2(4), NEW, holds=[hold("r", [1])]))
    assert "leaf [7] is no legal step" in broken["locks-kept"]
    again = grant(step("leaf", 1), step("leaf", 1))
    broken = found(FULL_ARENA, alloc(1), again, pool(swa2(4), NEW, holds=[hold("r", [1])]))
    assert "leaf [1] is no legal step" in broken["locks-kept"]


@pytest.mark.parametrize(
    ("locks", "after", "message"),
    [
        ((1, 0, 0), (), "locked entry [1] was evicted"),
        ((1, 1, 0), (entry(key(1), [1], swa=False),), "entry [1] with a locked window was tombstoned"),
        ((1, 0, 1), (entry(key(1), [1]),), "locked state of entry [1] was evicted"),
        ((0, 1, 0), (), "[1]"),
        ((0, 0, 1), (), "[1]"),
    ],
)
@pytest.mark.parametrize("reports_steps", [True, False])
def test_losing_what_is_locked_without_saying_so_breaks_p9(
    locks: tuple[int, int, int], after: tuple[Entry, ...], message: str, reports_steps: bool
) -> None:
    before = pool(tri(20), entry(key(1), [1], state=1, locks=locks))
    broken = found(before, alloc(0), Granted(), pool(tri(20), *after), reports_steps=reports_steps)
    assert message in broken["locks-kept"]


@pytest.mark.parametrize("locks", [(0, 0, 0), (1, 1, 0)])
def test_an_entry_that_leaves_without_a_demand_breaks_p9(locks: tuple[int, int, int]) -> None:
    before = pool(swa2(8), entry(key(1), [1], locks=locks))
    broken = found(before, op.Match(key=key(1)), Done(matched_pages=0), pool(swa2(8)))
    assert "locks-kept" in broken
    assert "effects-exact" in broken


def test_a_locked_prefix_that_is_gone_breaks_p9_whatever_is_reported() -> None:
    """Also where only a node below it was said to go."""
    child = entry(key(1, 2), [2], last_use=1)
    before = pool(swa2(8), replace(OLD, full_locks=1, swa_locks=1), child)
    broken = found(before, alloc(0), Granted(steps=(step("leaf", 1, 2),)), pool(swa2(8)))
    assert broken["locks-kept"] == "locked entry [1] was evicted"


# P10


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (Granted(pages=pages(3), compactions=(("SWA", 1), ("FULL", 1)), walks=1), None),
        (Granted(pages=pages(3)), None),
        (Granted(pages=pages(3), compactions=(("SWA", 1), ("FULL", 2))), "FULL was compacted 2 times"),
        (Granted(pages=pages(3), compactions=(("SWA", 1), ("SWA", 1))), "SWA was compacted 2 times"),
        (Granted(pages=pages(3), walks=2), "2 eviction walks for one kind of step"),
    ],
)
def test_a_second_walk_or_compaction_breaks_p10(outcome: Granted, message: str | None) -> None:
    after = pool(swa2(8), OLD, NEW, holds=[hold("r", [3])])
    assert found(ROOMY, alloc(1), outcome, after) == ({"bounded-work": message} if message else {})


def test_a_rejection_that_walks_twice_breaks_p10() -> None:
    rejected = Rejected(reason=TOO_MUCH, walks=2)
    assert found(FULL_ARENA, alloc(3), rejected, FULL_ARENA) == {
        "bounded-work": "2 eviction walks for one kind of step"
    }


# P12


def test_a_newer_victim_where_an_older_one_would_do_breaks_p12() -> None:
    after = pool(swa2(4), OLD, holds=[hold("r", [2])])
    assert found(FULL_ARENA, alloc(1), grant(step("leaf", 2), new=[2]), after) == {
        "policy-order": "leaf [2] is not among the 1 steps that the policy takes first, or out of turn"
    }


def test_victims_out_of_turn_break_p12() -> None:
    after = pool(swa2(4), holds=[hold("r", [1, 2])])
    right, turned = (step("leaf", 1), step("leaf", 2)), (step("leaf", 2), step("leaf", 1))
    assert found(FULL_ARENA, alloc(2), grant(*right, new=[1, 2]), after) == {}
    assert set(found(FULL_ARENA, alloc(2), grant(*turned, new=[1, 2]), after)) == {"policy-order"}


def test_a_victim_that_is_spared_does_not_break_p12() -> None:
    """The older one frees too little, the newer one alone enough: P1+ has the older one given back."""
    before = pool(swa2(3), entry(key(1), [1], swa=False, last_use=1), entry(key(2), [2], last_use=2))
    after = pool(swa2(3), entry(key(1), [1], swa=False, last_use=1), holds=[hold("r", [2])])
    assert found(before, alloc(1), grant(step("leaf", 2), new=[2]), after) == {}


def test_token_demand_asks_swa_where_there_is_one() -> None:
    assert token_demand(ROOMY, 2) == Demand(full_pages=2, swa_pages=2, may_wait=False)
    assert token_demand(pool(layout("mamba2", 9, STATE=2, FULL=1)), 2) == Demand(full_pages=2, may_wait=False)
