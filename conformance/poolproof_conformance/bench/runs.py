"""The runs that are measured, on any subject in the same way: states prepared, the timed part, what was done checked.

Times are CPU time of the process (user and system), in microseconds an operation, with garbage collection off: on a
shared machine wall time tells of its neighbours. Nothing here waits for a device, so the two agree on an idle one.
"""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from poolproof_conformance.bench.subject import CannotError, Subject, WrongAnswerError
from poolproof_conformance.bench.works import MOVED_SHARE, ROOM_PAGES, state_of, work_named

NS_PER_US = 1000


class Bench:
    """Prepares states of a subject and measures runs on them."""

    def __init__(self, subject: Subject, clock: Callable[[], int] = time.process_time_ns) -> None:
        self.subject = subject
        self.clock = clock
        self._state: tuple[str, int] | None = None
        self._cell = ("", 0)

    def prepare(self, work: str, size: int) -> None:
        """Bring the subject into the state that the work starts from. Raises CannotError."""
        self.subject.check_size(work, size)
        self._cell = (work, size)
        state = state_of(work, size)
        if state[0] == "memory" or (state == self._state and state[0] == "filled"):
            return
        self._state = None
        kind, pages = state
        if kind == "float":
            self.subject.build_float(pages)
        else:
            self.subject.build(pages)
        if kind == "filled":
            self.subject.fill(pages)
            _expect("cached entries", self.subject.cached_entries(), pages)
        self._state = state

    def run(self) -> float:
        """One run of the prepared cell: microseconds an operation, or for `memory` bytes an entry."""
        work, size = self._cell
        operations, warming = work_named(work).operations_at(size), work_named(work).warming_at(size)
        self.subject.settle()
        if work in ("alloc-free", "alloc-free-pages"):
            return self._pairs(size if work == "alloc-free" else 1, operations, warming)
        if work == "reserve-room":
            return self._reserves_with_room(operations, warming)
        if work == "refuse":
            return self._refusals(size, operations, warming)
        if work == "float-move":
            return self._float_move(size)
        if work == "memory":
            return self._memory(size)
        victims = {"evict-1": 1, "evict-1000": 1000}.get(work, size)
        return self._evictions(victims, operations, warming)

    def _pairs(self, pages: int, operations: int, warming: int) -> float:
        take, give = self.subject.take, self.subject.give
        requests = [self.subject.request(pages) for _ in range(operations)]
        for _ in range(warming):
            give(take(self.subject.request(pages)))
        with _quiet():
            start = self.clock()
            for request in requests:
                give(take(request))
            taken_ns = self.clock() - start
        return taken_ns / NS_PER_US / operations

    def _evictions(self, victims: int, operations: int, warming: int) -> float:
        subject, taken_ns = self.subject, 0
        for number in range(warming + operations):
            request = subject.request(victims)
            with _quiet():
                start = self.clock()
                taken = subject.reserve(request)
                taken_ns += (self.clock() - start) * (number >= warming)
            if taken is None:
                raise WrongAnswerError(f"a reservation of {victims} pages was refused, expected it to evict")
            subject.give(taken)
            subject.restore(victims)
        return taken_ns / NS_PER_US / operations

    def _reserves_with_room(self, operations: int, warming: int) -> float:
        """Of the room, a part is taken to warm up, the rest is timed."""
        subject = self.subject
        operations -= warming
        opened = subject.reserve(subject.request(ROOM_PAGES, keep=False))
        subject.give(opened)
        before = subject.cached_entries()
        taken: list[Any] = [subject.reserve(subject.request(1, keep=False)) for _ in range(warming)]
        requests = [subject.request(1, keep=False) for _ in range(operations)]
        with _quiet():
            start = self.clock()
            for request in requests:
                taken.append(subject.reserve(request))
            taken_ns = self.clock() - start
        _expect("cached entries after reserving what was there", subject.cached_entries(), before)
        for one in taken:
            subject.give(one)
        self.subject.fill(ROOM_PAGES)
        return taken_ns / NS_PER_US / operations

    def _refusals(self, entries: int, operations: int, warming: int) -> float:
        subject = self.subject
        request = subject.request(entries + 1)
        answers: list[Any] = [subject.reserve(request) for _ in range(warming)]
        with _quiet():
            start = self.clock()
            for _ in range(operations):
                answers.append(subject.reserve(request))
            taken_ns = self.clock() - start
        if any(answer is not None for answer in answers):
            raise WrongAnswerError(f"{entries + 1} pages were granted in an arena of {entries}")
        _expect("cached entries after a refusal", subject.cached_entries(), entries)
        return taken_ns / NS_PER_US / operations

    def _float_move(self, pages: int) -> float:
        self.subject.build_float(pages)
        with _quiet():
            start = self.clock()
            self.subject.move_float()
            taken_ns = self.clock() - start
        moved, wanted = self.subject.moved_pages(), pages / MOVED_SHARE
        if not 0.8 * wanted <= moved <= 1.2 * wanted + 2:
            raise WrongAnswerError(f"{moved} pages were moved, expected about {wanted:g}")
        return taken_ns / NS_PER_US

    def _memory(self, entries: int) -> float:
        """Bytes an entry of resident memory from before the pool was built to after it was filled, payload included."""
        self.subject.build(64)
        self.subject.fill(32)
        gc.collect()
        before = resident_bytes()
        self.subject.build(entries)
        self.subject.fill(entries)
        gc.collect()
        self._state = ("filled", entries)
        return (resident_bytes() - before) / entries


def resident_bytes() -> int:
    """Resident memory of this process, in bytes. Raises CannotError where that cannot be had."""
    try:
        import psutil
    except ImportError:
        raise CannotError("psutil is not installed: pip install 'poolproof[bench]'") from None
    return int(psutil.Process().memory_info().rss)


@contextmanager
def _quiet() -> Iterator[None]:
    """No garbage collection inside."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _expect(what: str, found: int, expected: int) -> None:
    if found != expected:
        raise WrongAnswerError(f"{what}: {found}, expected {expected}")
