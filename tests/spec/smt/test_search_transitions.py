"""Agreement (b): what the encoding makes of a history is what pools make of it, on ints and on solver terms alike."""

from typing import Any

import msgspec
import pytest
import z3

from poolproof_conformance.policy_pools import PolicyAdapter, PolicyPool
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_reference.joint_pool import JointPool
from poolproof_spec.arithmetic import INTEGERS
from poolproof_spec.demand import demand_of
from poolproof_spec.outcome import Done, Granted, Rejected
from poolproof_spec.policies import View, fits_at, view_of
from poolproof_spec.policies_known import POLICIES
from poolproof_spec.smt.concretise import Concrete, concretise
from poolproof_spec.smt.histories import CLOSE_GATE, FREE, FREE_WINDOW, LAUNCH, LOCK, UNLOCK_WINDOW, Script, Shape
from poolproof_spec.smt.search import symbolic_script
from poolproof_spec.smt.terms import TERMS
from poolproof_spec.smt.transitions import Situation, situation
from poolproof_spec.steps import policy_order, tree_of

from .random_scripts import covered

HISTORIES = 150


def prefix(script: Script, length: int) -> Script:
    """The first operations alone."""
    return script._replace(kinds=script.kinds[:length], sizes=script.sizes[:length], refs=script.refs[:length])


def without_missing_steps(now: Situation) -> tuple[Any, ...]:
    """Stages and kinds of the steps that there are."""
    kept = [index for index, legal in enumerate(now.legal) if legal]
    stages = (now.view.stages[0], *(now.view.stages[index + 1] for index in kept))
    return stages, tuple(now.view.victims[index] for index in kept)


def seen(pool: JointPool, concrete: Concrete, anchored: tuple[str, ...]) -> View:
    """What a policy would see of the pool."""
    state = pool.observe()
    demand = demand_of(state, concrete.operations[-1])
    assert demand is not None
    spans = pool.pool.spans if isinstance(pool, PolicyPool) else [(0, 0) for _ in state.members]
    return view_of(state, demand, spans, anchored)


def check_every_step(adapter: ReferenceAdapter, shape: Shape, script: Script, *, with_spans: bool) -> None:
    """After each operation the pool is where the encoding says."""
    concrete = concretise(shape, script)
    adapter.build(concrete.geometry)
    pool = adapter.pool
    assert pool is not None
    for length, operation in enumerate((None, *concrete.operations[:-1])):
        if operation is not None:
            assert isinstance(adapter.apply(operation), Done | Granted), operation
        now = situation(shape, prefix(script, length), INTEGERS)
        assert now.possible
        view = seen(pool, concrete, shape.anchored)
        stages, victims = without_missing_steps(now)
        assert view.stages == stages
        assert view.victims == victims
        assert view.total_bytes == now.view.total_bytes
        for ours, theirs, held in zip(now.view.members, view.members, view.stages[0], strict=True):
            assert ours[:6] == theirs[:6]
            if with_spans and held.live and ours.kind == "float":
                assert ours[6:] == theirs[6:]


def test_every_transition_is_the_references() -> None:
    seen_kinds: set[int] = set()
    for shape, script, _ in covered(POLICIES["tight"], HISTORIES, seed=1):
        seen_kinds |= {*script.kinds}
        check_every_step(ReferenceAdapter(), shape, script, with_spans=False)
    assert seen_kinds == set(range(10))


@pytest.mark.parametrize("name", ["component-shortfall", "quota"])
def test_every_transition_is_that_of_a_pool_with_one_sided_floats(name: str) -> None:
    seen_kinds: set[int] = set()
    for shape, script, _ in covered(POLICIES[name], HISTORIES, seed=2):
        seen_kinds |= {*script.kinds}
        check_every_step(PolicyAdapter(name), shape, script, with_spans=True)
    assert {FREE, FREE_WINDOW, LOCK} < seen_kinds
    assert not {CLOSE_GATE, LAUNCH, UNLOCK_WINDOW} & seen_kinds


@pytest.mark.parametrize("name", POLICIES)
def test_the_demand_comes_to_what_the_policy_says_on_ints(name: str) -> None:
    policy = POLICIES[name]
    granted = 0
    for shape, script, now in covered(policy, HISTORIES, seed=3):
        choice = policy.choose(now.view, now.ask, INTEGERS)
        if not choice.exact:
            continue
        adapter, concrete = PolicyAdapter(name), concretise(shape, script)
        adapter.build(concrete.geometry)
        for operation in concrete.operations[:-1]:
            adapter.apply(operation)
        outcome = adapter.apply(concrete.operations[-1])
        assert isinstance(outcome, Granted | Rejected)
        assert isinstance(outcome, Granted) == bool(choice.granted)
        assert len(outcome.steps) == sum(now.legal[: choice.victims])
        granted += bool(choice.granted)
    assert granted


@pytest.mark.parametrize("name", POLICIES)
def test_terms_and_ints_read_the_same(name: str) -> None:
    policy = POLICIES[name]
    for shape, script, now in covered(policy, 8, seed=4, longest=2):
        length = len(script.kinds)
        symbols = symbolic_script(length)
        symbolic = situation(shape, symbols, TERMS)
        values = substitution(symbols, script)
        assert value(symbolic.possible, values) is True
        numbers = [n for stage in symbolic.view.stages for held in stage for n in held]
        expected = [n for stage in now.view.stages for held in stage for n in held]
        assert [value(n, values) for n in numbers] == expected
        assert [value(legal, values) for legal in symbolic.legal] == list(now.legal)
        ours, theirs = policy.choose(symbolic.view, symbolic.ask, TERMS), policy.choose(now.view, now.ask, INTEGERS)
        assert [value(part, values) for part in ours] == list(theirs)
        for stage in range(len(now.view.stages)):
            fits = fits_at(symbolic.view, stage, symbolic.ask, TERMS)
            assert value(fits, values) == fits_at(now.view, stage, now.ask, INTEGERS)


def substitution(symbols: Script, script: Script) -> list[tuple[Any, Any]]:
    terms = (*symbols.kinds, *symbols.sizes, *symbols.refs, *symbols[3:])
    numbers = (*script.kinds, *script.sizes, *script.refs, *script[3:])
    return [(term, z3.IntVal(number)) for term, number in zip(terms, numbers, strict=True)]


def value(term: Any, values: list[tuple[Any, Any]]) -> int | bool:
    """The term with numbers put in."""
    if not z3.is_expr(term):
        return bool(term) if isinstance(term, bool) else int(term)
    result = z3.simplify(z3.substitute(term, *values))
    return result.as_long() if z3.is_int_value(result) else bool(z3.is_true(result))


def test_views_and_the_policy_order_come_from_one_state() -> None:
    for shape, script, _ in covered(POLICIES["tight"], 5, seed=5):
        adapter, concrete = ReferenceAdapter(), concretise(shape, script)
        adapter.build(concrete.geometry)
        for operation in concrete.operations[:-1]:
            adapter.apply(operation)
        assert adapter.pool is not None
        state = adapter.pool.observe()
        view = seen(adapter.pool, concrete, ())
        assert view.victims == tuple(step.kind for step in policy_order(tree_of(state)))
        assert msgspec.to_builtins(concrete.geometry)["total_bytes"] == view.total_bytes
