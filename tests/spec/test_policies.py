"""Policies on ints: the cases for which each is known, and what must hold of all of them."""

import random

import pytest

from poolproof_conformance.policy_pools import PolicyAdapter
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.seed_cases import EXPECTED, run_seed_case, seed_cases
from poolproof_spec.arithmetic import INTEGERS
from poolproof_spec.demand import Demand
from poolproof_spec.fits import fits
from poolproof_spec.policies import Ask, ask_of, at, first, fits_at, ids_of, tight, view_of, whole_cache
from poolproof_spec.policies_known import POLICIES, UnknownPolicyError, policy_named
from poolproof_spec.steps import after_steps, policy_order, tree_of

from .random_states import random_demand, random_geometry, random_state

CASES = {case.name: case for case in seed_cases()}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("name", "when"), [("component-shortfall", "before"), ("quota", "since"), ("tight", "since")])
def test_the_seed_cases_cost_what_they_are_known_to_cost(name: str, when: str, case: str) -> None:
    result = run_seed_case(PolicyAdapter(name), CASES[case])
    assert (result.granted, result.evicted_tokens) == EXPECTED[when][case]


def test_the_whole_cache_goes_for_what_never_fits() -> None:
    result = run_seed_case(PolicyAdapter("whole-cache"), CASES["tri-200"])
    assert (result.granted, result.evicted_tokens) == (False, 96)


def test_the_sweep_of_a_view_is_the_sweep_of_the_state() -> None:
    draw = random.Random(7)
    granted = set()
    for _ in range(300):
        geometry = random_geometry(draw)
        state = random_state(draw, geometry)
        demand: Demand = random_demand(draw, state)
        view, ask = view_of(state, demand, [(0, 0) for _ in state.members]), ask_of(demand)
        order = policy_order(tree_of(state))
        for stage in range(len(order) + 1):
            assert fits_at(view, stage, ask) == fits(after_steps(state, order[:stage]), demand)
        choice = tight(view, ask, INTEGERS)
        granted.add(choice.granted)
        enough = [fits_at(view, stage, ask) for stage in range(len(order) + 1)]
        assert choice.granted == any(enough)
        assert choice.victims == (enough.index(True) if any(enough) else 0)
        assert whole_cache(view, ask, INTEGERS).victims == (enough.index(True) if any(enough) else len(order))
    assert granted == {True, False}


def test_helpers() -> None:
    assert first([False, True, True], 9, INTEGERS) == 1
    assert first([False], 9, INTEGERS) == 9
    assert first([False, True], 9, INTEGERS, offset=3) == 4
    assert at([True, False], 0, INTEGERS)
    assert not at([True, False], 1, INTEGERS)
    assert Ask(1, 2, 3, 4).pages("swa") == 2


def test_a_member_that_is_not_there_has_no_ids() -> None:
    adapter, case = ReferenceAdapter(), CASES["fullswa-6"]
    adapter.build(case.geometry)
    view = view_of(adapter.observe(), Demand(), [(0, 0), (0, 0)])
    assert ids_of(view, "state") == 0
    assert ids_of(view, "full") == 199
    assert view.freed("state", 0) == 0
    assert view.place("state") is None


def test_names() -> None:
    assert policy_named("tight").release is None
    assert {name for name, policy in POLICIES.items() if policy.release} == {"component-shortfall", "quota"}
    with pytest.raises(UnknownPolicyError) as error:
        policy_named("tihgt")
    assert error.value.found == "unknown policy 'tihgt'; did you mean tight?"
    assert error.value.fix == "known: component-shortfall, whole-cache, quota, tight"
