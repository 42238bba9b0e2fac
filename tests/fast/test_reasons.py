"""The reason of every refusal is the specification's honest reason, in the state in which it was given."""

import numpy as np
import pytest
from tests.fast.random_caches import mamba2, pin, random_needed, random_pool, swa2, tri

from poolproof_fast.abstraction import abstraction
from poolproof_fast.grants import Refusal
from poolproof_fast.pool import FastPool
from poolproof_fast.reasons import failing_bound
from poolproof_spec.demand import Demand
from poolproof_spec.fits import fits
from poolproof_spec.geometry import Geometry
from poolproof_spec.outcome import Blocked, Impossible
from poolproof_spec.verdict import failing_bound as bound_by_the_specification
from poolproof_spec.verdict import honest_reason

GEOMETRIES = [tri(50, 16), tri(50, 16, 4), swa2(50), mamba2(50, 20)]


def told(reason: Impossible | Blocked | None) -> str:
    if isinstance(reason, Blocked):
        return "+".join(reason.by)
    return "none" if reason is None else reason.bound


def refusals(geometry: Geometry, seed: int, how: str) -> set[str]:
    """Refuse random demands in one random state; what the reasons were."""
    generator, seen = np.random.default_rng(seed), set()
    pool = random_pool(geometry, seed, entries=22)
    if seed % 2:
        pool.alloc(pool.available_pages())
    pin(pool, generator, how)
    state = abstraction(pool)
    for _ in range(6):
        needed, may_wait = random_needed(pool, generator, 60), bool(generator.random() < 0.4)
        full, swa, states = needed
        demand = Demand(full_pages=full, swa_pages=swa, state_pages=states, may_wait=may_wait)
        if fits(state, demand):
            continue
        reason = pool.reclaim.refuse(needed, may_wait).reason
        assert reason == honest_reason(state, demand), (needed, may_wait)
        seen.add(told(reason))
    assert abstraction(pool) == state
    return seen


@pytest.mark.parametrize("how", ["nothing", "gate", "flight", "both"])
def test_random_states(how: str) -> None:
    seen: set[str] = set()
    for seed in range(48):
        seen |= refusals(GEOMETRIES[seed % 4], seed, how)
    expected = {
        "nothing": {"locks"},
        "gate": {"gates", "gates+locks"},
        "flight": {"events", "events+locks"},
        "both": {"events", "gates", "events+gates", "gates+locks"},
    }[how]
    assert seen >= {"none", "ids", "bytes", "locks", *expected}


def test_a_bound_is_found_from_totals_alone() -> None:
    for seed in range(16):
        pool = random_pool(GEOMETRIES[seed % 4], seed, entries=12)
        generator, state, store = np.random.default_rng(seed), abstraction(pool), pool.store
        held = [m.live - pool.cache.cached[role] for m, role in zip(store.members, store.role_of, strict=True)]
        for _ in range(10):
            needed = random_needed(pool, generator, 90)
            demand = Demand(full_pages=needed[0], swa_pages=needed[1], state_pages=needed[2])
            found = failing_bound(store.rule, needed, held, (store.tokens.size, store.states.size))
            assert found == bound_by_the_specification(state, demand)


def test_a_reason_is_of_the_moment_of_refusal() -> None:
    pool = FastPool(swa2(4))
    held = pool.alloc(3)
    assert held
    refusal = pool.alloc(2)
    assert isinstance(refusal, Refusal)
    pool.free(held.ids)
    assert pool.alloc(1)
    assert refusal.reason == Impossible(bound="bytes", where="FULL", needed=11, available=8)
    assert refusal.reason is refusal.reason
