"""The search: what it finds is smallest and reproduces, what it does not find is bounded, what is open is unknown."""

from itertools import product

import pytest

from poolproof_conformance.policy_pools import PolicyAdapter
from poolproof_conformance.policy_search import shows
from poolproof_spec.arithmetic import INTEGERS
from poolproof_spec.policies_known import POLICIES, DemandKind
from poolproof_spec.smt import search as searching
from poolproof_spec.smt.histories import INSERT, Script, shapes
from poolproof_spec.smt.search import SOUGHT, Found, SearchResult, breaks, search
from poolproof_spec.smt.solver import Budget, Solver
from poolproof_spec.smt.transitions import situation


def searched(
    name: str, code: str, layout: str, demand: DemandKind, bound: int = 2, budget: Budget | None = None
) -> SearchResult:
    policy = POLICIES[name]
    adapter = PolicyAdapter(name)
    with Solver("z3") as solver:
        return search(
            policy,
            code,
            bound,
            solver,
            lambda found: shows(adapter, found, SOUGHT[code]),
            layouts=[layout],
            demands=[demand],
            budget=budget,
        )


CASES: list[tuple[str, str, str, DemandKind, int]] = [
    ("component-shortfall", "P1", "swa2", "tokens", 256),
    ("component-shortfall", "P1", "tri", "states", 224),
    ("component-shortfall", "P2", "tri", "tokens", 224),
    ("whole-cache", "P3", "swa2", "tail", 128),
    ("quota", "P1", "mamba2", "decode", 208),
    ("quota", "P1", "tri", "tokens", 528),
    ("quota", "P2", "swa2", "decode", 256),
    ("quota", "P3", "mamba2", "tokens", 192),
]


@pytest.mark.parametrize(("name", "code", "layout", "demand", "arena_bytes"), CASES)
def test_a_wrong_policy_has_a_counterexample_of_two_operations(
    name: str, code: str, layout: str, demand: DemandKind, arena_bytes: int
) -> None:
    result = searched(name, code, layout, demand)
    assert result.verdict == "REFUTED"
    assert result.found is not None
    assert len(result.found.concrete.operations) == 2
    assert result.found.arena_bytes == arena_bytes
    assert result.errors == []
    assert result.doubts == []


@pytest.mark.parametrize("code", SOUGHT)
@pytest.mark.parametrize(("layout", "demand"), [("swa2", "tail"), ("mamba2", "states"), ("tri", "tail")])
def test_tight_has_none_up_to_the_bound(code: str, layout: str, demand: DemandKind) -> None:
    assert searched("tight", code, layout, demand).verdict == "BOUNDED(2)"


def test_no_smaller_arena_has_one() -> None:
    """By trying all small numbers."""
    policy = POLICIES["whole-cache"]
    found = searched("whole-cache", "P3", "swa2", "tail").found
    assert found is not None
    weights = []
    for shape in shapes(policy, ["swa2"]):
        for token_pages, window, length, size in product(range(1, 5), range(1, 4), range(1, 6), range(1, 8)):
            for extra in range(size + 1):
                script = Script([INSERT], [length], [0], token_pages, 0, window, size, extra)
                now = situation(shape, script, INTEGERS)
                if breaks(policy, "P3", now, INTEGERS):
                    weights.append((now.view.total_bytes, length + size + extra + window))
    assert min(weights) == (found.arena_bytes, searching.weight_of(found))


def test_a_model_that_does_not_reproduce_is_counted_and_the_search_goes_on() -> None:
    tried: list[Found] = []

    def third_time(found: Found) -> bool:
        tried.append(found)
        return len(tried) == 3

    with Solver("z3") as solver:
        result = search(POLICIES["whole-cache"], "P3", 2, solver, third_time, layouts=["swa2"])
    assert result.verdict == "REFUTED"
    assert result.errors == tried[:2]
    assert result.found == tried[2]
    assert len({(found.shape, str(found.script)) for found in tried}) == 3
    assert tried[0].arena_bytes <= tried[1].arena_bytes <= tried[2].arena_bytes


def test_an_encoding_of_which_nothing_reproduces_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MOST_ERRORS", 3)
    with Solver("z3") as solver:
        result = search(POLICIES["whole-cache"], "P3", 2, solver, lambda found: False, layouts=["swa2"])
    assert result.verdict == "ERROR(3 models do not reproduce)"
    assert result.found is None


def test_too_small_a_budget_is_unknown() -> None:
    result = searched("tight", "P2", "tri", "tail", budget=Budget(z3_units=10))
    assert result.verdict == "UNKNOWN(resource limit of 10 reached)"
    assert result.found is None


def test_a_demand_that_a_policy_does_not_have_is_an_error() -> None:
    assert searched("tight", "P1", "swa2", "decode").verdict.startswith("ERROR(the policy has no such demand")


def test_other_properties_are_not_searched_for() -> None:
    shape = shapes(POLICIES["tight"])[0]
    now = situation(shape, Script([], [], [], 4, 0, 1, 1, 1), INTEGERS)
    with pytest.raises(ValueError, match="no search for P5; there is one for P1, P2, P3"):
        breaks(POLICIES["tight"], "P5", now, INTEGERS)
