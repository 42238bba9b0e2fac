"""The carrier on torch tensors: a rule decides many cases at once, on whatever device they lie.

The only file of this package that imports torch; nothing else here imports this file.
"""

import torch

from poolproof_spec.arithmetic import Arithmetic, Quantity, Truth
from poolproof_spec.lanes import LaneArithmetic


class TensorArithmetic(LaneArithmetic):
    """Tensors of signed integers and of bools; Python ints and bools may be mixed in. No step waits for the device.

    Bytes need torch.int64. As with lanes, what is the same everywhere stays a Python int or bool.
    """

    def maximum(self, left: Quantity, right: Quantity) -> Quantity:
        if not isinstance(left, torch.Tensor):
            left, right = right, left
        if not isinstance(left, torch.Tensor):
            return left if left >= right else right
        return torch.maximum(left, right) if isinstance(right, torch.Tensor) else left.clamp(min=right)

    def minimum(self, left: Quantity, right: Quantity) -> Quantity:
        if not isinstance(left, torch.Tensor):
            left, right = right, left
        if not isinstance(left, torch.Tensor):
            return left if left <= right else right
        return torch.minimum(left, right) if isinstance(right, torch.Tensor) else left.clamp(max=right)

    def where(self, condition: Truth, then: Quantity, otherwise: Quantity) -> Quantity:
        if type(condition) is bool:
            return then if condition else otherwise
        return torch.where(condition, then, otherwise)


TENSORS: Arithmetic = TensorArithmetic()
