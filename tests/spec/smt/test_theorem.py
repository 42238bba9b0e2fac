"""Verdicts: which are green, which is worse."""

import pytest

from poolproof_spec.smt.theorem import WORST_FIRST, Kind, Theorem, Verdict, worst


def test_only_proved_and_bounded_are_green() -> None:
    assert [kind for kind in WORST_FIRST if Verdict(kind).green] == ["BOUNDED", "PROVED"]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["PROVED", "PROVED"], "PROVED"),
        (["PROVED", "BOUNDED"], "BOUNDED"),
        (["BOUNDED", "TIMEOUT", "PROVED"], "TIMEOUT"),
        (["UNKNOWN", "TIMEOUT"], "UNKNOWN"),
        (["UNKNOWN", "VACUOUS"], "VACUOUS"),
        (["VACUOUS", "REFUTED", "UNKNOWN"], "REFUTED"),
        (["REFUTED", "ERROR"], "ERROR"),
    ],
)
def test_a_whole_is_as_its_worst_part(kinds: list[Kind], expected: Kind) -> None:
    assert worst(map(Verdict, kinds)).kind == expected


def test_of_nothing_nothing_is_known() -> None:
    assert worst([]) == Verdict("UNKNOWN", "nothing was asked")


def test_a_verdict_tells_its_bound_or_reason() -> None:
    assert str(Verdict("PROVED")) == "PROVED"
    assert str(Verdict("UNKNOWN", "least: incomplete")) == "UNKNOWN(least: incomplete)"
    assert str(Theorem("T", "c", "b", tuple, bounded=4).proved) == "BOUNDED(4)"
    assert str(Theorem("T", "c", "b", tuple).proved) == "PROVED"
