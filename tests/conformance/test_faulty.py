"""Test the tester: each pool wrong on purpose is caught by the rule that names its fault, the right one by none."""

from functools import cache

import pytest

from poolproof_conformance.conform import draw_histories
from poolproof_conformance.faulty.histories import HISTORIES
from poolproof_conformance.faulty.hunt import first_findings, hunt
from poolproof_conformance.faulty.registry import FAULTY, Faulty
from poolproof_conformance.generator import History
from poolproof_reference.joint_pool import JointPool
from poolproof_spec.catalogue import PROPERTIES

BY_NAME = {faulty.name: faulty for faulty in FAULTY}


@cache
def corpus() -> tuple[History, ...]:
    """The histories that every wrong pool is held against, drawn once; the same each time."""
    found: list[History] = []
    draw_histories(found.append, traces=1500, seed_number=0)
    return tuple(found)


def named(faulty: tuple[Faulty, ...]) -> list[object]:
    return [pytest.param(wrong, id=wrong.name) for wrong in faulty]


@pytest.mark.parametrize("wrong", named(tuple(wrong for wrong in FAULTY if wrong.name not in HISTORIES)))
def test_random_search_finds_the_fault(wrong: Faulty) -> None:
    rule = wrong.caught_by[0]
    assert hunt(wrong.pool_class, rule, corpus()) is not None, f"{rule} does not find it: {wrong.fault}"


@pytest.mark.parametrize("name", HISTORIES)
def test_history_by_hand_finds_the_fault(name: str) -> None:
    wrong = BY_NAME[name]
    assert wrong.caught_by[0] in first_findings(wrong.pool_class, HISTORIES[name]), wrong.fault
    assert first_findings(JointPool, HISTORIES[name]) == {}, "the right pool goes through the same history unharmed"


def test_the_right_pool_is_not_caught() -> None:
    assert len(corpus()) > 1000
    assert [found for history in corpus() if (found := first_findings(JointPool, history))] == []


def test_every_rule_catches_something() -> None:
    assert {rule.name for rule in PROPERTIES} == {wrong.caught_by[0] for wrong in FAULTY}


def test_names_are_unique_and_rules_exist() -> None:
    assert len(BY_NAME) == len(FAULTY)
    assert {rule for wrong in FAULTY for rule in wrong.caught_by} <= {rule.name for rule in PROPERTIES}
    assert HISTORIES.keys() <= BY_NAME.keys()
    assert len({wrong.pool_class for wrong in BY_NAME.values()}) == len(BY_NAME)
