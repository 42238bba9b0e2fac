"""Host arrays on their way to the device: one ring of pinned memory, one non-blocking copy for each delivery."""

from collections import deque

import numpy as np
import numpy.typing as npt
import torch

Words = npt.NDArray[np.int32]
"""Table entries, page numbers and positions: 4 bytes each."""


class Staging:
    """A ring of host memory with a landing area of the same size on the device.

    A delivery takes a contiguous part of the ring (`room`), is filled by the caller, goes to the same part of the
    landing area (`send`), is used there by work on the current stream, and ends with `sent`, which marks the stream:
    the part is handed out again only once that mark has passed. No call waits for the device unless the ring is full
    of deliveries that are still under way; `wait_count` counts those waits. On a CPU the memory is plain and nothing
    is ever under way. A delivery on
    another stream than the one before is ordered after it.
    """

    def __init__(self, word_count: int, device: torch.device) -> None:
        self.word_count = max(1, word_count)
        """Size of the ring, in 4-byte words: the largest delivery."""
        self.wait_count = 0
        """How often the host has waited for the device because the ring was full."""
        self.copy_count = 0
        """Host-to-device copies so far."""
        self._is_cuda = device.type == "cuda"
        self._host = torch.zeros(self.word_count, dtype=torch.int32, pin_memory=self._is_cuda)
        self._host_np: Words = self._host.numpy()
        self._landing = torch.zeros(self.word_count, dtype=torch.int32, device=device)
        self._landing_np: Words = np.empty(0, np.int32) if self._is_cuda else self._landing.numpy()
        self._end = 0
        self._open: tuple[int, int] = (0, 0)
        self._under_way: deque[tuple[int, int, torch.cuda.Event]] = deque()
        self._idle_events: list[torch.cuda.Event] = []
        self._last_stream: torch.cuda.Stream | None = None

    def room(self, count: int) -> Words:
        """The next `count` words of the ring, to be filled. ValueError if the ring is smaller than that."""
        if count > self.word_count:
            raise ValueError(f"a delivery of {count} words; the staging ring has {self.word_count}")
        start = self._end if self._end + count <= self.word_count else 0
        end = start + count
        if self._under_way:
            self._make_room(start, end)
        self._open = (start, end)
        self._end = end
        return self._host_np[start:end]

    def send(self) -> torch.Tensor:
        """Queue the copy of what `room` gave last; the words as they will be on the device, int32 [count]."""
        self.copy_count += 1
        start, end = self._open
        landing = self._landing[start:end]
        if not self._is_cuda:
            self._landing_np[start:end] = self._host_np[start:end]
            return landing
        self._follow_last()
        landing.copy_(self._host[start:end], non_blocking=True)
        return landing

    def send_to(self, target: torch.Tensor) -> None:
        """Queue one copy of what `room` gave last straight into `target`, int32 [count], not the landing area."""
        self.copy_count += 1
        start, end = self._open
        if self._is_cuda:
            self._follow_last()
        target.copy_(self._host[start:end], non_blocking=True)

    def send_host(self) -> Words:
        """As `send`, as a NumPy view of the landing area; only on a CPU."""
        self.copy_count += 1
        start, end = self._open
        landing = self._landing_np[start:end]
        landing[:] = self._host_np[start:end]
        return landing

    def sent(self) -> None:
        """Everything that uses the last delivery is queued on the current stream."""
        if not self._is_cuda:
            return
        event = self._idle_events.pop() if self._idle_events else torch.cuda.Event()  # type: ignore[no-untyped-call]
        stream = torch.cuda.current_stream(self._landing.device)
        event.record(stream)
        self._under_way.append((*self._open, event))
        self._last_stream = stream

    def _follow_last(self) -> None:
        """Order this delivery after the one before it, where the caller has changed streams in between."""
        if self._last_stream is None:
            return
        stream = torch.cuda.current_stream(self._landing.device)
        if stream != self._last_stream:
            stream.wait_stream(self._last_stream)

    def _make_room(self, start: int, end: int) -> None:
        """Give up deliveries that are over, oldest first; wait only for those that still use [start, end)."""
        under_way = self._under_way
        while under_way and under_way[0][2].query():  # type: ignore[no-untyped-call]
            self._retire()
        while any(other_start < end and start < other_end for other_start, other_end, _ in under_way):
            self.wait_count += 1
            under_way[0][2].synchronize()
            self._retire()

    def _retire(self) -> None:
        self._idle_events.append(self._under_way.popleft()[2])
