"""Run a campaign: hand jobs to workers until the time is up, keep each result at once, shrink each new bucket."""

import time
from collections import deque
from collections.abc import Callable, Iterator

import msgspec
from msgspec.structs import replace

from poolproof_conformance.campaigns.jobs import Job, JobResult, PendingShrink, ShrinkResult
from poolproof_conformance.campaigns.plan import Plan
from poolproof_conformance.campaigns.recording import Recording
from poolproof_conformance.campaigns.rows import Cell
from poolproof_conformance.campaigns.store import Store, distinct_kinds
from poolproof_conformance.campaigns.work import exhaustive_jobs
from poolproof_conformance.campaigns.workers import Result, Workers
from poolproof_conformance.traces import parse_trace, write_trace

LOOK_EVERY_S = 1.0
"""How long the loop waits for results at a time, in seconds."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a campaign is."""

    seconds: float
    """Of all runs together."""
    jobs: int
    """Finished, in all runs."""
    histories: int
    """In this run."""
    kinds: int
    """(property, signature) found, whatever the core and mode, in all runs."""
    to_shrink: int


def run_campaign(
    store: Recording, plan: Plan, workers: Workers, on_progress: Callable[[Progress], None] = lambda progress: None
) -> None:
    """Go on with the campaign in `store`. What is finished is kept whatever happens, a KeyboardInterrupt too.

    Jobs are begun until the budget is spent; what they found is still shrunk afterwards. Raises WorkerError.
    """
    Runner(store, plan, workers, on_progress).run()


class Runner:
    """One run."""

    def __init__(self, store: Recording, plan: Plan, workers: Workers, on_progress: Callable[[Progress], None]) -> None:
        self._store, self._plan, self._workers, self._on_progress = store, plan, workers, on_progress
        self._earlier_s = store.seconds()
        self._started_s = time.monotonic()
        self._finished = store.jobs_done()
        self._jobs = self._jobs_left()
        self._first = store.first_places()
        self._to_shrink = deque(self._completed(sighting) for sighting in store.pending())
        self._kinds = distinct_kinds(store.kinds())
        self._histories = 0
        self._run = store.begin_run(plan.cells)

    def run(self) -> None:
        """Until nothing is left to begin and nothing to wait for."""
        try:
            while self._begin_all() or self._workers.busy():
                for result in self._workers.results(LOOK_EVERY_S):
                    self._keep(result)
                self._on_progress(self._progress())
        except BaseException:
            self._store.end_run(self._run, self._elapsed_s(), "partial")
            raise
        self._store.end_run(self._run, self._elapsed_s(), "complete")

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._started_s

    def _jobs_left(self) -> Iterator[Job]:
        for job in self._plan.jobs(exhaustive_jobs):
            if (job.cell, job.stage, job.number) not in self._finished:
                yield job

    def _begin_all(self) -> bool:
        """Give every idle worker something; whether any got a task."""
        begun = False
        while self._workers.idle():
            task = self._next_shrink() or self._next_job()
            if task is None:
                break
            self._workers.give(task)
            begun = True
        return begun

    def _next_shrink(self) -> PendingShrink | None:
        while self._to_shrink:
            sighting = self._to_shrink.popleft()
            if self._first[_bucket(sighting)] == (sighting.stage, sighting.number):
                return sighting
        return None

    def _next_job(self) -> Job | None:
        if self._earlier_s + self._elapsed_s() >= self._plan.budget_s:
            return None
        return next(self._jobs, None)

    def _keep(self, result: Result) -> None:
        if isinstance(result, ShrinkResult):
            self._store.add_shrunk(result, self._run, self._elapsed_s())
            self._kinds.add((result.sighting.property, result.signature))
            return
        self._store.add_job(result, self._run, self._elapsed_s())
        self._finished.add((result.cell, result.stage, result.number))
        self._histories += result.histories
        for sighting in _sightings(result):
            place = (sighting.stage, sighting.number)
            if place < self._first.get(_bucket(sighting), (place[0] + 1, 0)):
                self._first[_bucket(sighting)] = place
                self._to_shrink.append(self._completed(sighting))

    def _completed(self, sighting: PendingShrink) -> PendingShrink:
        return replace(sighting, seed=self._plan.seed, history_limit_s=self._plan.history_limit_s)

    def _progress(self) -> Progress:
        return Progress(
            seconds=self._earlier_s + self._elapsed_s(),
            jobs=len(self._finished),
            histories=self._histories,
            kinds=len(self._kinds),
            to_shrink=len(self._to_shrink),
        )


def _bucket(sighting: PendingShrink) -> tuple[Cell, str, str]:
    return sighting.cell, sighting.property, sighting.bucket


def _sightings(result: JobResult) -> Iterator[PendingShrink]:
    for seen in result.sightings:
        yield PendingShrink(
            cell=result.cell,
            stage=result.stage,
            number=result.number,
            property=seen.property,
            bucket=seen.bucket,
            history=seen.history,
        )


def write_traces(store: Store) -> None:
    """Every kind's trace as a file below the campaign's folder. Raises OutputFileError."""
    for kind in store.kinds():
        trace = parse_trace(kind.trace.encode(), kind.trace_file)
        write_trace(store.traces_folder / kind.trace_file, trace)
