"""Theorems by name."""

import re

import pytest

from poolproof_spec.smt.registry import THEOREMS, TOPICS, UnknownTheoremError, select


def test_names_are_unique_and_say_something() -> None:
    assert sum(map(len, TOPICS)) == len(THEOREMS)
    for name, theorem in THEOREMS.items():
        assert name == theorem.name
        assert re.fullmatch(r"[A-Z]+\d*(-[A-Za-z0-9]+)+", name)
        assert theorem.claim.endswith(".")
        assert theorem.bounds


def test_none_named_is_all() -> None:
    assert select(()) == tuple(THEOREMS.values())


def test_a_tag_stands_for_its_theorems_and_each_comes_once() -> None:
    chosen = select(("T1-sweep-step", "T1", "T1-sweep-step"))
    assert [theorem.name for theorem in chosen] == [name for name in THEOREMS if name.startswith("T1-")]
    assert all(not theorem.name.startswith("T10-") for theorem in chosen)


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(UnknownTheoremError, match="no theorem 'T1-sweep'") as raised:
        select(("T1", "T1-sweep"))
    assert "T1-sweep-step" in raised.value.fix
