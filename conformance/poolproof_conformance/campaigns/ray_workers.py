"""The same work on a Ray cluster: one actor for each worker, wherever Ray places it.

Every node needs poolproof and the targets installed. Ray itself is an optional extra and only imported here.
"""

import time
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from poolproof_conformance.campaigns.work import Workshop
from poolproof_conformance.campaigns.workers import Result, Task, WorkerError, done, lost
from poolproof_conformance.errors import PoolproofError

LOCAL = "local"
"""Address that means: start a small cluster on this machine, and end it afterwards."""


class RayError(PoolproofError):
    """Ray is not installed, or there is no cluster at that address."""


class RayWorker:
    """An actor: a workshop of its own on some node."""

    def __init__(self) -> None:
        self._shop = Workshop()

    def do(self, task: Task) -> Result | WorkerError:
        """The result of a task."""
        return done(self._shop, task)


class RayWorkers:
    """See Workers; the processes are Ray's."""

    def __init__(self, address: str, count: int, silence_limit_s: float) -> None:
        if find_spec("ray") is None:
            raise RayError("--ray needs Ray, which is not installed", "pip install 'poolproof[ray]'")
        self._ray = ray = import_module("ray")
        self._limit_s = silence_limit_s
        where: dict[str, Any] = {"num_cpus": count} if address == LOCAL else {"address": address}
        try:
            ray.init(log_to_driver=False, logging_level="ERROR", include_dashboard=False, **where)
        except (ConnectionError, RuntimeError, ValueError) as error:
            words = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise RayError(f"no Ray cluster at {address}: {words}", "ray start --head, then --ray auto") from None
        self._actor_class = ray.remote(num_cpus=1, max_restarts=0)(RayWorker)
        self._idle = [self._actor_class.remote() for _ in range(count)]
        self._busy: dict[Any, tuple[Any, Task, float]] = {}

    def idle(self) -> bool:
        """See Workers."""
        return bool(self._idle)

    def busy(self) -> bool:
        """See Workers."""
        return bool(self._busy)

    def give(self, task: Task) -> None:
        """See Workers."""
        actor = self._idle.pop()
        self._busy[actor.do.remote(task)] = (actor, task, time.monotonic())

    def results(self, timeout_s: float) -> Sequence[Result]:
        """See Workers. A task has no signs of life here, so its limit is one for the whole task."""
        ready, _ = self._ray.wait(list(self._busy), num_returns=1, timeout=timeout_s)
        found = [self._result(reference) for reference in ready]
        late = [
            reference
            for reference, (_, task, begun) in self._busy.items()
            if time.monotonic() - begun > self._limit_s + TASK_HISTORIES * task.history_limit_s
        ]
        return found + [self._lost(reference, "the task took too long") for reference in late]

    def close(self) -> None:
        """Let go of the cluster; its actors end with that."""
        self._ray.shutdown()

    def _result(self, reference: Any) -> Result:
        try:
            result: Result | WorkerError = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            return self._lost(reference, f"the worker's process was lost: {type(error).__name__}")
        actor, _, _ = self._busy.pop(reference)
        self._idle.append(actor)
        if isinstance(result, WorkerError):
            raise result
        return result

    def _lost(self, reference: Any, why: str) -> Result:
        actor, task, _ = self._busy.pop(reference)
        self._ray.kill(actor)
        self._idle.append(self._actor_class.remote())
        return lost(task, why)


TASK_HISTORIES = 4
"""Histories that may take their whole limit before a job is left (work.py), and one more."""
