"""What the engine would do on a GPU through streams, events and Triton kernels, on the CPU.

- Event, and the current stream that waits for one: the engine orders its copies after a forward by a stream wait; here
  such a wait is written down, so that the runner learns which events a demand waited for, and it takes effect at once.
- The two allocation kernels: the engine's own CPU equivalents for them are called instead (`alloc_extend_naive`,
  `alloc_decode_naive` in its allocator/paged.py), through the calling convention of a Triton kernel.
"""

from collections.abc import Callable, Sequence
from typing import Any


class Event:
    """A forward's end, in place of a CUDA event; fires when the history says so or when somebody waits for it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.fired = False

    def query(self) -> bool:
        """Whether the forward ended."""
        return self.fired


class Stream:
    """The stream that the engine's allocators run on: waiting for an event ends the forward before anything else."""

    def __init__(self) -> None:
        self.waited: list[Event] = []
        """Events that had not fired when they were waited for, since the list was last cleared."""

    def wait_event(self, event: Event) -> None:
        """Order what follows after the event."""
        if not event.fired:
            event.fired = True
            self.waited.append(event)


class Kernel:
    """A function that is launched like a Triton kernel: `kernel[grid](...)`."""

    def __init__(self, run: Callable[..., None]) -> None:
        self.run = run

    def __getitem__(self, grid: Sequence[int]) -> Callable[..., None]:
        return self.run


def extend_kernel(naive: Callable[..., None]) -> Kernel:
    """The engine's paged-extend kernel (prefix, sequence, last location, free pages, out, block, page tokens)."""

    def run(prefix: Any, seq: Any, last: Any, free: Any, out: Any, _block: int, page_tokens: int) -> None:
        naive(prefix, seq, last, free, out, page_tokens, out.device)

    return Kernel(run)


def decode_kernel(naive: Callable[..., None]) -> Kernel:
    """The engine's paged-decode kernel (sequence, last location, free pages, out, block, page tokens)."""

    def run(seq: Any, last: Any, free: Any, out: Any, _block: int, page_tokens: int) -> None:
        naive(seq, last, free, out, page_tokens, int(((seq - 1) % page_tokens == 0).sum()))

    return Kernel(run)
