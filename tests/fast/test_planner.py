"""The planner's victims are the reference's, step by step, on caches of a thousand entries."""

from collections.abc import Sequence

import numpy as np
import pytest
from tests.fast.random_caches import mamba2, pin, random_needed, random_pool, swa2, tri

from poolproof_fast.abstraction import abstraction
from poolproof_fast.planner import has_kept_ancestor, parent_positions
from poolproof_fast.pool import FastPool
from poolproof_fast.prefix_cache import Victims
from poolproof_fast.question import Needed
from poolproof_reference.reserve import victims as reference_victims
from poolproof_spec.demand import Demand
from poolproof_spec.fits import fits
from poolproof_spec.geometry import Geometry
from poolproof_spec.outcome import Step
from poolproof_spec.state import Hold, PoolState
from poolproof_spec.steps import after_free, freed_by, policy_order, spared, tree_of
from poolproof_spec.units import VirtualId

KINDS = ("leaf", "tombstone", "state")
PINS = ["nothing", "gate", "flight", "both"]


class Naive:
    """What `reserve.victims` does, with what each step frees looked up once: no node has two steps in the order."""

    def __init__(self, state: PoolState) -> None:
        tree = tree_of(state)
        self.state, self.order = state, policy_order(tree)
        self.freed = {step: freed_by(tree, step) for step in self.order}

    def fits_after(self, steps: Sequence[Step], demand: Demand) -> bool:
        freed: list[list[VirtualId]] = [[], [], []]
        for step in steps:
            hold = self.freed[step]
            for role, ids in zip(freed, (hold.ids, hold.swa_ids, hold.state_ids), strict=True):
                role += ids
        hold = Hold(name="", ids=tuple(freed[0]), swa_ids=tuple(freed[1]), state_ids=tuple(freed[2]))
        return fits(after_free(self.state, hold), demand)

    def victims(self, demand: Demand) -> list[Step] | None:
        low, high = 0, len(self.order)
        if not self.fits_after(self.order, demand):
            return None
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.fits_after(self.order[:middle], demand) else (middle + 1, high)
        kept = self.order[:low]
        for step in reversed(self.order[:low]):
            if step in kept and self.fits_after(fewer := spared(kept, step), demand):
                kept = fewer
        return kept


def steps_of(pool: FastPool, chosen: Victims | None) -> list[Step] | None:
    if chosen is None:
        return None
    return [
        Step(kind=KINDS[kind], key=pool.cache.key_of(node))  # type: ignore[arg-type]
        for kind, node in zip(chosen.kind.tolist(), chosen.node.tolist(), strict=True)
    ]


def demand_of(needed: Needed, may_wait: bool) -> Demand:
    full, swa, state = needed
    return Demand(full_pages=full, swa_pages=swa, state_pages=state, may_wait=may_wait)


def check(pool: FastPool, generator: np.random.Generator, demands: int, most: int) -> list[list[Step] | None]:
    """The same victims for random demands; what they were."""
    naive, found = Naive(abstraction(pool)), []
    for _ in range(demands):
        needed, may_wait = random_needed(pool, generator, most), bool(generator.random() < 0.5)
        found.append(steps_of(pool, pool.reclaim.planner.plan(pool.reclaim.question(needed, may_wait))))
        assert found[-1] == naive.victims(demand_of(needed, may_wait)), (needed, may_wait)
    return found


@pytest.mark.parametrize("how", PINS)
@pytest.mark.parametrize("geometry", [tri(2600, 500), tri(3000, 300, 5), swa2(2600), mamba2(2600, 600)])
def test_large_caches(geometry: Geometry, how: str) -> None:
    generator = np.random.default_rng(geometry.total_bytes)
    pool = random_pool(geometry, seed=geometry.total_bytes, entries=1000)
    assert pool.cache.entry_count >= 800
    pin(pool, generator, how)
    found = check(pool, generator, demands=5, most=120)
    assert max(len(steps) for steps in found if steps is not None) > 8


@pytest.mark.parametrize("how", PINS)
def test_many_small_caches(how: str) -> None:
    seen: set[str] = set()
    for seed in range(40):
        generator = np.random.default_rng(seed)
        geometry = [tri(60, 20), tri(60, 20, 4), swa2(60), mamba2(60, 25)][seed % 4]
        pool = random_pool(geometry, seed, entries=30)
        pin(pool, generator, how)
        for steps in check(pool, generator, demands=8, most=70):
            seen |= {"none"} if steps is None else {step.kind for step in steps} | {f"{min(len(steps), 3)} steps"}
    expected = {"none", "leaf", "tombstone", "0 steps", "1 steps", "2 steps", "3 steps"}
    assert seen >= expected | (set() if how == "nothing" else {"state"})


def test_the_naive_twin_is_the_reference() -> None:
    for seed in range(12):
        generator = np.random.default_rng(seed)
        pool = random_pool(tri(40, 12), seed, entries=14)
        pin(pool, generator, PINS[seed % 4])
        state = abstraction(pool)
        for _ in range(6):
            demand = demand_of(random_needed(pool, generator, 40), bool(generator.random() < 0.5))
            assert Naive(state).victims(demand) == reference_victims(state, demand)


def test_planning_changes_nothing() -> None:
    pool = random_pool(tri(60, 20), 3, entries=30)
    pin(pool, np.random.default_rng(3), "flight")
    before = abstraction(pool, with_payloads=True)
    pool.reclaim.planner.plan(pool.reclaim.question((60, 60, 5), False))
    assert abstraction(pool, with_payloads=True) == before


def test_parents_are_found_among_the_victims() -> None:
    rows = [(0, 7, 1, 1, 0, 5), (0, 9, 1, 1, 0, 0), (0, 5, 1, 1, 0, 4), (0, 4, 1, 1, 0, 2), (1, 2, 0, 3, 0, -1)]
    chosen = Victims(np.array(rows, dtype=np.int64).T)
    parents = parent_positions(chosen)
    assert parents.tolist() == [2, -1, 3, -1, -1]
    kept, rest = np.ones(5, dtype=np.bool_), np.array([2, 1, 0])
    assert has_kept_ancestor(kept, rest, parents).tolist() == [True, False, True]
    assert has_kept_ancestor(kept, np.array([3, 2, 1, 0]), parents).tolist() == [False] * 4
