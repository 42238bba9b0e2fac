"""The carriers agree: each rule on z3 terms, with values put in, says what it says on ints.

The terms are made once, from symbols, as a theorem makes them: a rule that decided anything in Python while they were
made (a `max`, an `if`) is found out, which it would not be on terms that are constants.
"""

from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from typing import Any

import pytest
import z3

from poolproof_spec.arithmetic import INTEGERS
from poolproof_spec.demand import Demand, decode_pages, extend_pages, tail_pages, token_pages
from poolproof_spec.occupancy import Occupancy, occupancies
from poolproof_spec.quotas import covers, exchange_bytes
from poolproof_spec.smt.terms import TERMS, QuotientTerms, times_keeps_order
from poolproof_spec.sweep import sweep, sweep_member
from poolproof_spec.tiny import tiny_geometries, tiny_states
from poolproof_spec.units import LARGEST_QUANTITY

FIELDS = Occupancy.__struct_fields__
TRUTHS = ("anchored_up", "anchored_down")
DEMANDS = (
    Demand(may_wait=False),
    Demand(full_pages=1, swa_pages=1, may_wait=False),
    Demand(full_pages=2, state_pages=1),
)


@cache
def value_of(value: Any) -> Any:
    return z3.BoolVal(value) if isinstance(value, bool) else z3.IntVal(value)


class Template:
    """Terms made once from symbols, to be read at many values."""

    def __init__(self, terms: Sequence[Any], symbols: Sequence[Any]) -> None:
        # One application of one function: everything is then put in and simplified at once.
        packed = z3.Function("packed", *(z3.simplify(term).sort() for term in terms), z3.BoolSort())(*terms)
        places = [(symbol, z3.Var(place, symbol.sort())) for place, symbol in enumerate(symbols)]
        self._packed = z3.substitute(packed, *places)
        self._sorts = [symbol.sort() == z3.BoolSort() for symbol in symbols]

    def at(self, values: Sequence[Any]) -> list[Any]:
        """As ints and bools."""
        put_in = (value_of(bool(v) if truth else int(v)) for v, truth in zip(values, self._sorts, strict=True))
        simple = z3.simplify(z3.substitute_vars(self._packed, *put_in))
        return [value.as_long() if z3.is_int_value(value) else truth_of(value) for value in simple.children()]


def truth_of(value: Any) -> bool:
    assert z3.is_true(value) or z3.is_false(value), f"not decided by the values: {value}"
    return z3.is_true(value)


def evaluate(terms: Sequence[Any], symbols: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    return Template(terms, symbols).at(values)


def symbolic_member(index: int) -> Occupancy:
    return Occupancy(**{name: (z3.Bool if name in TRUTHS else z3.Int)(f"{name}{index}") for name in FIELDS})


def fields(need: Occupancy) -> list[Any]:
    return [getattr(need, name) for name in FIELDS]


class SymbolicSweep:
    """The sweep of a chain of `count` members as terms, made once."""

    def __init__(self, count: int) -> None:
        needs = [symbolic_member(index) for index in range(count)]
        found = sweep(needs, TERMS)
        terms = [found.fits, *(part for window in found.windows for part in window)]
        self._template = Template(terms, [symbol for need in needs for symbol in fields(need)])

    def at(self, needs: Sequence[Occupancy]) -> list[Any]:
        return self._template.at([value for need in needs for value in fields(need)])


def on_ints(needs: Sequence[Occupancy]) -> list[Any]:
    found = sweep(needs)
    return [found.fits, *(part for window in found.windows for part in window)]


def tiny_needs() -> set[tuple[Occupancy, ...]]:
    """What every member must hold in every TINY state, under every demand."""
    found = set()
    for geometry in tiny_geometries():
        for state in tiny_states(geometry):
            found.update(occupancies(state, demand) for demand in DEMANDS)
    return found


@pytest.fixture(scope="module")
def chains() -> list[tuple[Occupancy, ...]]:
    return sorted(tiny_needs(), key=repr)


def test_the_step_of_the_sweep_agrees_on_every_tiny_member(chains: list[tuple[Occupancy, ...]]) -> None:
    members = sorted({need for needs in chains for need in needs}, key=repr)
    position, need = z3.Int("position"), symbolic_member(0)
    window, after = sweep_member(need, position, TERMS)
    template = Template((*window, after), (position, *fields(need)))
    assert len(members) > 300
    for member in members:
        for at in range(14):
            expected, expected_after = sweep_member(member, at)
            assert template.at((at, *fields(member))) == [*expected, expected_after], (member, at)


def test_the_sweep_agrees_on_every_tiny_chain(chains: list[tuple[Occupancy, ...]]) -> None:
    symbolic = {count: SymbolicSweep(count) for count in (3, 4)}
    fitting = 0
    for needs in chains:
        expected = on_ints(needs)
        assert symbolic[len(needs)].at(needs) == expected, needs
        fitting += expected[0]
    assert 0 < fitting < len(chains)


def random_need(rng: Random, page_count: int) -> Occupancy:
    first = rng.randint(0, page_count // 2)
    pins = sorted(rng.sample(range(first, page_count), rng.choice((0, 0, 2))))
    return Occupancy(
        page_bytes=rng.choice((1, rng.randint(1, 64), rng.randint(1, 2**30))),
        first_page=first,
        page_count=page_count,
        anchored_up=rng.random() < 0.2,
        anchored_down=rng.random() < 0.2,
        pinned_count=len(pins),
        pinned_start=pins[0] if pins else 0,
        pinned_end=pins[-1] + 1 if pins else 0,
        loose_count=rng.choice((0, rng.randint(0, page_count))),
    )


def test_the_sweep_agrees_on_random_large_chains() -> None:
    rng = Random(1)
    symbolic = {count: SymbolicSweep(count) for count in range(6)}
    fitting = 0
    for _ in range(1500):
        scale = rng.choice((10, 10**4, 2**20, LARGEST_QUANTITY))
        needs = [random_need(rng, rng.randint(4, scale)) for _ in range(rng.randint(0, 5))]
        expected = on_ints(needs)
        assert symbolic[len(needs)].at(needs) == expected, needs
        fitting += expected[0]
    assert 100 < fitting < 1400


Rule = Callable[..., Any]
RULES: dict[str, tuple[int, Rule]] = {
    "ceil_div": (1, lambda n, t, a: a.ceil_div(n, t)),
    "floor_div": (1, lambda n, t, a: a.floor_div(n, t)),
    "minimum": (1, lambda n, t, a: a.minimum(n, t)),
    "token_pages": (1, token_pages),
    "extend_pages": (2, extend_pages),
    "decode_pages": (1, decode_pages),
    "tail_pages": (3, tail_pages),
    "exchange_bytes": (3, lambda x, y, z, t, a: exchange_bytes([x, y, z], [t, t + 1, 2], [False, True, False], 2)),
    "covers": (3, lambda x, y, z, t, a: covers([x, y], [z, t], a)),
    "nothing": (1, lambda n, t, a: a.where(a.all_of(a.all_of(), a.negate(a.any_of())), n, t)),
}
"""How many quantities each takes before the page size, and the rule."""


def rule_values(rng: Random, count: int) -> list[int]:
    """Lengths (never falling, so that they may be prefix and sequence) and a page size."""
    scale = rng.choice((8, 8, 300, LARGEST_QUANTITY))
    return [*sorted(rng.randint(0, scale) for _ in range(count)), rng.choice((1, 2, 3, 16, 256, rng.randint(1, scale)))]


@pytest.mark.parametrize("name", RULES)
def test_each_rule_agrees(name: str) -> None:
    count, rule = RULES[name]
    symbols = z3.Ints(" ".join([*(f"q{i}" for i in range(count)), "page_tokens"]))
    term, rng = rule(*symbols, TERMS), Random(2)
    for _ in range(400):
        values = rule_values(rng, count)
        assert evaluate((term,), symbols, values) == [rule(*values, INTEGERS)], values


@pytest.mark.parametrize(("dividend", "divisor"), [(7, 2), (-7, 2), (-8, 2), (0, 5), (-1, 9), (2**60, 3)])
def test_division_rounds_as_on_ints_also_below_zero(dividend: int, divisor: int) -> None:
    both = z3.Ints("a b")
    terms = TERMS.ceil_div(*both), TERMS.floor_div(*both)
    assert evaluate(terms, both, (dividend, divisor)) == [-(-dividend // divisor), dividend // divisor]


def test_ints_may_be_mixed_in_and_stay_exact() -> None:
    assert str(z3.simplify(TERMS.ceil_div(2**60 + 1, 2))) == str(2**59 + 1)
    assert str(z3.simplify(TERMS.maximum(3, z3.IntVal(4)))) == "4"
    assert str(z3.simplify(TERMS.where(True, 1, 2))) == "1"


@pytest.mark.parametrize(("dividend", "divisor"), [(7, 2), (-7, 2), (-8, 2), (0, 5), (2**60, 3)])
def test_named_quotients_are_the_quotients(dividend: int, divisor: int) -> None:
    named, (a, b) = QuotientTerms(), z3.Ints("a b")
    up, down = named.ceil_div(a, b), named.floor_div(a, b)
    symbols, right = (a, b, up, down), (dividend, divisor, -(-dividend // divisor), dividend // divisor)
    assert evaluate(named.definitions, symbols, right) == [True, True]
    for off in (-1, 1):
        assert evaluate(named.definitions, symbols, (*right[:2], right[2] + off, right[3] + off)) == [False, False]


def test_named_quotients_say_nothing_where_the_divisor_is_not_positive() -> None:
    named, (a, b) = QuotientTerms(), z3.Ints("a b")
    q = named.ceil_div(a, b)
    assert evaluate(named.definitions, (a, b, q), (5, 0, 77)) == [True]
    assert evaluate((named.ceil_at_most(a, b, 3),), (a, b, q), (5, 0, 77)) == [True]


def test_a_division_has_one_name_whenever_it_is_named() -> None:
    one, other, (a, b) = QuotientTerms(), QuotientTerms(), z3.Ints("a b")
    other.floor_div(b, a)
    assert str(one.ceil_div(a, b)) == str(other.ceil_div(a, b)) == "ceil(a / b)"
    assert len({str(one.ceil_div(a + i * b * b * b * b * b * b * b * b, b)) for i in range(5)}) == 5
    one.ceil_div(a, b)
    assert len(one.definitions) == 6, "a division made again is defined once"


def test_helping_premises_hold_on_values() -> None:
    named, (a, b, k) = QuotientTerms(), z3.Ints("a b k")
    facts = (named.ceil_at_most(a, b, k), named.floor_at_least(a, b, k), times_keeps_order(a, b, k))
    up, down = named.ceil_div(a, b), named.floor_div(a, b)
    for dividend in range(-6, 7):
        for divisor in range(1, 5):
            for bound in range(-4, 5):
                values = (dividend, divisor, bound, -(-dividend // divisor), dividend // divisor)
                assert evaluate(facts, (a, b, k, up, down), values) == [True] * 3


def test_the_sweep_with_named_quotients_agrees() -> None:
    """With each quotient put in by hand the sweep's terms say the same."""
    rng, named, need, position = Random(3), QuotientTerms(), symbolic_member(0), z3.Int("position")
    window, after = sweep_member(need, position, named)
    quotient = named.ceil_div(position, need.page_bytes)
    for _ in range(300):
        member, at = random_need(rng, rng.randint(4, 2**20)), rng.randint(0, 2**24)
        symbols = (position, quotient, *fields(need))
        values = (at, -(-at // member.page_bytes), *fields(member))
        expected, expected_after = sweep_member(member, at)
        assert evaluate((*window, after, *named.definitions), symbols, values) == [*expected, expected_after, True]
