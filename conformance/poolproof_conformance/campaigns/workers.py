"""The processes that do a campaign's work: one task at a time each, watched, replaced when they fall silent or die."""

import signal
import time
import traceback
from collections.abc import Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Protocol

from poolproof_conformance.campaigns.jobs import Job, JobResult, PendingShrink, ShrinkResult
from poolproof_conformance.campaigns.work import Workshop, unshrunk
from poolproof_conformance.child import START_TIMEOUT_S

Task = Job | PendingShrink
Result = JobResult | ShrinkResult

TICK_EVERY_S = 1.0
"""How often a worker says that it lives, in seconds."""
STOP = None
"""Sent instead of a task: end."""


class WorkerError(RuntimeError):
    """A fault of poolproof itself in a worker; the message holds its traceback."""


class Workers(Protocol):
    """Who does the tasks."""

    def idle(self) -> bool:
        """Whether another task can be given."""

    def busy(self) -> bool:
        """Whether some task has been given and no result of it told."""

    def give(self, task: Task) -> None:
        """Begin a task."""

    def results(self, timeout_s: float) -> Sequence[Result]:
        """What has come back, after at most that time. Raises WorkerError."""

    def close(self) -> None:
        """End everything, whatever it still does."""


class LocalWorkers:
    """Processes of this machine."""

    def __init__(self, count: int, silence_limit_s: float) -> None:
        self._workers = [_Worker(silence_limit_s) for _ in range(count)]

    def idle(self) -> bool:
        """See Workers."""
        return any(worker.task is None for worker in self._workers)

    def busy(self) -> bool:
        """See Workers."""
        return any(worker.task is not None for worker in self._workers)

    def give(self, task: Task) -> None:
        """See Workers."""
        next(worker for worker in self._workers if worker.task is None).give(task)

    def results(self, timeout_s: float) -> Sequence[Result]:
        """See Workers."""
        busy = [worker for worker in self._workers if worker.task is not None]
        wait([worker.connection for worker in busy], timeout_s)
        return [result for worker in busy if (result := worker.result()) is not None]

    def close(self) -> None:
        """See Workers."""
        for worker in self._workers:
            worker.end()


def silence_limit_s(history_limit_s: float) -> float:
    """Longest time, in seconds, in which a worker that lives says nothing: a start, and a history."""
    return START_TIMEOUT_S + 2 * history_limit_s


def lost(task: Task, why: str) -> Result:
    """What a task comes to whose worker did not end it: unknown, with the reason."""
    if isinstance(task, PendingShrink):
        return unshrunk(task, why)
    return JobResult(cell=task.cell, stage=task.stage, number=task.number, doubts={why: 1})


class _Worker:
    """One process; started with its first task."""

    connection: Connection

    def __init__(self, limit_s: float) -> None:
        self.task: Task | None = None
        self._limit_s = limit_s
        self._heard_s = 0.0
        self._process: BaseProcess | None = None

    def give(self, task: Task) -> None:
        if self._process is None:
            # A fresh interpreter: pipes to other workers' engines must not be inherited by a fork.
            context = get_context("spawn")
            self.connection, theirs = context.Pipe()
            self._process = context.Process(target=work, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        self.task = task
        self._heard_s = time.monotonic()
        self.connection.send(task)

    def result(self) -> Result | None:
        """The result, if it is there. A worker that died, or is silent for too long, is replaced by the next task."""
        assert self.task is not None and self._process is not None
        try:
            while self.connection.poll():
                self._heard_s = time.monotonic()
                message: Result | WorkerError | None = self.connection.recv()
                if isinstance(message, WorkerError):
                    raise message
                if message is not None:
                    self.task = None
                    return message
        except (EOFError, OSError):
            self._process.join()
            return self._lost(f"the worker's process ended with {self._process.exitcode}")
        if time.monotonic() - self._heard_s > self._limit_s:
            return self._lost(f"the worker gave no sign of life for {self._limit_s:g} s")
        return None

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self.connection.close()
        self._process = self.task = None

    def _lost(self, why: str) -> Result:
        task = self.task
        assert task is not None
        self.end()
        return lost(task, why)


def work(connection: Connection) -> None:
    """Body of a worker's process; an interrupt is its parent's business, whose end is its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    told_s = time.monotonic()

    def tick() -> None:
        nonlocal told_s
        if time.monotonic() - told_s >= TICK_EVERY_S:
            told_s = time.monotonic()
            connection.send(None)

    shop = Workshop(tick)
    try:
        while (task := connection.recv()) is not STOP:
            connection.send(done(shop, task))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    finally:
        shop.close()


def done(shop: Workshop, task: Task) -> Result | WorkerError:
    """The result of a task; a fault of poolproof itself is handed over with its traceback."""
    try:
        return shop.shrink(task) if isinstance(task, PendingShrink) else shop.run(task)
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception:
        return WorkerError(traceback.format_exc())
