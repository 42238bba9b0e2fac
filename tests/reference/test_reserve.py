"""`victims` by example, against a naive twin, and against every legal set of steps of small caches."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import combinations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from poolproof_reference.errors import RefusedError
from poolproof_reference.joint_pool import JointPool
from poolproof_reference.reserve import spare, victims
from poolproof_spec import operation as op
from poolproof_spec.definition import windows_exist
from poolproof_spec.demand import Demand
from poolproof_spec.fits import fits, ids_suffice
from poolproof_spec.geometry import Geometry, geometry_problems, layout
from poolproof_spec.occupancy import pinned_pages
from poolproof_spec.outcome import Step, StepKind
from poolproof_spec.state import PoolState
from poolproof_spec.steps import Tree, after_step, after_steps, is_legal, policy_order, spared, tree_of
from poolproof_spec.units import PageKey

MOST_ENTRIES = 4
"""Cached nodes of a cache whose legal sets of steps are all tried."""
MOST_PAGES = 12
"""Pages of a member whose windows are all tried."""


def key(*keys: int) -> tuple[PageKey, ...]:
    return tuple(PageKey(k) for k in keys)


def leaf(*keys: int) -> Step:
    return Step(kind="leaf", key=key(*keys))


def swa2(pages: int) -> Geometry:
    return layout("swa2", 32 * (1 + pages), SWA=32, FULL=32)


def cached(geometry: Geometry, *prefixes: tuple[int, ...], state: bool = False) -> PoolState:
    """A pool with these prefixes cached, oldest first."""
    pool = JointPool(geometry)
    for prefix in prefixes:
        pool.apply(op.Insert(key=key(*prefix), state=state))
    return pool.observe()


# By example


def test_nothing_goes_where_it_fits() -> None:
    state = cached(swa2(6), (1,), (2,))
    assert victims(state, Demand(full_pages=1, swa_pages=1)) == []


def test_oldest_first_and_no_more_than_needed() -> None:
    state = cached(swa2(6), (1,), (2,), (3,))
    found = [victims(state, Demand(full_pages=n, swa_pages=n)) for n in range(5)]
    assert found == [[], [leaf(1)], [leaf(1), leaf(2)], [leaf(1), leaf(2), leaf(3)], None]


def test_a_parent_goes_after_its_child() -> None:
    state = cached(swa2(6), (1, 2, 3))
    found = victims(state, Demand(full_pages=2, swa_pages=2))
    assert found == [leaf(1, 2, 3), leaf(1, 2)]


def test_a_first_victim_that_turns_out_needless_is_spared() -> None:
    # Oldest is a page of 32 bytes on both sides; three pages are short, and the second victim has three.
    state = cached(swa2(8), (1,), (2, 3, 4))
    assert policy_order(tree_of(state)) == [leaf(1), leaf(2, 3, 4), leaf(2, 3)]
    state = cached(layout("mamba2", 32 * 5, STATE=32, FULL=32), (1,), (2, 3, 4))
    assert policy_order(tree_of(state)) == [leaf(1), leaf(2, 3, 4)]
    assert victims(state, Demand(full_pages=2)) == [leaf(2, 3, 4)]
    assert victims(state, Demand(full_pages=1)) == [leaf(1)]


def test_sparing_a_child_spares_its_ancestors() -> None:
    state = cached(swa2(8), (1,), (1, 2), (3,))
    order = policy_order(tree_of(state))
    assert order == [leaf(1, 2), leaf(1), leaf(3)]
    assert spare(state, Demand(full_pages=1, swa_pages=1), order) == []
    assert spare(state, Demand(full_pages=2, swa_pages=2), order) == [leaf(1, 2)]


def test_tombstones_and_states_pay_where_leaves_are_locked() -> None:
    pool = JointPool(layout("tri", 32 * 11, STATE=32, SWA=32, FULL=32))
    for length in range(1, 4):
        pool.apply(op.Insert(key=key(*range(1, length + 1)), state=True))
    pool.apply(op.LockPrefix(name="x", key=key(1, 2, 3)))
    state = pool.observe()
    assert [len(member.bindings) for member in state.members] == [3, 3, 3]
    assert victims(state, Demand(full_pages=1, swa_pages=1)) == [Step(kind="tombstone", key=key(1, 2))]
    both = [Step(kind="tombstone", key=key(1, 2)), Step(kind="tombstone", key=key(1))]
    assert victims(state, Demand(state_pages=4)) == both
    assert victims(state, Demand(state_pages=6)) is None


def test_pages_and_state_of_one_leaf_fund_a_demand_together() -> None:
    pool = JointPool(layout("tri", 6784, STATE=48, SWA=32, FULL=32))
    for prefix in ((1,), (2,), tuple(range(3, 97))):
        pool.apply(op.Insert(key=key(*prefix), state=True))
    pool.apply(op.AllocStates(name="held", count=5))
    assert victims(pool.observe(), Demand(full_pages=4, swa_pages=4)) == [leaf(1)]
    assert victims(pool.observe(), Demand(full_pages=200, swa_pages=200)) is None


# Against everything there is


@st.composite
def arenas(draw: st.DrawFn) -> Geometry:
    """A chain of members of at most MOST_PAGES pages, so that all windows can be tried."""
    sizes = {name: draw(st.integers(2, 4)) for name in ("STATE", "SWA", "FULL")}
    geometry = layout(
        draw(st.sampled_from(("swa2", "mamba2", "tri"))),
        draw(st.integers(10, 2 * MOST_PAGES)),
        page_tokens=draw(st.sampled_from((1, 1, 2))),
        window_tokens=draw(st.integers(1, 2)),
        **sizes,
    )
    assume(not geometry_problems(geometry))
    return geometry


KEYS = st.lists(st.sampled_from((1, 2)), min_size=1, max_size=3).map(lambda keys: key(*keys))
NAMES = st.sampled_from(("a", "b"))
CACHING: st.SearchStrategy[op.AnyOperation] = st.builds(op.Insert, key=KEYS, state=st.booleans())
HOLDING = st.one_of(
    st.builds(op.LockPrefix, name=NAMES, key=KEYS),
    st.builds(op.LockPrefix, name=NAMES, key=KEYS),
    st.builds(op.UnlockWindow, name=NAMES),
    st.builds(op.Alloc, name=NAMES, tokens=st.integers(1, 3)),
    st.builds(op.AllocStates, name=NAMES, count=st.integers(1, 2)),
    st.builds(op.FreeWindow, name=NAMES),
    st.builds(op.Free, name=NAMES),
    st.builds(op.Gate, open=st.sampled_from((False, True))),
    st.builds(op.Launch, event=NAMES, writes=st.just(())),
    st.just(op.Compact()),
    CACHING,
    CACHING,
)


def locked_path(state: bool) -> list[op.AnyOperation]:
    """Three nodes below each other, the last one locked: the upper ones can only lose their SWA pages or states."""
    inserts = [op.Insert(key=key(1, 2, 1)[:length], state=state) for length in (1, 2, 3)]
    return [*inserts, op.LockPrefix(name="z", key=key(1, 2, 1))]


@st.composite
def states(draw: st.DrawFn) -> PoolState:
    """A few cached nodes, some locked, beside running requests, closed gates and forwards in flight."""
    pool = JointPool(draw(arenas()))
    cached_first = draw(
        st.one_of(st.just(locked_path(pool.cache.caches_states)), st.lists(CACHING, min_size=1, max_size=3))
    )
    for operation in (*cached_first, *draw(st.lists(HOLDING, max_size=6))):
        with suppress(RefusedError):
            pool.apply(operation)
    state = pool.observe()
    assume(0 < len(state.entries) <= MOST_ENTRIES)
    return state


@st.composite
def cases(draw: st.DrawFn) -> tuple[PoolState, Demand]:
    """A state and a demand of about as much as it may have room for."""
    state = draw(states())
    has_swa, may_wait = state.geometry.has_role("swa"), draw(st.booleans())
    if state.geometry.has_role("state") and draw(st.booleans()):
        return state, Demand(state_pages=draw(st.integers(1, len(state.free_state_ids) + 1)), may_wait=may_wait)
    full = draw(st.integers(0, min(len(state.free_token_ids) + 1, MOST_PAGES // 2)))
    swa = draw(st.sampled_from((full, full, min(full, 1), 0 if full else 1))) if has_swa else 0
    return state, Demand(full_pages=full, swa_pages=swa, may_wait=may_wait)


def fits_by_definition(state: PoolState, demand: Demand) -> bool:
    """Windows exist, by trying all of them."""
    pinned = [pinned_pages(state, index, demand.may_wait) for index in range(len(state.members))]
    loose = [
        len(now.live_pages - pins) + demand.pages(member.role)
        for member, now, pins in zip(state.geometry.members, state.members, pinned, strict=True)
    ]
    return ids_suffice(state, demand) and windows_exist(state.geometry, pinned, loose)


def naive_victims(state: PoolState, demand: Demand) -> list[Step] | None:
    """The shortest prefix of the policy's order that suffices, less what can be spared of it, newest first."""
    order = policy_order(tree_of(state))
    prefixes = [order[:count] for count in range(len(order) + 1)]
    sufficient = [steps for steps in prefixes if fits_by_definition(after_steps(state, steps), demand)]
    if not sufficient:
        return None
    kept = sufficient[0]
    for step in reversed(sufficient[0]):
        fewer = spared(kept, step)
        if step in kept and fits_by_definition(after_steps(state, fewer), demand):
            kept = fewer
    return kept


def legal_steps(tree: Tree) -> Iterator[Step]:
    kinds: tuple[StepKind, ...] = ("leaf", "tombstone", "state")
    return (step for name in tree for kind in kinds if is_legal(tree, step := Step(kind=kind, key=name)))


def reachable(state: PoolState) -> Iterator[PoolState]:
    """Every state that some sequence of legal steps leads to, each once."""
    seen, waiting = set(), [state]
    while waiting:
        now = waiting.pop()
        if now.entries in seen:
            continue
        seen.add(now.entries)
        yield now
        waiting += [after_steps(now, (step,)) for step in legal_steps(tree_of(now))]


def is_legal_sequence(tree: Tree, steps: tuple[Step, ...]) -> bool:
    for step in steps:
        if not is_legal(tree, step):
            return False
        tree = after_step(tree, step)
    return True


@settings(max_examples=200)
@given(cases())
def test_victims_are_those_of_the_naive_twin(case: tuple[PoolState, Demand]) -> None:
    state, demand = case
    assert victims(state, demand) == naive_victims(state, demand)


@settings(max_examples=300)
@given(cases())
def test_none_means_that_no_legal_steps_suffice(case: tuple[PoolState, Demand]) -> None:
    state, demand = case
    found = victims(state, demand)
    assert (found is None) == (not any(fits(reached, demand) for reached in reachable(state)))


@settings(max_examples=300)
@given(cases())
def test_victims_are_legal_suffice_and_none_can_be_spared(case: tuple[PoolState, Demand]) -> None:
    state, demand = case
    found = victims(state, demand)
    if found is None:
        return
    tree = tree_of(state)
    assert is_legal_sequence(tree, tuple(found))
    assert fits(after_steps(state, found), demand)
    fewer = (subset for size in range(len(found)) for subset in combinations(found, size))
    assert not any(is_legal_sequence(tree, steps) and fits(after_steps(state, steps), demand) for steps in fewer)
