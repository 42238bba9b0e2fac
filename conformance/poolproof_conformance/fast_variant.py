"""The ways in which the fast pool can be run as a target."""

from typing import Literal

FastVariant = Literal["cpu", "interpreter", "cuda"]
"""Plain on a CPU; kernels by Triton's interpreter, device tables apart, also on a CPU; on a GPU."""
