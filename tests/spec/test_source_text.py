"""The compiled text decides and places as the sweep does on ints; what it folds is checked on what it prints."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from poolproof_spec import sweep as sweep_module
from poolproof_spec.arithmetic import INTEGERS, Arithmetic, Quantity, Truth
from poolproof_spec.geometry import Geometry, layout
from poolproof_spec.occupancy import Occupancy
from poolproof_spec.source_terms import TermArithmetic
from poolproof_spec.source_text import compile_loose, compile_sweep, decision_lines, tuple_lines
from poolproof_spec.sweep import Sweep, sweep

from .random_needs import random_chain_geometry, random_needs


def arguments(needs: Sequence[Occupancy]) -> list[int]:
    return [n for need in needs for n in (need.pinned_count, need.pinned_start, need.pinned_end, need.loose_count)]


def flat(outcome: Sweep) -> tuple[Quantity, ...]:
    return (outcome.fits, *(bound for window in outcome.windows for bound in (window.start, window.end)))


def cases(count: int, seed: int, *, pins: bool) -> list[tuple[Geometry, list[list[Occupancy]]]]:
    rng = Random(seed)
    geometries = [random_chain_geometry(rng, fewest=1) for _ in range(count)]
    return [(geometry, [random_needs(rng, geometry, pins=pins) for _ in range(12)]) for geometry in geometries]


def test_the_text_is_the_sweep() -> None:
    fitting = 0
    for geometry, occupancies in cases(500, 1, pins=True):
        compiled = compile_sweep(geometry)
        for needs in occupancies:
            expected = sweep(needs)
            fitting += expected.fits
            assert compiled.decide(*arguments(needs)) is expected.fits, (compiled.source, needs)
            assert compiled.windows(*arguments(needs)) == flat(expected), (compiled.source, needs)
    assert 0.2 < fitting / 6000 < 0.8


def test_the_text_for_nothing_pinned_is_the_sweep() -> None:
    fitting = 0
    for geometry, occupancies in cases(500, 2, pins=False):
        compiled = compile_loose(geometry)
        for needs in occupancies:
            expected, loose = sweep(needs), [need.loose_count for need in needs]
            fitting += expected.fits
            assert compiled.decide(*loose) is expected.fits, (compiled.source, needs)
            assert compiled.windows(*loose) == flat(expected), (compiled.source, needs)
    assert 0.2 < fitting / 6000 < 0.8


class RoundsDown:
    """An arithmetic with one operation wrong."""

    def __init__(self, right: Arithmetic) -> None:
        self.right = right

    def __getattr__(self, name: str) -> Any:
        return getattr(self.right, "floor_div" if name == "ceil_div" else name)


def test_the_text_is_that_of_the_rule_so_that_a_wrong_rule_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = sweep_module.sweep_member
    expected = [(g, needs, [flat(sweep(need)) for need in needs]) for g, needs in cases(60, 3, pins=True)]
    monkeypatch.setattr(sweep_module, "sweep_member", lambda need, at, on: right(need, at, RoundsDown(on)))  # type: ignore[arg-type]
    differing = 0
    for geometry, needs, outcomes in expected:
        windows = compile_sweep(geometry).windows
        differing += sum(windows(*arguments(need)) != found for need, found in zip(needs, outcomes, strict=True))
    assert differing > 50


def random_quantity(rng: Random, on: Arithmetic, inputs: Sequence[Quantity], depth: int) -> Quantity:
    if depth == 0 or rng.random() < 0.15:
        return rng.choice([*inputs, *inputs, rng.randint(-3, 9)])
    left, right = (random_quantity(rng, on, inputs, depth - 1) for _ in "ab")
    match rng.randrange(9):
        case 0 | 1:
            return left + right
        case 2:
            return left - right
        case 3:
            return left * rng.choice((0, 1, 2, 3, 4, -1, right))
        case 4:
            return on.ceil_div(left, rng.choice((1, 2, 3, 4)))
        case 5:
            return on.floor_div(left, rng.choice((1, 2, 3, 4)))
        case 6:
            return on.maximum(left, right)
        case 7:
            return on.minimum(left, right)
    return on.where(random_truth(rng, on, inputs, depth - 1), left, right)


def random_truth(rng: Random, on: Arithmetic, inputs: Sequence[Quantity], depth: int) -> Truth:
    if depth <= 1 or rng.random() < 0.3:
        left, right = (random_quantity(rng, on, inputs, depth // 2) for _ in "ab")
        return rng.choice((lambda: left <= right, lambda: left >= right, lambda: left == right))()
    parts = [random_truth(rng, on, inputs, depth - 1) for _ in range(rng.randint(1, 3))]
    parts += [on.negate(part) for part in parts if rng.random() < 0.3]
    return rng.choice((on.all_of, on.any_of, lambda *some: on.negate(some[0])))(*parts)


def test_any_formula_reads_as_it_computes() -> None:
    """Formulas that no rule of ours has: the same draws build one on terms and one on ints."""
    truths = 0
    for seed in range(800):
        terms = TermArithmetic()
        inputs = [terms.input(name) for name in "xyz"]
        quantity = random_quantity(Random(seed), terms, inputs, 4)
        truth = random_truth(Random(seed), terms, inputs, 4)
        space: dict[str, Any] = {}
        lines = [f"    {line}" for line in tuple_lines([quantity, truth])]
        decision = [f"    {line}" for line in decision_lines(truth)]
        exec("\n".join(("def both(x, y, z):", *lines, "def decide(x, y, z):", *decision)), space)
        for numbers in ((0, 0, 0), (1, 0, 7), (2, 2, 3), (5, 11, 4), (30, 1, 2)):
            expected = random_truth(Random(seed), INTEGERS, numbers, 4)
            assert space["both"](*numbers) == (random_quantity(Random(seed), INTEGERS, numbers, 4), expected), lines
            assert space["decide"](*numbers) is expected, decision
            truths += expected
    assert 0.3 < truths / 4000 < 0.7


def test_a_rule_that_branches_in_python_is_refused() -> None:
    term = TermArithmetic().input("x")
    with pytest.raises(TypeError, match="no truth value"):
        term if term <= 3 else 3  # noqa: B018


def test_constants_fold_and_common_parts_are_computed_once() -> None:
    """Equal page sizes: no division is left, and what two members use is a local."""
    loose = compile_loose(layout("swa2", 6400, FULL=32, SWA=32)).source
    assert loose == compile_loose(layout("swa2", 6400, FULL=32, SWA=32)).source
    assert loose.splitlines()[:5] == [
        "def decide(loose_count_0, loose_count_1):",
        "    t0 = loose_count_0 + 1",
        "    t1 = loose_count_0 == 0",
        "    if not ((t0 <= 200) or t1): return False",
        "    if not (((loose_count_1 + (1 if t1 else t0)) <= 200) or (loose_count_1 == 0)): return False",
    ]
    assert "//" not in compile_sweep(layout("tri", 6400, FULL=32, SWA=32, STATE=32)).source
    assert "//" in compile_sweep(layout("tri", 6400, FULL=32, SWA=32, STATE=48)).source
