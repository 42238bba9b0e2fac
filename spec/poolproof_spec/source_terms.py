"""The carrier on terms that remember how they came about: a rule that ran on them can be written out as source text.

Equal terms are one object, so that what a formula uses twice is computed once. Constants fold at once, by laws of
integers and bools alone: nothing in here knows a rule.
"""

import math
from collections.abc import Callable
from typing import Any

from poolproof_spec.arithmetic import Quantity, Truth
from poolproof_spec.units import ceil_div


class Term:
    """A quantity or a truth that depends on inputs. Made by its `TermArithmetic`, never by hand."""

    __slots__ = ("arithmetic", "index", "least", "operands", "operation")

    def __init__(
        self, arithmetic: "TermArithmetic", index: int, operation: str, operands: tuple[Any, ...], least: float
    ) -> None:
        self.arithmetic = arithmetic
        self.index = index
        """The place in the order of creation: equal terms have one, others do not share it."""
        self.operation = operation
        """A quantity: `input + - * ceil floor maximum minimum where`. A truth: `<= == and or not`."""
        self.operands = operands
        """Terms, ints and bools; of an input its name."""
        self.least = least
        """A quantity is never below this, whatever the inputs."""

    def __add__(self, other: Quantity) -> Quantity:
        return self.arithmetic.add(self, other)

    __radd__ = __add__

    def __sub__(self, other: Quantity) -> Quantity:
        return self.arithmetic.subtract(self, other)

    def __rsub__(self, other: Quantity) -> Quantity:
        return self.arithmetic.subtract(other, self)

    def __mul__(self, other: Quantity) -> Quantity:
        return self.arithmetic.multiply(self, other)

    __rmul__ = __mul__

    def __le__(self, other: Quantity) -> Truth:
        return self.arithmetic.at_most(self, other)

    def __ge__(self, other: Quantity) -> Truth:
        return self.arithmetic.at_most(other, self)

    def __eq__(self, other: object) -> Truth:
        return self.arithmetic.equal(self, other)

    __hash__ = None  # type: ignore[assignment]  # equality makes a term, so that no term may be a key

    def __bool__(self) -> bool:
        raise TypeError("a term has no truth value: a rule must use the arithmetic's where, all_of, any_of, negate")


def least_of(value: Quantity) -> float:
    """What a quantity is never below."""
    return value.least if isinstance(value, Term) else float(value)


def is_operation(value: Any, operation: str) -> bool:
    """Whether a value is a term made by `operation`."""
    return isinstance(value, Term) and value.operation == operation


class TermArithmetic:
    """Makes terms over inputs that are non-negative ints. Divisors are positive, as the interface says."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Term] = {}

    def _term(self, operation: str, *operands: Any, least: float = -math.inf) -> Term:
        # The kind keeps the constant 3, the term with index 3 and the truth True apart.
        key = (operation, *(("term", o.index) if isinstance(o, Term) else (type(o), o) for o in operands))
        if key not in self._known:
            self._known[key] = Term(self, len(self._known), operation, operands, least)
        return self._known[key]

    def input(self, name: str) -> Term:
        """An argument of the formula: a non-negative int."""
        return self._term("input", name, least=0)

    def add(self, left: Quantity, right: Quantity) -> Quantity:
        """Sums are flat, in the order of creation, the constant last, so that equal sums meet."""
        constant, terms, waiting = 0, [], [left, right]
        while waiting:
            part = waiting.pop()
            if is_operation(part, "+"):
                waiting.extend(part.operands)
            elif isinstance(part, Term):
                terms.append(part)
            else:
                constant += part
        if not terms:
            return constant
        first, *rest = sorted(terms, key=lambda term: term.index)
        for part in (*rest, constant) if constant else rest:
            first = self._term("+", first, part, least=first.least + least_of(part))
        return first

    def subtract(self, left: Quantity, right: Quantity) -> Quantity:
        """The difference; subtracting a constant is adding one."""
        return self._term("-", left, right) if isinstance(right, Term) else self.add(left, -right)

    def multiply(self, left: Quantity, right: Quantity) -> Quantity:
        """The product."""
        if not isinstance(left, Term):
            left, right = right, left
        if not isinstance(left, Term):
            return left * right
        if isinstance(right, Term):
            return self._term("*", left, right)
        if right in (0, 1):
            return left if right else 0
        return self._term("*", left, right, least=left.least * right if right > 0 else -math.inf)

    def at_most(self, left: Quantity, right: Quantity) -> Truth:
        """Whether left <= right."""
        if not isinstance(left, Term) and left <= least_of(right):
            return True
        if not isinstance(right, Term) and right < least_of(left):
            return False
        return self._term("<=", left, right)

    def equal(self, left: Quantity, right: Quantity) -> Truth:
        """Whether left == right."""
        if left is right:
            return True
        apart = any(
            not isinstance(one, Term) and one < least_of(other) for one, other in ((left, right), (right, left))
        )
        return False if apart else self._term("==", left, right)

    def ceil_div(self, dividend: Quantity, divisor: Quantity) -> Quantity:
        return self._divided("ceil", ceil_div, dividend, divisor)

    def floor_div(self, dividend: Quantity, divisor: Quantity) -> Quantity:
        return self._divided("floor", lambda a, b: a // b, dividend, divisor)

    def _divided(
        self, operation: str, on_ints: Callable[[int, int], int], dividend: Quantity, divisor: Quantity
    ) -> Quantity:
        if isinstance(divisor, Term):
            return self._term(operation, dividend, divisor)
        if not isinstance(dividend, Term):
            return on_ints(dividend, divisor)
        if divisor == 1:
            return dividend
        if is_operation(dividend, "*") and not isinstance(dividend.operands[1], Term):
            factor, rest = divmod(dividend.operands[1], divisor)
            if not rest:
                return self.multiply(dividend.operands[0], factor)
        through = self._through(operation, dividend, lambda part: self._divided(operation, on_ints, part, divisor))
        if through is not None:
            return through
        least = dividend.least if math.isinf(dividend.least) else on_ints(int(dividend.least), divisor)
        return self._term(operation, dividend, divisor, least=least)

    def _through(self, operation: str, value: Quantity, apply: Callable[[Quantity], Quantity]) -> Quantity | None:
        """f(a if c else b) as f(a) if c else f(b), where the operation f goes away in both; else None."""
        if not is_operation(value, "where"):
            return None
        condition, *parts = value.operands
        applied = [apply(part) for part in parts]
        if any(is_operation(new, operation) and new is not part for new, part in zip(applied, parts, strict=True)):
            return None
        return self.where(condition, *applied)

    def maximum(self, left: Quantity, right: Quantity) -> Quantity:
        if left is right:
            return left
        if isinstance(left, Term) and not isinstance(right, Term):
            left, right = right, left
        if not isinstance(left, Term):
            if not isinstance(right, Term):
                return max(left, right)
            if left <= least_of(right):
                return right
            through = self._through("maximum", right, lambda part: self.maximum(left, part))
            if through is not None:
                return through
        return self._term("maximum", left, right, least=max(least_of(left), least_of(right)))

    def minimum(self, left: Quantity, right: Quantity) -> Quantity:
        if left is right or not (isinstance(left, Term) or isinstance(right, Term)):
            return left if left is right else min(left, right)
        return self._term("minimum", left, right, least=min(least_of(left), least_of(right)))

    def where(self, condition: Truth, then: Quantity, otherwise: Quantity) -> Quantity:
        if not isinstance(condition, Term):
            return then if condition else otherwise
        if then is otherwise or (not isinstance(then, Term) and not isinstance(otherwise, Term) and then == otherwise):
            return then
        return self._term("where", condition, then, otherwise, least=min(least_of(then), least_of(otherwise)))

    def all_of(self, *conditions: Truth) -> Truth:
        return self._connected("and", conditions)

    def any_of(self, *conditions: Truth) -> Truth:
        return self._connected("or", conditions)

    def _connected(self, operation: str, conditions: tuple[Truth, ...]) -> Truth:
        """A flat connective without repetitions; `c or (not c and d)` is `c or d`, and so with `and`."""
        neutral = operation == "and"
        parts: list[Term] = []
        for condition in self._flat(operation, conditions):
            if not isinstance(condition, Term):
                if condition is not neutral:
                    return not neutral
            elif not _among(condition, parts):
                parts.append(condition)
        if any(_among(self.negate(part), parts) for part in parts):
            return not neutral
        other = "or" if neutral else "and"
        lighter = [self._without_opposites(other, part, parts) for part in parts]
        if any(one is not part for one, part in zip(lighter, parts, strict=True)):
            return self._connected(operation, tuple(lighter))
        if len(parts) < 2:
            return parts[0] if parts else neutral
        return self._term(operation, *parts)

    def _flat(self, operation: str, conditions: tuple[Truth, ...]) -> list[Truth]:
        flat: list[Truth] = []
        for condition in conditions:
            flat.extend(condition.operands if is_operation(condition, operation) else [condition])
        return flat

    def _without_opposites(self, operation: str, part: Term, beside: list[Term]) -> Truth:
        if part.operation != operation:
            return part
        kept = [one for one in part.operands if not _among(self.negate(one), beside)]
        return part if len(kept) == len(part.operands) else self._connected(operation, tuple(kept))

    def negate(self, condition: Truth) -> Truth:
        if not isinstance(condition, Term):
            return not condition
        return condition.operands[0] if condition.operation == "not" else self._term("not", condition)


def _among(term: Term, terms: list[Term]) -> bool:
    """`in` would compare with ==, which makes a term."""
    return any(term is other for other in terms)
