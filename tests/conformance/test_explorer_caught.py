"""Exhaustion of a small configuration catches every wrong pool by the rule that names it; here those quickly caught."""

import pytest

from poolproof_conformance.explorer.caught import CAUGHT, LARGER, catch, main
from poolproof_conformance.faulty.registry import FAULTY

FAST = [name for name, where in CAUGHT.items() if where.operations <= 2]


def test_each_wrong_pool_is_in_the_table_once() -> None:
    assert sorted([*CAUGHT, *LARGER]) == sorted(wrong.name for wrong in FAULTY)


@pytest.mark.parametrize("name", FAST)
def test_caught(name: str) -> None:
    found = catch(name)
    assert found is not None
    assert found[0] == CAUGHT[name].operations


def test_a_miss_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("poolproof_conformance.explorer.caught.CAUGHT", {"drops-inserts": CAUGHT["closes-group"]})
    assert main([]) == 1
    assert "not as the table says" in capsys.readouterr().out
