"""What a worker does: run the histories of one job, or shrink one sighting, and tell what came of it."""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from msgspec.structs import replace

from poolproof_conformance.adapter import Adapter
from poolproof_conformance.campaign import failure_trace
from poolproof_conformance.campaigns import random_histories
from poolproof_conformance.campaigns.cells import is_offered, target_of
from poolproof_conformance.campaigns.jobs import EXHAUSTIVE, Job, JobResult, PendingShrink, ShrinkResult, Sighting
from poolproof_conformance.campaigns.limited_run import run_limited, short_reason
from poolproof_conformance.campaigns.scope import exhaustive_histories
from poolproof_conformance.campaigns.signature import SEPARATOR, failing_step, signature_of
from poolproof_conformance.campaigns.simplify import smallest
from poolproof_conformance.child import TargetFailureError
from poolproof_conformance.conform import Failure
from poolproof_conformance.generator import History
from poolproof_conformance.run import HistoryRun, checked_properties
from poolproof_conformance.target_names import Target
from poolproof_conformance.trace_format import FORMAT, Trace
from poolproof_conformance.traces import trace_text
from poolproof_spec.catalogue import PROPERTIES
from poolproof_spec.transition import Transition

HISTORIES_A_JOB = 100
"""Of the exhaustive stage; a second or two on a released engine."""
SHRINK_RUNS = 300
"""Most histories that one shrink runs."""
MOST_FAILURES = 3
"""Histories of a job that end with a target that hangs or dies, before the rest of the job is left."""
OPEN_TARGETS = 8
"""Targets, each with its process, that a worker keeps."""

Tick = Callable[[], None]
"""Called after each history, so that whoever waits knows that the worker lives."""


def exhaustive_jobs(layout: str) -> int:
    """How many jobs the exhaustive stage of a layout has."""
    return -(-len(exhaustive_histories(layout)) // HISTORIES_A_JOB)


class Workshop:
    """The targets that one worker has open. Close it, or use it in a `with`."""

    def __init__(self, tick: Tick = lambda: None) -> None:
        self._tick = tick
        self._open: OrderedDict[Target, tuple[Adapter, ExitStack]] = OrderedDict()

    def adapter(self, target: Target) -> Adapter:
        """An adapter of the target; the one that was not used for longest is closed when there are too many."""
        if target not in self._open:
            stack = ExitStack()
            self._open[target] = (stack.enter_context(target.opened()), stack)
            while len(self._open) > OPEN_TARGETS:
                self._open.popitem(last=False)[1][1].close()
        self._open.move_to_end(target)
        return self._open[target][0]

    def close(self) -> None:
        """End every target's process."""
        for _, stack in self._open.values():
            stack.close()
        self._open.clear()

    def run(self, job: Job) -> JobResult:
        """Run and judge the histories of a job; a target that cannot even be started is one doubt."""
        started = time.monotonic()
        target = target_of(job.cell)
        try:
            count = _Count(target, self.adapter(target), job, self._tick)
        except TargetFailureError as error:
            doubts = {short_reason(error.reason, target): 1}
            return JobResult(cell=job.cell, stage=job.stage, number=job.number, doubts=doubts)
        if job.stage == EXHAUSTIVE:
            for history in _part(job):
                count.take(history)
        else:
            random_histories.draw(count.take, layout=job.cell.layout, seed_number=job.seed, number=job.number)
        return count.result(time.monotonic() - started)

    def shrink(self, sighting: PendingShrink) -> ShrinkResult:
        """Make the sighting small, name its kind, and write its trace."""
        started = time.monotonic()
        target = target_of(sighting.cell)
        adapter = self.adapter(target)

        def fails(history: History) -> int | None:
            run = run_limited(adapter, history, sighting.history_limit_s).run
            self._tick()
            found = failing_step(run, sighting.property, sighting.bucket)
            return None if found is None else found[0].index

        history = smallest(sighting.history, fails, SHRINK_RUNS)
        run = run_limited(adapter, history, sighting.history_limit_s).run
        found = failing_step(run, sighting.property, sighting.bucket)
        if found is None:
            return unshrunk(sighting, "seen once and not again")
        failure = Failure(sighting.property, 1, history, found[1])
        trace = failure_trace(target, adapter, failure, sighting.seed)
        return ShrinkResult(
            sighting=sighting,
            signature=signature_of(*found),
            operations=len(history[1]),
            message=failure.message,
            trace=trace_text(replace(trace, source=source_of(sighting))),
            seconds=time.monotonic() - started,
        )


def unshrunk(sighting: PendingShrink, why: str) -> ShrinkResult:
    """The sighting as it is, where it could not be made small: a kind of its own, which says why."""
    geometry, operations = sighting.history
    trace = Trace(
        format=FORMAT,
        name=f"{sighting.property} on {sighting.cell.title}",
        source=source_of(sighting),
        note=why,
        mode=sighting.cell.mode,
        geometry=geometry,
        operations=operations,
    )
    return ShrinkResult(
        sighting=sighting,
        signature=f"{sighting.bucket}{SEPARATOR}{why}",
        operations=len(operations),
        message=why,
        trace=trace_text(trace),
    )


def source_of(sighting: PendingShrink) -> str:
    """Where a kind's trace comes from."""
    if sighting.stage == EXHAUSTIVE:
        return f"a campaign: small histories, part {sighting.number}"
    return f"a campaign: random histories of seed {sighting.seed}, part {sighting.number}"


class _Count:
    """What a job comes to, history by history."""

    def __init__(self, target: Target, adapter: Adapter, job: Job, tick: Tick) -> None:
        self._target, self._adapter, self._job, self._tick = target, adapter, job, tick
        self._description = adapter.describe()
        self._witnessed: Counter[str] = Counter()
        self._doubts: Counter[str] = Counter()
        self._sightings: dict[tuple[str, str], Sighting] = {}
        self._histories = self._operations = self._unbuilt = self._failures = 0

    def take(self, history: History) -> None:
        """Run and judge one history, unless the target has not all its operations or has failed too often."""
        if self._failures >= MOST_FAILURES:
            return
        if self._job.stage == EXHAUSTIVE and not all(is_offered(o, self._description.cannot) for o in history[1]):
            return
        ended = run_limited(self._adapter, history, self._job.history_limit_s, self._witness)
        run = ended.run
        self._tick()
        if not run.built:
            self._unbuilt += 1
            return
        self._histories += 1
        self._failures += ended.target_failed
        if ended.doubt:
            self._doubts[short_reason(ended.doubt, self._target)] += 1
        for name in run.violated():
            self._sight(history, run, name)

    def result(self, seconds: float) -> JobResult:
        """The whole job."""
        checked = checked_properties(self._description)
        return JobResult(
            cell=self._job.cell,
            stage=self._job.stage,
            number=self._job.number,
            histories=self._histories,
            operations=self._operations,
            unbuilt=self._unbuilt,
            witnessed=dict(self._witnessed),
            unchecked=tuple(rule.name for rule in PROPERTIES if rule not in checked),
            doubts=dict(self._doubts),
            sightings=tuple(self._sightings.values()),
            seconds=seconds,
        )

    def _witness(self, transition: Transition) -> None:
        self._operations += 1
        self._witnessed.update(rule.name for rule in PROPERTIES if rule.witness(transition))

    def _sight(self, history: History, run: HistoryRun, name: str) -> None:
        found = failing_step(run, name)
        assert found is not None
        bucket = signature_of(*found)
        shorter = (history[0], history[1][: found[0].index + 1])
        known = self._sightings.get((name, bucket))
        if known is None:
            known = Sighting(property=name, bucket=bucket, histories=0, history=shorter)
        shortest = shorter if len(shorter[1]) < len(known.history[1]) else known.history
        self._sightings[name, bucket] = replace(known, histories=known.histories + 1, history=shortest)


def _part(job: Job) -> Iterator[History]:
    start = job.number * HISTORIES_A_JOB
    yield from exhaustive_histories(job.cell.layout)[start : start + HISTORIES_A_JOB]
