"""The few operations that the rules are written over, so that one source text runs on several carriers.

A rule takes an `Arithmetic` and uses only `+ - * <= >= ==` on quantities and the names below on the rest. On
`INTEGERS` it is a decision procedure on Python ints. A carrier for tensors or for solver terms supplies the same names.
"""

from typing import Any, Protocol

from poolproof_spec import units

Quantity = Any
"""An int, or whatever stands for one on the carrier."""
Truth = Any
"""A bool, or whatever stands for one on the carrier."""


class Arithmetic(Protocol):
    """What a carrier must supply beside `+ - *` and comparisons."""

    def ceil_div(self, dividend: Quantity, divisor: Quantity) -> Quantity:
        """Least integer not below dividend / divisor; the divisor is positive."""

    def floor_div(self, dividend: Quantity, divisor: Quantity) -> Quantity:
        """Greatest integer not above dividend / divisor; the divisor is positive."""

    def maximum(self, left: Quantity, right: Quantity) -> Quantity:
        """The larger of two."""

    def minimum(self, left: Quantity, right: Quantity) -> Quantity:
        """The smaller of two."""

    def where(self, condition: Truth, then: Quantity, otherwise: Quantity) -> Quantity:
        """`then` where the condition holds, else `otherwise`; both are evaluated."""

    def all_of(self, *conditions: Truth) -> Truth:
        """Conjunction."""

    def any_of(self, *conditions: Truth) -> Truth:
        """Disjunction."""

    def negate(self, condition: Truth) -> Truth:
        """Negation."""


class IntegerArithmetic:
    """Python ints and bools."""

    def ceil_div(self, dividend: int, divisor: int) -> int:
        return units.ceil_div(dividend, divisor)

    def floor_div(self, dividend: int, divisor: int) -> int:
        return dividend // divisor

    def maximum(self, left: int, right: int) -> int:
        return left if left >= right else right

    def minimum(self, left: int, right: int) -> int:
        return left if left <= right else right

    def where(self, condition: bool, then: int, otherwise: int) -> int:
        return then if condition else otherwise

    def all_of(self, *conditions: bool) -> bool:
        return all(conditions)

    def any_of(self, *conditions: bool) -> bool:
        return any(conditions)

    def negate(self, condition: bool) -> bool:
        return not condition


INTEGERS: Arithmetic = IntegerArithmetic()
