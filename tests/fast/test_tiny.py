"""On every TINY state: the fast pool grants what the sweep allows and nothing else, and keeps what lies there [T1, T3].

This is the third agreement, of pages and bytes: abstraction(step(x)) against the model's, for all 184,144 placements.
"""

import pytest
from msgspec.structs import replace
from tests.fast.concretise import Concrete

from poolproof_conformance.agreements import DEMANDS
from poolproof_conformance.faulty.fast_registry import FAULTY_FAST
from poolproof_fast.abstraction import abstraction
from poolproof_fast.grants import Grant
from poolproof_fast.pool import FastPool
from poolproof_spec.demand import Demand
from poolproof_spec.geometry import Geometry
from poolproof_spec.invariants import extents_ordered, pages_and_ids_partition, pages_in_range
from poolproof_spec.moves import move_plan
from poolproof_spec.occupancy import as_it_lies, occupancies, pinned_pages
from poolproof_spec.state import PoolState
from poolproof_spec.sweep import sweep, widen
from poolproof_spec.tiny import tiny_geometries, tiny_states

FAMILY = list(tiny_geometries())
COUNTS = (14464, 14464, 26128, 26128, 5284, 5284, 4549, 4549, 4549, 4549, 1420, 1420, 5584, 15964, 30160, 19648)
"""Placements of each, 184,144 in all."""
THINNED = 50
"""In one of so many states the specification's own invariants are asked too; the rest by the tables alone."""


def check_state(concrete: Concrete, state: PoolState) -> int:
    """Ask every demand in one state; how many bytes were moved."""
    concrete.enter(state)
    untouched, moved = True, 0
    for demand in DEMANDS:
        if not untouched:
            concrete.enter(state)
        pool, arena = concrete.pool, concrete.pool.store.arena
        counts = (demand.full_pages, demand.swa_pages, demand.state_pages)
        fits = bool(sweep(occupancies(state, demand)).fits)
        assert pool.fits(*counts) == fits, (state, demand)
        before, copied = concrete.tables(), arena.copied_bytes
        grant = pool.reserve(*counts, may_wait=False)
        assert bool(grant) == fits, (state, demand)
        if isinstance(grant, Grant):
            copied = arena.copied_bytes - copied
            check_grant(concrete, demand, grant)
            assert copied <= planned_bytes(state, demand), (state, demand)
            moved += copied
            untouched = not any(counts)
        else:
            assert concrete.tables() == before, (state, demand)
    return moved


def check_grant(concrete: Concrete, demand: Demand, grant: Grant) -> None:
    """[W1-W3, W6] The new pages are there, the old ones hold what they held, and what is pinned has not moved."""
    store = concrete.pool.store
    members = store.members
    lying: list[dict[int, int]] = [dict(enumerate(member.page_of)) for member in members]
    end_byte = 0
    for index, member in enumerate(members):
        bound = {identifier: page for identifier, page in lying[index].items() if page}
        old = [one for one in concrete.bound if one.member_index == index]
        pending = {page for of, page, _ in concrete.pending if of == index}
        assert len(bound) == len(old) + demand.pages(member.role) == member.live
        taken = set(bound.values()) | pending
        assert len(set(bound.values())) == len(bound)
        assert [page for page in range(member.page_count) if member.vacant[page]] == [
            page for page in range(member.first_page, member.page_count) if page not in taken
        ]
        assert all(member.id_at[page] == identifier for identifier, page in bound.items())
        if taken:
            size = concrete.pool.geometry.members[index].page_bytes
            assert min(taken) * size >= end_byte and min(taken) >= member.first_page
            end_byte = (max(taken) + 1) * size
            assert (member.low, member.high) == (min(taken), max(taken) + 1)
    for index, identifier, page, pinned, content in concrete.bound:
        now = lying[index][identifier]
        assert concrete.read(index, now) == content and (not pinned or now == page)
    assert all(concrete.read(index, page) == content for index, page, content in concrete.pending)
    given = [len(ids) for ids in (grant.ids, grant.swa_ids, grant.state_ids)]
    assert given == [demand.full_pages, demand.swa_pages, demand.state_pages]


def check_abstraction(pool: FastPool) -> None:
    """The same as the specification says it, of the state that the pool stands for."""
    state = abstraction(pool)
    swa = {identifier for index in state.geometry.with_role("swa") for identifier in state.members[index].live_ids}
    alone = swa - state.member("D").live_ids
    state = replace(state, free_token_ids=tuple(sorted({*state.free_token_ids, *alone})))
    assert [rule(state) for rule in (pages_in_range, extents_ordered, pages_and_ids_partition)] == [None] * 3


def planned_bytes(state: PoolState, demand: Demand) -> int:
    """Bytes that the reference would copy."""
    if sweep(as_it_lies(state, demand)).fits:
        return 0
    needs = occupancies(state, demand)
    pinned = [pinned_pages(state, index, demand.may_wait) for index in range(len(needs))]
    plan = move_plan(state, widen(needs, sweep(needs).windows), pinned)
    return sum(len(batch.moves) * state.geometry.members[batch.member_index].page_bytes for batch in plan)


def check_all(concrete: Concrete, geometry: Geometry) -> tuple[int, int]:
    """(states seen, bytes moved)"""
    moved = seen = 0
    for state in tiny_states(geometry):
        moved += check_state(concrete, state)
        seen += 1
        if seen % THINNED == 0:
            check_abstraction(concrete.pool)
    return seen, moved


@pytest.mark.parametrize("number", range(len(FAMILY)))
def test_every_placement(number: int) -> None:
    seen, moved = check_all(Concrete(FAMILY[number]), FAMILY[number])
    assert seen == COUNTS[number]
    assert moved > 0


WRONG = [("copies-backwards", 0), ("moves-without-bytes", 0), ("forgets-birth", 0), ("float-at-home", 12)]
"""(a pool, a geometry in which its fault shows)"""


@pytest.mark.parametrize(("name", "number"), WRONG)
def test_wrong_pools_are_caught(name: str, number: int) -> None:
    (wrong,) = [wrong for wrong in FAULTY_FAST if wrong.name == name]
    concrete = Concrete(FAMILY[number], wrong.make_pool)
    with pytest.raises(AssertionError):
        check_all(concrete, FAMILY[number])


def test_a_planner_that_knows_no_pins_is_caught() -> None:
    concrete = Concrete(FAMILY[0])
    concrete.pool.store.pins = lambda may_wait: None  # type: ignore[method-assign]
    with pytest.raises(AssertionError):
        check_all(concrete, FAMILY[0])
