"""How a campaign is told: where it is while it runs, and what it found."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from poolproof_conformance.cli.terminal import PLAIN_LINE_EVERY_S, coloured, note
from poolproof_conformance.wording import plural
from poolproof_spec.catalogue import property_named

if TYPE_CHECKING:
    from poolproof_conformance.campaigns.rows import CellTotals, KindRow
    from poolproof_conformance.campaigns.runner import Progress
    from poolproof_conformance.campaigns.store import Store
    from poolproof_conformance.campaigns.summary import CampaignSummary

MOST_DOUBTS_SHOWN = 3


@contextmanager
def progress_told(budget_s: float) -> Iterator[Callable[[Progress], None]]:
    """Yields a function that is told where the campaign is; a bar on a terminal, else a line now and then."""
    if sys.stderr.isatty():
        columns = (TextColumn("campaign"), BarColumn(), TextColumn("{task.description}"))
        with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("", total=budget_s)
            yield lambda progress: bar.update(
                task, completed=progress.seconds, description=_progress_words(progress, budget_s)
            )
        return
    last = time.monotonic()

    def tell(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= PLAIN_LINE_EVERY_S:
            last = time.monotonic()
            note(f"campaign: {_progress_words(progress, budget_s)}")

    yield tell


def clock(seconds: float) -> str:
    """90 seconds are 1:30."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}"


def _progress_words(progress: Progress, budget_s: float) -> str:
    shrinking = f", {progress.to_shrink} to shrink" if progress.to_shrink else ""
    return (
        f"{clock(progress.seconds)} of {clock(budget_s)}, {plural(progress.jobs, 'job')}, "
        f"{progress.histories} histories in this run, {plural(progress.kinds, 'kind')}{shrinking}"
    )


def summary_lines(store: Store, summary: CampaignSummary) -> Iterator[str]:
    """The whole result: a line for each cell, then one for each kind."""
    cells, kinds = store.cells(), store.kinds()
    for totals in cells:
        yield from _cell_lines(totals, [kind for kind in kinds if kind.cell == totals.cell])
    by_kind: dict[tuple[str, str], list[KindRow]] = {}
    for kind in kinds:
        by_kind.setdefault((kind.property, kind.signature), []).append(kind)
    for (name, signature), rows in sorted(by_kind.items()):
        smallest = min(rows, key=lambda kind: (kind.operations, kind.trace_file))
        size = f"{plural(smallest.operations, 'operation')}, in {plural(len(rows), 'cell')}"
        yield f"{property_named(name).code} {name}: {signature}"
        yield f"    {size}: {store.traces_folder / smallest.trace_file}"
    targets = sorted({totals.cell.target for totals in cells})
    for target in targets:
        found = {(kind.property, kind.signature) for kind in kinds if kind.cell.target == target}
        longest = max((kind.operations for kind in kinds if kind.cell.target == target), default=0)
        length = f", the longest of {plural(longest, 'operation')}" if found else ""
        yield f"{target}: {plural(len(found), 'kind')} of failure{length}"
    state = f"run {summary.run_state}, {clock(summary.seconds)}"
    yield f"campaign: {coloured(summary.verdict)}; {state}; traces in {store.traces_folder}"


def _cell_lines(totals: CellTotals, kinds: list[KindRow]) -> Iterator[str]:
    counts = f"{totals.histories} histories, {plural(totals.operations, 'operation')}"
    unbuilt = f", {totals.unbuilt} not buildable" if totals.unbuilt else ""
    found = f"; {plural(len(kinds), 'kind')}" if kinds else ""
    yield f"{totals.cell.title}: {coloured(totals.verdict)}; {counts}{unbuilt}{found}"
    doubts = sorted(totals.doubts.items(), key=lambda doubt: -doubt[1])
    for reason, count in doubts[:MOST_DOUBTS_SHOWN]:
        yield f"    unknown, {count} histories: {reason}"
    if len(doubts) > MOST_DOUBTS_SHOWN:
        yield f"    ... and {plural(len(doubts) - MOST_DOUBTS_SHOWN, 'other reason')}"
