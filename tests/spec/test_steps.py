"""Legality, the policy order against a naive twin, what steps free, and what can be spared."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolproof_spec.outcome import Step, StepKind
from poolproof_spec.state import Hold
from poolproof_spec.steps import (
    Tree,
    after_free,
    after_group,
    after_step,
    after_steps,
    age,
    freed_by,
    has_children,
    is_legal,
    leaf_order,
    policy_order,
    spared,
    tree_of,
)

from .builders import entry, hold, ids, key, pool, step, tri
from .random_states import random_tree

RANDOM = st.randoms(use_true_random=False)
KINDS: tuple[StepKind, ...] = ("leaf", "tombstone", "state")


def naive_order(tree: Tree, allowed: frozenset[Step] | None = None) -> list[Step]:
    """Again and again: sort all steps by kind and age, take the first that is legal now."""
    order: list[Step] = []
    while True:
        steps = [Step(kind=kind, key=one.key) for kind in KINDS for one in sorted(tree.values(), key=age)]
        legal = [one for one in steps if is_legal(tree, one) and (allowed is None or one in allowed)]
        if not legal:
            return order
        order.append(legal[0])
        tree = after_step(tree, legal[0])


@given(RANDOM)
@settings(max_examples=400)
def test_policy_order_is_the_naive_one(rng: Random) -> None:
    tree = random_tree(rng)
    assert policy_order(tree) == naive_order(tree)
    assert leaf_order(tree) == [one for one in naive_order(tree) if one.kind == "leaf"]


@given(RANDOM)
@settings(max_examples=400)
def test_policy_order_of_allowed_steps_is_the_naive_one(rng: Random) -> None:
    tree = random_tree(rng)
    steps = [Step(kind=kind, key=one) for one in tree for kind in KINDS]
    allowed = frozenset(one for one in steps if rng.random() < 0.5)
    assert policy_order(tree, allowed) == naive_order(tree, allowed)


def test_the_twin_is_tried_on_trees_that_ask_for_every_kind() -> None:
    rng = Random(8)
    seen: set[str] = set()
    for _ in range(2000):
        tree = random_tree(rng, nodes=10)
        order = policy_order(tree)
        assert order == naive_order(tree)
        seen |= {one.kind for one in order}
        seen |= {"parent" for one in order if one.kind == "leaf" and has_children(tree, one.key)}
    assert seen == {*KINDS, "parent"}


def test_order_is_leaves_then_tombstones_then_states_oldest_first() -> None:
    kept = (1, 0, 0)
    tree = tree_of(
        pool(
            tri(40),
            entry(key(1), [1], state=1, locks=kept, last_use=5),
            entry(key(1, 2), [2], last_use=5),
            entry(key(3), [3], locks=kept, last_use=1),
            entry(key(4), [4], swa=False, state=2, locks=kept, last_use=0),
            entry(key(5), [5], last_use=4),
            entry(key(5, 6), [6], last_use=4),
        )
    )
    assert policy_order(tree) == [
        step("leaf", 5, 6),
        step("leaf", 5),
        step("leaf", 1, 2),
        step("tombstone", 3),
        step("tombstone", 1),
        step("state", 4),
    ]


Locks = tuple[int, int, int]


@pytest.mark.parametrize(
    ("locks", "swa", "state", "legal"),
    [
        ((0, 0, 0), True, 1, {"leaf", "tombstone", "state"}),
        ((1, 0, 0), True, 1, {"tombstone", "state"}),
        ((1, 1, 0), True, 1, {"state"}),
        ((1, 0, 1), True, 1, set()),
        ((1, 0, 1), True, None, {"tombstone"}),
        ((0, 0, 0), False, None, {"leaf"}),
        ((1, 0, 0), False, 1, {"state"}),
        ((0, 1, 0), True, None, set()),
        ((0, 0, 1), True, 1, set()),
        ((1, 1, 1), True, 1, set()),
    ],
)
def test_legality(locks: Locks, swa: bool, state: int | None, legal: set[str]) -> None:
    tree = tree_of(pool(tri(), entry(key(1), [1], swa=swa, state=state, locks=locks)))
    assert {kind for kind in KINDS if is_legal(tree, step(kind, 1))} == legal
    below = tree_of(pool(tri(), entry(key(1), [1], swa=swa, state=state, locks=locks), entry(key(1, 2), [2])))
    assert {kind for kind in KINDS if is_legal(below, step(kind, 1))} == legal - {"leaf"}


def test_a_step_on_no_node_is_illegal() -> None:
    assert not any(is_legal({}, step(kind, 1)) for kind in KINDS)


def test_what_each_step_frees() -> None:
    tree = tree_of(pool(tri(), entry(key(1, 2), [1, 2], state=3)))
    assert freed_by(tree, step("leaf", 1, 2)) == hold("", [1, 2], states=[3])
    assert freed_by(tree, step("tombstone", 1, 2)) == Hold(name="", swa_ids=ids(1, 2), state_ids=ids(3))
    assert freed_by(tree, step("state", 1, 2)) == Hold(name="", state_ids=ids(3))


def test_a_tombstone_drops_the_state_and_keeps_full() -> None:
    tree = tree_of(pool(tri(), entry(key(1), [1], state=3), entry(key(1, 2), [2])))
    assert after_step(tree, step("tombstone", 1))[key(1)] == entry(key(1), [1], swa=False)
    assert after_step(tree, step("state", 1))[key(1)] == entry(key(1), [1])
    assert set(after_step(tree, step("leaf", 1, 2))) == {key(1)}


def test_after_steps_frees_pages_ids_and_payloads() -> None:
    both = entry(key(1), [1], state=1, last_use=1), entry(key(1, 2), [2], state=2, last_use=1)
    before = pool(tri(), *both, holds=[hold("r", [5])])
    after = after_steps(before, [step("tombstone", 1), step("leaf", 1, 2)])
    assert after.entries == (entry(key(1), [1], swa=False, last_use=1),)
    assert [member.live_ids for member in after.members] == [frozenset(), {5}, {1, 5}]
    assert set(after.free_token_ids) - set(before.free_token_ids) == {2}
    assert set(after.free_state_ids) - set(before.free_state_ids) == {1, 2}
    assert [(name, identifier) for name, identifier, _ in after.payloads] == [("FULL", 1), ("FULL", 5), ("SWA", 5)]
    assert after_steps(before, []) == before


def test_the_group_is_free_past_the_boundary_and_stays_open() -> None:
    before = pool(tri(), holds=[hold("r", [5])], queued=hold("", [1], states=[2]))
    after = after_group(before)
    assert after.group_open
    assert after.queued == Hold(name="")
    assert [member.live_ids for member in after.members] == [frozenset(), {5}, {5}]
    assert 1 in after.free_token_ids
    assert 2 in after.free_state_ids
    assert after_free(before, Hold(name="")) is before


def test_sparing_a_leaf_spares_its_ancestors_leaves_too() -> None:
    steps = [step("leaf", 1, 2, 3), step("leaf", 1, 2), step("leaf", 4), step("leaf", 1), step("tombstone", 5)]
    assert spared(steps, steps[0]) == [step("leaf", 4), step("tombstone", 5)]
    assert spared(steps, steps[1]) == [step("leaf", 1, 2, 3), step("leaf", 4), step("tombstone", 5)]
    assert spared(steps, steps[3]) == [one for one in steps if one != steps[3]]
    assert spared(steps, steps[4]) == steps[:4]


@given(RANDOM)
@settings(max_examples=200)
def test_what_is_left_after_sparing_is_legal_in_its_order(rng: Random) -> None:
    tree = random_tree(rng)
    order = policy_order(tree)
    for kept in order:
        left, now = spared(order, kept), tree
        for one in left:
            assert is_legal(now, one), (tree, kept, one)
            now = after_step(now, one)
