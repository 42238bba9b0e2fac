"""The main job: the seed's table, the agreements, and random histories on our pools and on released engines.

What must hold are our pools, the agreements and the seed's figures. What a released engine violates is a finding.
"""

import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

from poolproof_conformance.agreements import agree
from poolproof_conformance.campaign import Campaign, run_campaign
from poolproof_conformance.child import TargetFailureError
from poolproof_conformance.report import AgreementRow, CheckReport, ConformanceRow, SeedCaseRow, merged
from poolproof_conformance.seed_cases import SeedResult, expected_of, run_seed_case, seed_cases
from poolproof_conformance.target_names import BUNDLED_TARGETS, Target, resolve_target
from poolproof_conformance.trace_format import Mode, TreeCore
from poolproof_spec.geometry import LAYOUTS
from poolproof_spec.verdict import Verdict, worst

TREE_CORES: tuple[TreeCore, ...] = ("rust", "python")
MODES: tuple[Mode, ...] = ("eager", "lazy")
CHUNK = 1000
"""Histories of one of our pools that are run at a time, each chunk from a seed of its own."""


@dataclass(frozen=True)
class Plan:
    """What one check runs."""

    releases: tuple[str, ...]
    """Names of the released engines, which must be installed."""
    traces: int
    """On each of our pools."""
    release_traces: int
    """In each compaction mode."""
    seed: int
    folder: Path
    """Where traces of what fails are written."""

    def seed_targets(self) -> list[Target]:
        """Our pools, and each release with both tree cores in both modes."""
        runs = product(self.releases, TREE_CORES, MODES)
        ours = [resolve_target(name) for name in BUNDLED_TARGETS]
        return [*ours, *(resolve_target(name, core, mode) for name, core, mode in runs)]

    def conformance_targets(self) -> list[Target]:
        """Each release with the tree core that it ships as default, in both modes."""
        return [resolve_target(name, "rust", mode) for name, mode in product(self.releases, MODES)]

    def chunks(self) -> list[tuple[int, int]]:
        """(seed, histories) of each of our pools' chunks."""
        starts = range(0, self.traces, CHUNK)
        return [(self.seed + number, min(CHUNK, self.traces - start)) for number, start in enumerate(starts)]


@dataclass(frozen=True)
class SeedRow:
    """One target's line of the seed's table."""

    target: Target
    results: tuple[SeedResult, ...]

    @property
    def verdict(self) -> Verdict:
        """Whether the figures are the known ones; a case without an answer is unknown."""
        return worst(self._verdict_of(result) for result in self.results)

    def _verdict_of(self, result: SeedResult) -> Verdict:
        if result.granted is None or result.reason:
            return "unknown"
        expected = expected_of(self.target.name, result.case)
        return "holds" if (result.granted, result.evicted_tokens) == expected else "violated"


def seed_rows(plan: Plan) -> Iterator[SeedRow]:
    """The seed's table, line by line."""
    for target in plan.seed_targets():
        results = []
        with target.opened() as adapter:
            for case in seed_cases():
                try:
                    results.append(run_seed_case(adapter, case))
                except TargetFailureError as error:
                    results.append(SeedResult(case.name, None, 0, error.reason))
        yield SeedRow(target, tuple(results))


def release_campaigns(plan: Plan) -> Iterator[Campaign]:
    """Random histories on each release, in both modes."""
    for target in plan.conformance_targets():
        with target.opened() as adapter:
            yield run_campaign(
                target,
                adapter,
                traces=plan.release_traces,
                seed=plan.seed,
                layouts=tuple(LAYOUTS),
                folder=plan.folder,
            )


def bundled_campaign(name: str, seed: int, traces: int, folder: Path) -> Campaign:
    """Random histories on one of our pools."""
    target = resolve_target(name)
    with target.opened() as adapter:
        return run_campaign(
            target, adapter, traces=traces, seed=seed, layouts=tuple(LAYOUTS), folder=folder / f"seed-{seed}"
        )


def agreement_rows() -> tuple[AgreementRow, ...]:
    """The agreements on every TINY state."""
    return tuple(AgreementRow(name=a.name, states=a.states, verdict=a.verdict) for a in agree())


class SecondCore:
    """What needs no engine runs in a process of its own, beside the engines: agreements, then our pools."""

    def __init__(self, plan: Plan) -> None:
        # A fresh interpreter: the pipes of the engines' processes must not be inherited by a fork.
        context = get_context("spawn")
        self._results, sending = context.Pipe(duplex=False)
        self._process = context.Process(target=_second_core, args=(plan, sending), daemon=True)
        self._process.start()
        sending.close()

    def agreements(self) -> tuple[AgreementRow, ...]:
        """The first result; waits for it."""
        return cast(tuple[AgreementRow, ...], self._next())

    def campaign(self) -> Campaign:
        """The next chunk of the pools of BUNDLED_TARGETS, one pool after the other; waits for it."""
        return cast(Campaign, self._next())

    def close(self) -> None:
        """End the process, whatever it still does."""
        self._process.kill()
        self._process.join()

    def _next(self) -> object:
        try:
            return self._results.recv()
        except EOFError:
            self._process.join()
            raise RuntimeError(f"the process beside the engines ended with {self._process.exitcode}") from None


def _second_core(plan: Plan, results: Connection) -> None:
    """Body of the process; an interrupt is its parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    results.send(agreement_rows())
    for name, (seed, traces) in product(BUNDLED_TARGETS, plan.chunks()):
        results.send(bundled_campaign(name, seed, traces, plan.folder))


def report_of(
    table: Sequence[SeedRow],
    agreements: tuple[AgreementRow, ...],
    ours: Sequence[ConformanceRow],
    releases: Sequence[ConformanceRow],
) -> CheckReport:
    """The whole check; nothing a release violates makes it fail, but one that could not be judged leaves it unknown."""
    figures = worst(row.verdict for row in table)
    agreed = worst(agreement.verdict for agreement in agreements)
    unjudged = [row.verdict for row in releases if row.verdict == "unknown"]
    verdict = worst([figures, agreed, *(row.verdict for row in ours), *unjudged])
    by_target = {row.target: [other for other in releases if other.target == row.target] for row in releases}
    return CheckReport(
        verdict=verdict,
        seed_cases=tuple(
            SeedCaseRow(
                target=row.target.name,
                tree_core=row.target.tree_core,
                mode=row.target.mode,
                case=result.case,
                granted=result.granted,
                evicted_tokens=result.evicted_tokens,
            )
            for row in table
            for result in row.results
        ),
        agreements=agreements,
        conformance=(*ours, *(merged(rows) for rows in by_target.values())),
    )
