"""The packed engine's arrays on torch: the same code on whatever device torch has."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from poolproof_conformance.explorer.packed.fields import Field, PackedError
from poolproof_conformance.explorer.packed.lanes import Column, NumPyBackend

if TYPE_CHECKING:
    import torch


def torch_backend(device: str) -> NumPyBackend:
    """On cpu or cuda. Raises PackedError where there is no torch or no such device."""
    if find_spec("torch") is None:
        raise PackedError(f"--device {device} needs torch", "pip install 'poolproof[fast]', or --device numpy")
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise PackedError("torch finds no CUDA device here", "--device numpy")
    return TorchBackend(torch.device(device))


class TorchBackend(NumPyBackend):
    """Tensors. A state has one word: torch sorts no pairs."""

    most_words = 1
    spills = False

    def __init__(self, device: torch.device) -> None:
        import torch

        from poolproof_spec.tensors import TENSORS

        self.torch, self.device, self.carrier = torch, device, TENSORS

    def small(self, values: Any) -> Column:
        """See NumPyBackend."""
        return self.torch.tensor(values, dtype=self.torch.int16, device=self.device)

    def look_up(self, table: Column, index: Column) -> Column:
        """See NumPyBackend."""
        return int(table[index]) if isinstance(index, int) else table[index.long()]

    def rows(self, column: Column, rows: Column) -> Column:
        """See NumPyBackend."""
        return column[rows]

    def where(self, condition: Column, then: Any, otherwise: Any) -> Column:
        """See NumPyBackend."""
        return self.torch.where(condition, then, otherwise)

    def which(self, mask: Column) -> Column:
        """See NumPyBackend."""
        return self.torch.nonzero(mask).flatten()

    def full(self, count: int, value: int) -> Column:
        """See NumPyBackend."""
        return self.torch.full((count,), value, dtype=self.torch.int16, device=self.device)

    def yes(self, count: int, value: bool) -> Column:
        """See NumPyBackend."""
        return self.torch.full((count,), value, dtype=self.torch.bool, device=self.device)

    def bits(self, word: Column, field: Field) -> Column:
        """See NumPyBackend."""
        return ((word >> field.shift) & ((1 << field.bits) - 1)).to(self.torch.int16)

    def as_small(self, mask: Column) -> Column:
        """See NumPyBackend."""
        return mask.to(self.torch.int16)

    def difference(self, new: Column, old: Column, shift: int) -> Column:
        """See NumPyBackend."""
        return (new - old).to(self.torch.int64) << shift

    def least(self, one: Column, other: Column) -> Column:
        """See NumPyBackend."""
        return self.torch.minimum(one, other)

    def concat(self, parts: list[Column]) -> Column:
        """See NumPyBackend."""
        return self.torch.cat(parts)

    def unique(self, states: Column) -> Column:
        """See NumPyBackend."""
        return self.torch.unique(states, sorted=True)

    def merged(self, one: Column, other: Column) -> Column:
        """See NumPyBackend."""
        return self.torch.sort(self.torch.cat((one, other))).values

    def absent(self, states: Column, sorted_states: Column) -> Column:
        """See NumPyBackend."""
        if not len(sorted_states):
            return self.yes(len(states), True)
        at = self.torch.searchsorted(sorted_states, states).clamp(max=len(sorted_states) - 1)
        return sorted_states[at] != states

    def to_numpy(self, states: Column) -> Any:
        """See NumPyBackend."""
        return states.cpu().numpy()

    def from_numpy(self, states: Any) -> Column:
        """See NumPyBackend."""
        return self.torch.from_numpy(states).to(self.device)

    def zero_word(self) -> Column:
        """See NumPyBackend."""
        return self.torch.zeros(1, dtype=self.torch.int64, device=self.device)
