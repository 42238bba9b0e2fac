"""The model state that a pool stands for: what was put in is what is seen, page by page."""

import pytest
from msgspec.structs import replace
from tests.fast.concretise import Concrete

from poolproof_fast.abstraction import abstraction
from poolproof_fast.pool import FastPool
from poolproof_spec.geometry import layout
from poolproof_spec.payload import stamped
from poolproof_spec.state import Hold, Lock, MemberState, PoolState
from poolproof_spec.tiny import tiny_geometries, tiny_states
from poolproof_spec.units import PageId, PageKey, VirtualId

TRI = layout("tri", 1200, STATE=48, SWA=32, FULL=32)
FAMILY = list(tiny_geometries())


def without_ids(state: PoolState) -> tuple[object, ...]:
    """Which pages are live, pending, read in flight, and free."""
    place = {
        (member.name, identifier): page
        for member, now in zip(state.geometry.members, state.members, strict=True)
        for identifier, page in now.bindings
    }
    members = [(sorted(now.live_pages), sorted(now.pending_pages), now.gate_open) for now in state.members]
    return members, [sorted((name, place[name, identifier]) for name, identifier in f.reads) for f in state.flights]


@pytest.mark.parametrize("number", [5, 10, 12])
def test_what_was_made_concrete_is_seen_again(number: int) -> None:
    concrete = Concrete(FAMILY[number])
    for count, state in enumerate(tiny_states(FAMILY[number])):
        if count % 7:
            continue
        concrete.enter(state)
        seen = abstraction(concrete.pool)
        # A flight that reads nothing and only holds pending pages is not listed by the model.
        seen = replace(seen, flights=tuple(flight for flight in seen.flights if flight.reads))
        assert without_ids(seen) == without_ids(state)
        for member, now in zip(state.geometry.members, seen.members, strict=True):
            taken = now.live_pages | now.pending_pages
            assert now.free_pages == tuple(page for page in member.usable_pages if page not in taken)


def ids(*numbers: int) -> tuple[VirtualId, ...]:
    return tuple(map(VirtualId, numbers))


def test_an_empty_pool() -> None:
    state = abstraction(FastPool(TRI))
    assert state.holds == (Hold(name="held"),)
    assert state.members == tuple(
        MemberState(free_pages=tuple(map(PageId, member.usable_pages))) for member in TRI.members
    )
    assert state.free_token_ids == tuple(TRI.id_range("full"))
    assert state.free_state_ids == tuple(TRI.id_range("state"))
    assert (state.entries, state.locks, state.flights, state.group_open, state.payloads) == ((), (), (), False, ())


def test_names_are_the_callers() -> None:
    pool = FastPool(TRI)
    tokens, states = pool.alloc(3).ids.tolist(), pool.alloc_states(1).state_ids.tolist()  # type: ignore[union-attr]
    more = pool.alloc(1).ids.tolist()  # type: ignore[union-attr]
    pool.insert([4, 5], with_state=True)
    handle = pool.lock([4, 5])
    assert handle is not None
    pool.unlock_window(handle)
    pool.free_window(tokens[:1])
    flight = pool.launch(writes=more, state_writes=states)
    requests = {"b": (tokens, states), "a": (more, [])}
    state = abstraction(pool, requests, {"x": handle}, {flight.number: "forward"})
    assert state.holds == (
        Hold(name="a", ids=ids(*more), swa_ids=ids(*more)),
        Hold(name="b", ids=ids(*tokens), swa_ids=ids(*tokens[1:]), state_ids=ids(*states)),
    )
    key = (PageKey(4), PageKey(5))
    assert state.locks == (Lock(name="x", key=key, window_released=True),)
    assert [(one.event, one.writes) for one in state.flights] == [
        ("forward", tuple(sorted([("STATE", states[0]), ("SWA", more[0]), ("FULL", more[0])])))
    ]
    locked = [(entry.key, entry.full_locks, entry.swa_locks, entry.state_locks) for entry in state.entries]
    assert locked == [(key[:1], 1, 0, 0), (key, 1, 0, 0)]


def test_what_is_queued_and_what_pages_hold() -> None:
    pool = FastPool(TRI)
    tokens = pool.alloc(2).ids.tolist()  # type: ignore[union-attr]
    pool.store.arena.write_page(2, pool.store.members[2].page_of[tokens[0]], stamped(77, 32))
    pool.group_begin()
    pool.free(tokens)
    pool.gate(open=False)
    state = abstraction(pool, with_payloads=True)
    assert state.group_open and state.queued == Hold(name="", ids=ids(*tokens), swa_ids=ids(*tokens))
    assert state.holds == (Hold(name="held"),)
    assert not any(member.gate_open for member in state.members)
    first, second = sorted(tokens)
    stamps = {tokens[0]: 77}
    full = [("FULL", i, stamps.get(i, 0)) for i in (first, second)]
    assert state.payloads == (*full, ("SWA", first, 0), ("SWA", second, 0))
