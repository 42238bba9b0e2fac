"""[T5], [T6] on random well-formed states: where the premise is reached the demand fits, and it is reached often."""

from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from poolproof_spec.demand import Demand
from poolproof_spec.fits import fits
from poolproof_spec.geometry import Geometry, Role, layout
from poolproof_spec.quotas import cross_quota_reached, freed_pages, funding_bytes, own_quota_reached
from poolproof_spec.state import Hold, PoolState
from poolproof_spec.steps import after_free

from .builders import hold, ids, pool
from .random_states import random_frees, random_geometry, random_state

RANDOM = st.randoms(use_true_random=False)
ROLES: tuple[Role, ...] = ("full", "swa", "state")


def demand_for(pages: dict[Role, int], *, may_wait: bool = True) -> Demand:
    return Demand(
        full_pages=pages.get("full", 0),
        swa_pages=pages.get("swa", 0),
        state_pages=pages.get("state", 0),
        may_wait=may_wait,
    )


def own_quota_case(rng: Random) -> tuple[PoolState, PoolState, Demand]:
    """Whatever is pinned: some pages freed, and the most that T5 then promises of some roles."""
    geometry = random_geometry(rng, largest_page=rng.choice((2, 4, 7)), pages=rng.choice((4, 8, 14)))
    start = random_state(rng, geometry)
    now = after_free(start, random_frees(rng, start, rng.choice((0.2, 0.5, 0.8))))
    most: dict[Role, int] = {}
    for member, freed in zip(geometry.members, freed_pages(start, now), strict=True):
        most[member.role] = min(most.get(member.role, freed), freed)
    chosen: dict[Role, int] = {role: count for role, count in most.items() if rng.random() < 0.8}
    return start, now, demand_for(chosen, may_wait=rng.random() < 0.5)


def assert_own_quota(rng: Random) -> bool:
    start, now, demand = own_quota_case(rng)
    reached = own_quota_reached(start, now, demand) and any(demand.pages(role) for role in ROLES)
    if reached:
        assert fits(now, demand), (start, now, demand)
    return reached


@given(RANDOM)
@settings(max_examples=200)
def test_own_quota_reached_means_it_fits(rng: Random) -> None:
    assert_own_quota(rng)


def test_own_quota_reached_means_it_fits_on_many_more() -> None:
    rng = Random(5)
    assert sum(assert_own_quota(rng) for _ in range(4000)) > 1000


def cross_quota_cases(rng: Random) -> list[tuple[PoolState, PoolState, Demand]]:
    """Nothing pinned, some pages freed: demands of others, each a page more than the last, while bytes pay for them."""
    geometry = random_geometry(rng, fewest=2, largest_page=rng.choice((2, 4, 7)), pages=rng.choice((4, 8, 14)))
    start = random_state(rng, geometry, pins=rng.random() < 0.3)
    start = replace(start, members=tuple(replace(member, gate_open=True) for member in start.members))
    now = after_free(start, random_frees(rng, start, rng.choice((0.2, 0.5, 0.8))))
    payer = rng.randrange(len(geometry.members))
    paid = list(freed_pages(start, now))[payer] * geometry.members[payer].page_bytes
    others = [member.role for member in geometry.members if member.role != geometry.members[payer].role]
    pages: dict[Role, int] = {}
    cases = []
    for _ in range(12 if others else 0):
        role = rng.choice(others)
        more = {**pages, role: pages.get(role, 0) + 1}
        if funding_without_slack(geometry, demand_for(more)) <= paid:
            pages = more
            cases.append((start, now, demand_for(pages)))
    return cases


def funding_without_slack(geometry: Geometry, demand: Demand) -> int:
    return sum(demand.pages(member.role) * member.page_bytes for member in geometry.members)


def assert_cross_quota(rng: Random) -> Counter[str]:
    seen: Counter[str] = Counter()
    for start, now, demand in cross_quota_cases(rng):
        payer = cross_quota_reached(start, now, demand)
        if payer is not None:
            assert fits(now, demand), (start, now, demand)
            seen["reached"] += 1
            seen["reached with a float"] += len(start.geometry.members) > 2
            seen["paid by a float"] += start.geometry.members[start.geometry.index_of(payer)].kind == "float"
            seen["payer is empty now"] += not now.member(payer).bindings
    return seen


@given(RANDOM)
@settings(max_examples=200)
def test_cross_quota_reached_means_it_fits(rng: Random) -> None:
    assert_cross_quota(rng)


def test_cross_quota_reached_means_it_fits_on_many_more() -> None:
    rng, seen = Random(6), Counter[str]()
    for _ in range(12000):
        seen += assert_cross_quota(rng)
    assert seen["reached"] > 1000
    assert seen["reached with a float"] > 200
    assert seen["paid by a float"] > 50
    assert seen["payer is empty now"] > 50


GRID = layout("tri", 12, STATE=1, SWA=3, FULL=1)
"""STATE [3, 12), SWA [1, 4) in pages of 3 bytes, FULL [3, 12)."""
FULL_HOLDS = hold("r", [3, 4, 5], swa=False, states=[3, 4, 5])
PACKED = pool(GRID, holds=[replace(FULL_HOLDS, swa_ids=ids(3))])
"""STATE pages 3-5, SWA page 2, FULL pages 9-11: no byte of [3, 12) is free."""
ONE_MORE = Demand(full_pages=1)


def test_the_grid_slack_of_a_float_is_needed() -> None:
    """A freed state's byte equals the demanded page's, but the float cannot move by one byte."""
    now = after_free(PACKED, Hold(name="", state_ids=ids(3)))
    assert list(freed_pages(PACKED, now)) == [1, 0, 0]
    assert funding_without_slack(GRID, ONE_MORE) == 1
    assert not fits(now, ONE_MORE)
    assert funding_bytes(now, ONE_MORE, 0) == 1 + 2
    assert cross_quota_reached(PACKED, now, ONE_MORE) is None


def test_with_the_slack_paid_it_fits() -> None:
    now = after_free(PACKED, Hold(name="", state_ids=ids(3, 4, 5)))
    assert cross_quota_reached(PACKED, now, ONE_MORE) == "STATE"
    assert fits(now, ONE_MORE)


def test_cross_quota_speaks_of_nothing_pinned() -> None:
    now = after_free(PACKED, Hold(name="", state_ids=ids(3, 4, 5)))
    shut = replace(now, members=tuple(replace(member, gate_open=False) for member in now.members))
    assert cross_quota_reached(PACKED, shut, ONE_MORE) is None


def test_cross_quota_speaks_of_demanded_members_that_hold_a_page() -> None:
    bare = after_free(PACKED, Hold(name="", swa_ids=ids(3)))
    now = after_free(bare, Hold(name="", state_ids=ids(3, 4, 5)))
    assert cross_quota_reached(bare, now, Demand(swa_pages=1)) is None
    assert cross_quota_reached(PACKED, replace(now, free_token_ids=()), ONE_MORE) is None


def test_own_quota_counts_every_demanded_member() -> None:
    both = Demand(full_pages=1, swa_pages=1)
    full_only = after_free(PACKED, Hold(name="", ids=ids(4)))
    assert not own_quota_reached(PACKED, full_only, both)
    assert own_quota_reached(PACKED, full_only, Demand(full_pages=1))
    assert own_quota_reached(PACKED, after_free(PACKED, Hold(name="", ids=ids(3), swa_ids=ids(3))), both)
    assert own_quota_reached(PACKED, PACKED, Demand())
