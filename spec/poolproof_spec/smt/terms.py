"""The carrier on z3 terms: a rule written over `Arithmetic` becomes the formula that theorems speak of.

Two readings of division. `TERMS` uses the solver's own, which rounds down for a positive divisor. `QuotientTerms`
names each quotient and says what it is: nonlinear proofs often go through only with these.
"""

import hashlib
from typing import Any

import z3

from poolproof_spec.arithmetic import Arithmetic, Quantity, Truth

LONGEST_NAME = 60
"""Characters of a division that still make a readable name for its quotient."""


def _quantity(value: Any) -> Any:
    """Rules mix terms with Python ints; on two ints Python's own operators would be wrong (a float from `/`)."""
    return value if z3.is_expr(value) else z3.IntVal(value)


def _truth(value: Any) -> Any:
    return value if z3.is_expr(value) else z3.BoolVal(value)


class TermArithmetic:
    """z3 terms of sort Int and Bool; Python ints and bools may be mixed in."""

    def ceil_div(self, dividend: Quantity, divisor: Quantity) -> Quantity:
        return -((-_quantity(dividend)) / _quantity(divisor))

    def floor_div(self, dividend: Quantity, divisor: Quantity) -> Quantity:
        return _quantity(dividend) / _quantity(divisor)

    def maximum(self, left: Quantity, right: Quantity) -> Quantity:
        return z3.If(_truth(left >= right), _quantity(left), _quantity(right))

    def minimum(self, left: Quantity, right: Quantity) -> Quantity:
        return z3.If(_truth(left <= right), _quantity(left), _quantity(right))

    def where(self, condition: Truth, then: Quantity, otherwise: Quantity) -> Quantity:
        return z3.If(_truth(condition), _quantity(then), _quantity(otherwise))

    def all_of(self, *conditions: Truth) -> Truth:
        return z3.And(*map(_truth, conditions)) if conditions else z3.BoolVal(True)

    def any_of(self, *conditions: Truth) -> Truth:
        return z3.Or(*map(_truth, conditions)) if conditions else z3.BoolVal(False)

    def negate(self, condition: Truth) -> Truth:
        return z3.Not(_truth(condition))


TERMS: Arithmetic = TermArithmetic()


def times_keeps_order(less: Quantity, more: Quantity, factor: Quantity) -> Truth:
    """A premise that helps: p <= q implies p * k <= q * k, for k >= 0. Proved in T0-division."""
    p, q, k = _quantity(less), _quantity(more), _quantity(factor)
    return z3.Implies(z3.And(k >= 0, p <= q), p * k <= q * k)


class QuotientTerms(TermArithmetic):
    """Division by naming the quotient: a new constant, and in `definitions` what it is.

    Add the definitions to the premises of the query. They restrict nothing: for each dividend and positive divisor
    there is exactly one such quotient, and for other divisors they say nothing.
    """

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    @property
    def definitions(self) -> tuple[Any, ...]:
        """What has been divided so far: premises, in the order of the divisions."""
        return tuple(self._known.values())

    def ceil_div(self, dividend: Quantity, divisor: Quantity) -> Quantity:
        a, b = _quantity(dividend), _quantity(divisor)
        q = self._quotient("ceil", a, b)
        self._known[str(q)] = z3.Implies(b >= 1, z3.And((q - 1) * b < a, a <= q * b))
        return q

    def floor_div(self, dividend: Quantity, divisor: Quantity) -> Quantity:
        a, b = _quantity(dividend), _quantity(divisor)
        q = self._quotient("floor", a, b)
        self._known[str(q)] = z3.Implies(b >= 1, z3.And(q * b <= a, a < (q + 1) * b))
        return q

    def ceil_at_most(self, dividend: Quantity, divisor: Quantity, bound: Quantity) -> Truth:
        """A premise that helps: ceil(a / b) <= k iff a <= k * b, for positive b. Proved in T0-division."""
        a, b, k = _quantity(dividend), _quantity(divisor), _quantity(bound)
        return z3.Implies(b >= 1, (self.ceil_div(a, b) <= k) == (a <= k * b))

    def floor_at_least(self, dividend: Quantity, divisor: Quantity, bound: Quantity) -> Truth:
        """A premise that helps: floor(a / b) >= k iff k * b <= a, for positive b. Proved in T0-division."""
        a, b, k = _quantity(dividend), _quantity(divisor), _quantity(bound)
        return z3.Implies(b >= 1, (self.floor_div(a, b) >= k) == (k * b <= a))

    def _quotient(self, rounded: str, dividend: Any, divisor: Any) -> Any:
        """The same division has the same name everywhere, so that names neither clash nor depend on the order."""
        division = " ".join(f"{dividend.sexpr()} / {divisor.sexpr()}".split())
        if len(division) > LONGEST_NAME or "|" in division:
            division = hashlib.sha256(division.encode()).hexdigest()[:16]
        return z3.Int(f"{rounded}({division})")
