"""The four things that a device does for the pool, and which code does them: plain torch or Triton kernels."""

from typing import Literal, Protocol

import torch

Kernels = Literal["torch", "triton"]
"""Which code works on the device: `torch` are the naive twins, `triton` our kernels (interpreted where no GPU is)."""


class DeviceWork(Protocol):
    """What `naive` and `kernels` both offer: work queued on the current stream; the host never waits for it.

    All tensors of a call lie on one device, which on a GPU is the current one.
    """

    def copy_pages(
        self, arena: torch.Tensor, page_bytes: int, sources: torch.Tensor, destinations: torch.Tensor
    ) -> None:
        """Copy page sources[k] to page destinations[k] for every k; no page is in both."""

    def fill_pages(self, arena: torch.Tensor, page_bytes: int, pages: torch.Tensor, value: int) -> None:
        """Set every byte of these pages to `value`, in [0, 256)."""

    def scatter(self, table: torch.Tensor, positions: torch.Tensor, values: torch.Tensor) -> None:
        """Set table[positions[k]] = values[k] for every k; a position may be repeated with the same value."""

    def translate(self, page_of: torch.Tensor, token_ids: torch.Tensor, page_tokens: int, out: torch.Tensor) -> None:
        """Set out[k] to the token slot of virtual token id v = token_ids[k]: page_of[v // t] * t + v % t."""


def default_kernels(device: torch.device) -> Kernels:
    """Triton on a GPU; on a CPU the twins, since Triton is only interpreted there."""
    return "triton" if device.type == "cuda" else "torch"


def device_work(kernels: Kernels) -> DeviceWork:
    """The module that does the work. Triton is imported only when it is asked for.

    ValueError for a name that is neither; RuntimeError as `poolproof_fast.kernels` says it.
    """
    if kernels == "torch":
        from poolproof_fast import naive

        return naive
    if kernels == "triton":
        from poolproof_fast import kernels as triton_kernels

        return triton_kernels
    raise ValueError(f"kernels {kernels!r}; expected 'torch' or 'triton'")
