"""Events: work on some stream that the pool may have to wait for, asked without blocking."""

from collections.abc import Callable
from typing import Protocol

import torch


class Event(Protocol):
    """Something that fires once, when work that was queued before it is done."""

    def query(self) -> bool:
        """Whether it has fired; never blocks. Once True, always True."""

    def wait(self) -> None:
        """Order the pool's later device work after it. The host does not block."""


class PlainEvent:
    """An event that is fired by hand: on a CPU, in tests, and wherever the caller knows when work is done."""

    __slots__ = ("_fired", "_on_wait")

    def __init__(self, on_wait: Callable[[], None] | None = None) -> None:
        """`on_wait` is called by `wait` on an unfired event: it finishes the work, or fires the event itself."""
        self._fired = False
        self._on_wait = on_wait

    def fire(self) -> None:
        """The work is done."""
        self._fired = True

    def query(self) -> bool:
        """Whether it was fired, or waited for."""
        return self._fired

    def wait(self) -> None:
        """Have `on_wait` finish the work. RuntimeError if unfired and without one: nothing else would ever fire it."""
        if self._fired:
            return
        if self._on_wait is None:
            raise RuntimeError(
                "wait for a PlainEvent that has not fired; expected fire() first, or PlainEvent(on_wait=...)"
            )
        self._on_wait()
        self._fired = True


class CudaEvent:
    """An event on a CUDA stream: fires when all work queued on that stream before it is done."""

    __slots__ = ("_event",)

    def __init__(self, stream: torch.cuda.Stream | None = None) -> None:
        """Record on `stream`; the current one if None."""
        self._event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._event.record(torch.cuda.current_stream() if stream is None else stream)

    def query(self) -> bool:
        """Whether the device has come past it; does not block."""
        return bool(self._event.query())  # type: ignore[no-untyped-call]

    def wait(self) -> None:
        """Later work of the current stream starts after it; the host goes on at once."""
        torch.cuda.current_stream().wait_event(self._event)
