"""The carrier on NumPy arrays: a rule decides many cases at once, one lane for each."""

from typing import Any

import numpy as np

from poolproof_spec.arithmetic import Arithmetic, Quantity, Truth


class LaneArithmetic:
    """Arrays of signed integers and of bools; Python ints and bools, and arrays of one lane, may be mixed in.

    Bytes need int64. Where no operand is an array, Python ints and bools come out: what is the same in all lanes is
    computed once, and a rule's answer may be one bool for all of them.
    """

    def ceil_div(self, dividend: Quantity, divisor: Quantity) -> Quantity:
        return -(-dividend // divisor)

    def floor_div(self, dividend: Quantity, divisor: Quantity) -> Quantity:
        return dividend // divisor

    def maximum(self, left: Quantity, right: Quantity) -> Quantity:
        if type(left) is int and type(right) is int:
            return left if left >= right else right
        return np.maximum(left, right)

    def minimum(self, left: Quantity, right: Quantity) -> Quantity:
        if type(left) is int and type(right) is int:
            return left if left <= right else right
        return np.minimum(left, right)

    def where(self, condition: Truth, then: Quantity, otherwise: Quantity) -> Quantity:
        if type(condition) is bool:
            return then if condition else otherwise
        return np.where(condition, then, otherwise)

    def all_of(self, *conditions: Truth) -> Truth:
        found: Any = True
        for condition in conditions:
            if condition is False:
                return False
            if condition is not True:
                found = condition if found is True else found & condition
        return found

    def any_of(self, *conditions: Truth) -> Truth:
        found: Any = False
        for condition in conditions:
            if condition is True:
                return True
            if condition is not False:
                found = condition if found is False else found | condition
        return found

    def negate(self, condition: Truth) -> Truth:
        return not condition if type(condition) is bool else ~condition


LANES: Arithmetic = LaneArithmetic()
