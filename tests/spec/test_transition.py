from msgspec.structs import replace

from poolproof_spec import operation as op
from poolproof_spec.demand import Demand
from poolproof_spec.outcome import Answer, Done, Granted, Refused, Rejected
from poolproof_spec.state import Hold
from poolproof_spec.transition import Transition, cached_pages, cached_states, less, owners, positions_of

from .builders import alloc, entry, hold, ids, key, pool, step, swa2, tri, went

BEFORE = pool(
    tri(30),
    entry(key(1, 2), [1, 2], state=1, last_use=1),
    entry(key(3), [3], last_use=2),
    entry(key(4), [4], swa=False, state=2, last_use=3),
    queued=hold("", [5]),
)


def test_vanished_tells_the_steps_between_two_caches() -> None:
    after = pool(tri(30), entry(key(1, 2), [1, 2], swa=False), entry(key(4), [4], swa=False), holds=[hold("r", [3])])
    t = Transition(BEFORE, alloc(1), Granted(), after, reports_steps=False)
    assert t.steps == t.vanished == (step("leaf", 3), step("tombstone", 1, 2), step("state", 4))


def test_vanished_does_not_depend_on_how_nodes_are_split() -> None:
    split = pool(
        tri(30),
        entry(key(1), [1]),
        entry(key(1, 2), [2], state=1),
        entry(key(3), [3]),
        entry(key(4), [4], swa=False, state=2),
        queued=hold("", [5]),
    )
    assert went(BEFORE, op.Match(key=key(1)), Done(), split).vanished == ()
    assert went(split, op.Match(key=key(1)), Done(), BEFORE).vanished == ()


def test_reported_steps_come_first() -> None:
    after = pool(tri(30), holds=[hold("r", [3])])
    reported = (step("leaf", 3), step("leaf", 1, 2))
    assert went(BEFORE, alloc(1), Granted(steps=reported), after).steps == reported
    assert len(Transition(BEFORE, alloc(1), Granted(steps=reported), after, reports_steps=False).steps) == 3


def test_stages_run_from_past_the_boundary_to_the_last_step() -> None:
    t = went(BEFORE, alloc(1), Granted(steps=(step("leaf", 3), step("leaf", 1, 2))), BEFORE)
    live = [[sorted(member.live_ids) for member in stage.members] for stage in t.stages]
    assert live == [
        [[1, 2], [1, 2, 3], [1, 2, 3, 4]],
        [[1, 2], [1, 2], [1, 2, 4]],
        [[2], [], [4]],
    ]


def test_base_is_the_state_before_less_what_left_the_group() -> None:
    flushed = pool(tri(30), group_open=True)
    assert went(BEFORE, alloc(1), Granted(), flushed).base.member("FULL").live_ids == {1, 2, 3, 4}
    assert went(BEFORE, alloc(1), Granted(), BEFORE).base == BEFORE
    assert went(BEFORE, alloc(1), Granted(), BEFORE).boundary.member("FULL").live_ids == {1, 2, 3, 4}


def test_moves_are_of_pages_that_stay_live_under_their_ids() -> None:
    before = pool(swa2(12), holds=[hold("a", [1]), hold("b", [2])])
    swa, full = before.members
    moved = replace(full, bindings=((ids(1)[0], 7), (ids(2)[0], 9), (ids(3)[0], 8)))
    after = replace(before, members=(swa, moved))
    outcome = Granted(pages=(("FULL", ids(2)[0]), ("FULL", ids(3)[0])))
    assert list(went(before, alloc(2), outcome, after).moves()) == [(1, 1, 11, 7)]
    assert list(went(before, alloc(2), Granted(), after).moves()) == [(1, 1, 11, 7), (1, 2, 12, 9)]
    assert list(went(before, alloc(2), outcome, before).moves()) == []


def test_what_was_waited_for_has_fired() -> None:
    before = pool(swa2(12), pending={"FULL": {4: "e", 5: "f"}})
    t = went(before, alloc(1), Granted(waited=("e",)), before)
    assert t.past_waits.members[1].pending == ((5, "f"),)
    assert went(before, op.Query(), Answer(token_pages=1), before).waited == ()


def test_granted_and_rejected() -> None:
    state = pool(swa2(4))
    assert went(state, alloc(1), Granted(), state).granted
    assert went(state, alloc(1), Granted(), state).demand == Demand(full_pages=1, swa_pages=1)
    assert went(state, alloc(1), Rejected(), state).rejected
    assert went(state, alloc(1), Refused(error="E", message="m"), state).rejected
    assert not went(state, op.Free(name="r"), Refused(error="E", message="m"), state).rejected
    assert not went(state, op.Insert(key=key(1)), Rejected(), state).rejected
    assert went(state, op.Free(name="r"), Done(), state).demand is None


def test_less_is_what_is_gone() -> None:
    assert less(hold("", [1, 2], states=[3]), hold("", [2])) == hold("", [1], states=[3])
    assert less(hold("", [1]), Hold(name="")) == hold("", [1])


def test_positions_and_owners() -> None:
    node = entry(key(1, 2, 3), [7, 8], state=1)
    assert positions_of(node) == [key(1, 2), key(1, 2, 3)]
    state = pool(tri(20), entry(key(1), [1]), replace(node, ids=ids(2, 3), swa_ids=()), holds=[hold("r", [4])])
    assert cached_pages(state) == {key(1): (1, True), key(1, 2): (2, False), key(1, 2, 3): (3, False)}
    assert cached_states(state) == {key(1, 2, 3): 1}
    assert [owner.ids for owner in owners(state)] == [(1,), (2, 3), (4,), ()]
