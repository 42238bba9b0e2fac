"""On arrays each lane has what ints give in its place."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from poolproof_spec import demand, sweep
from poolproof_spec.arithmetic import INTEGERS, Arithmetic, Quantity
from poolproof_spec.lanes import LANES
from poolproof_spec.occupancy import Occupancy

from .random_needs import random_chain_geometry, random_needs

VARYING = ("pinned_count", "pinned_start", "pinned_end", "loose_count")
COUNT = 60


def lanes_of(cases: Sequence[Sequence[Occupancy]], make: Callable[[list[int]], Any]) -> list[Occupancy]:
    """Many needs of one chain as one, a lane for each; what is the same in all stays an int now and then."""
    stacked = []
    for place, needs in enumerate(zip(*cases, strict=True)):
        values = {field: [getattr(need, field) for need in needs] for field in VARYING}
        same = place % 2 and all(len(set(column)) == 1 for column in values.values())
        first = needs[0]
        stacked.append(
            Occupancy(
                page_bytes=first.page_bytes,
                first_page=first.first_page,
                page_count=first.page_count,
                anchored_up=first.anchored_up,
                anchored_down=first.anchored_down,
                **{field: column[0] if same else make(column) for field, column in values.items()},
            )
        )
    return stacked


def check_sweep(arithmetic: Arithmetic, make: Callable[[list[int]], Any], geometries: int) -> tuple[int, int]:
    """Compare a carrier with ints on random chains; how many lanes fitted, of how many."""
    rng, fitting = Random(11), 0
    for _ in range(geometries):
        geometry = random_chain_geometry(rng)
        cases = [random_needs(rng, geometry) for _ in range(COUNT)]
        if rng.random() < 0.5:
            cases = [[cases[0][0], cases[0][1], *case[2:]] for case in cases]
        found = sweep.sweep(lanes_of(cases, make), arithmetic)
        fits = np.broadcast_to(np.asarray(found.fits), COUNT)
        bounds = [np.broadcast_to(np.asarray(part), COUNT) for window in found.windows for part in window]
        for lane, case in enumerate(cases):
            expected = sweep.sweep(case)
            assert fits[lane] == expected.fits, (geometry, case)
            assert [part[lane] for part in bounds] == [part for window in expected.windows for part in window]
            fitting += expected.fits
    return fitting, geometries * COUNT


def check_counts(arithmetic: Arithmetic, make: Callable[[Sequence[int]], Any]) -> None:
    """The demand's counts: arrays of lengths, page sizes as an int and as an array."""
    rng = Random(5)
    prefixes = [rng.randint(0, 40) for _ in range(200)]
    lengths = [prefix + rng.randint(1, 40) for prefix in prefixes]
    tails = [rng.randint(0, 50) for _ in prefixes]
    for each in ([rng.randint(1, 7)] * 200, [rng.randint(1, 7) for _ in prefixes]):
        size: Quantity = each[0] if len(set(each)) == 1 else make(each)
        rows = list(zip(prefixes, lengths, tails, each, strict=True))
        p, s, t = make(prefixes), make(lengths), make(tails)
        assert demand.token_pages(s, size, arithmetic).tolist() == [demand.token_pages(r[1], r[3]) for r in rows]
        assert demand.decode_pages(s, size, arithmetic).tolist() == [demand.decode_pages(r[1], r[3]) for r in rows]
        assert demand.extend_pages(p, s, size, arithmetic).tolist() == [
            demand.extend_pages(r[0], r[1], r[3]) for r in rows
        ]
        assert demand.tail_pages(p, s, t, size, arithmetic).tolist() == [demand.tail_pages(*r) for r in rows]


def check_operations(arithmetic: Arithmetic, make: Callable[[list[Any]], Any]) -> None:
    """Each name on two arrays, on an array and an int from either side, and on two ints."""
    numbers, others, truths = [-7, -1, 0, 3, 8], [2, -1, 5, 3, -9], [True, False, True, False, True]
    for name in ("maximum", "minimum"):
        on_ints, here = getattr(INTEGERS, name), getattr(arithmetic, name)
        assert here(make(numbers), make(others)).tolist() == list(map(on_ints, numbers, others))
        assert here(make(numbers), 2).tolist() == here(2, make(numbers)).tolist() == [on_ints(n, 2) for n in numbers]
        assert here(3, 5) == on_ints(3, 5)
        assert here(5, 3) == on_ints(5, 3)
    for name in ("ceil_div", "floor_div"):
        on_ints, here = getattr(INTEGERS, name), getattr(arithmetic, name)
        assert here(make(numbers), 3).tolist() == [on_ints(n, 3) for n in numbers]
        assert here(make(numbers), make([1, 2, 3, 4, 5])).tolist() == list(map(on_ints, numbers, [1, 2, 3, 4, 5]))
        assert here(-7, 2) == on_ints(-7, 2)
    assert arithmetic.where(make(truths), make(numbers), 4).tolist() == [-7, 4, 0, 4, 8]
    assert arithmetic.where(make(truths), 1, 0).tolist() == [1, 0, 1, 0, 1]
    assert arithmetic.where(True, 1, 2) == 1
    assert arithmetic.where(False, 1, 2) == 2
    turned = [*truths[::-1][1:], False]
    assert arithmetic.all_of(make(truths), True, make(turned)).tolist() == [
        a and b for a, b in zip(truths, turned, strict=True)
    ]
    assert arithmetic.any_of(False, make(truths), make(turned)).tolist() == [
        a or b for a, b in zip(truths, turned, strict=True)
    ]
    assert arithmetic.negate(make(truths)).tolist() == [not truth for truth in truths]
    assert (arithmetic.all_of(), arithmetic.any_of()) == (True, False)
    assert (arithmetic.all_of(make(truths), False), arithmetic.any_of(make(truths), True)) == (False, True)
    assert (arithmetic.negate(True), arithmetic.negate(False)) == (False, True)
    assert arithmetic.all_of(make(truths)).tolist() == arithmetic.any_of(make(truths)).tolist() == truths


def test_the_sweep_lane_by_lane() -> None:
    fitting, lanes = check_sweep(LANES, np.array, 60)
    assert 0.2 < fitting / lanes < 0.8


def test_the_counts_of_a_demand_lane_by_lane() -> None:
    check_counts(LANES, np.array)


def test_operations_on_arrays_and_what_is_mixed_in() -> None:
    check_operations(LANES, np.array)


def test_a_wrong_formula_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(LANES), "ceil_div", lambda self, dividend, divisor: dividend // divisor)
    with pytest.raises(AssertionError):
        check_sweep(LANES, np.array, 10)
