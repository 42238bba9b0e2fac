"""Reading what a report is made from: campaigns' databases, and traces that are run here and now."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from msgspec.structs import replace

from poolproof_conformance.campaigns.rows import Cell as CampaignCell
from poolproof_conformance.campaigns.rows import CellTotals, KindRow
from poolproof_conformance.campaigns.store import Store
from poolproof_conformance.errors import TraceFileError
from poolproof_conformance.reporting.rows import Cell, Gathered, Kind, Sighting, Variant, operations_of
from poolproof_conformance.reporting.traced import TracedRun, run_traces, variant_of
from poolproof_conformance.target_names import Target
from poolproof_conformance.trace_format import Trace
from poolproof_conformance.traces import parse_trace, read_trace
from poolproof_spec.catalogue import PROPERTIES
from poolproof_spec.geometry import layout_name

_SQLITE = b"SQLite format 3\0"
"""How every SQLite file begins."""


def is_database(path: Path) -> bool:
    """Whether the file is an SQLite database. Raises TraceFileError where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except FileNotFoundError:
        raise TraceFileError(f"{path}: no such file", "give a campaign's --db, or traces") from None
    except OSError as error:
        raise TraceFileError(f"{path}: {error.strerror}", "give a campaign's --db, or readable traces") from None


def gather(
    paths: Sequence[Path], targets: Mapping[Path, Sequence[Target | str]], on_run: Callable[[], None] = lambda: None
) -> tuple[Gathered, list[TracedRun]]:
    """Everything in the files, and the runs it took: databases are read, traces run, each on its `targets`.

    A target that is a str is the name of one that cannot be run here: its cell is unknown.
    """
    runs = run_traces([(path, trace, target) for path, trace, target in _asked(targets)], on_run=on_run)
    parts = [_of_database(path) for path in paths if is_database(path)]
    parts.append(_of_runs(runs))
    gathered = Gathered(
        sources=tuple(str(path) for path in paths),
        cells=tuple(cell for part in parts for cell in part.cells),
        kinds=tuple(_merged(kind for part in parts for kind in part.kinds)),
        complete=all(part.complete for part in parts),
    )
    return gathered, runs


def _asked(targets: Mapping[Path, Sequence[Target | str]]) -> list[tuple[Path, Trace, Target | str]]:
    """What to run, target by target: one process serves all traces of a target."""
    traces = {path: read_trace(path) for path in targets}
    asked = [(path, traces[path], target) for path, chosen in targets.items() for target in chosen]
    return sorted(asked, key=lambda item: variant_of(item[2]).title)


def _of_runs(runs: Sequence[TracedRun]) -> Gathered:
    return Gathered(
        sources=(),
        cells=tuple(cell_of_run(run) for run in runs),
        kinds=tuple(kind for run in runs for kind in _kinds_of_run(run)),
    )


def cell_of_run(run: TracedRun) -> Cell:
    """One history as a cell of its own."""
    executed = [step for step in run.steps if step.outcome is not None]
    transitions = [step.transition for step in executed if step.transition is not None]
    return Cell(
        variant=run.variant,
        layout=layout_name(run.trace.geometry),
        histories=1,
        operations=len(executed),
        verdict=run.verdict,
        reason=run.reason,
        unchecked=run.unchecked,
        signature=run.trace.name,
        exercised=tuple(rule.name for rule in PROPERTIES if any(rule.witness(t) for t in transitions)),
    )


def _kinds_of_run(run: TracedRun) -> Iterator[Kind]:
    first: dict[str, str] = {}
    for step in run.steps:
        for finding in step.findings:
            if finding.verdict == "violated":
                first.setdefault(finding.property, finding.message)
    for name, message in first.items():
        yield Kind(
            property=name,
            signature=run.trace.name,
            message=message,
            trace=run.trace,
            trace_file=str(run.path),
            sightings=(Sighting(variant=run.variant, layout=layout_name(run.trace.geometry)),),
        )


def _of_database(path: Path) -> Gathered:
    with Store.read(path) as store:
        pending = [
            _pending_kind(p.cell, p.property, p.bucket, Trace(format=1, name=p.bucket, geometry=g, operations=o))
            for p in store.pending()
            for g, o in [p.history]
        ]
        return Gathered(
            sources=(),
            cells=tuple(_cell_of_totals(totals) for totals in store.cells()),
            kinds=(*(_kind_of_row(row, store.traces_folder) for row in store.kinds()), *pending),
            complete=store.run_state() == "complete",
        )


def _variant(cell: CampaignCell) -> Variant:
    return Variant(target=cell.target, tree_core=cell.core, mode=cell.mode)


def _cell_of_totals(totals: CellTotals) -> Cell:
    doubts = [f"{reason} ({count} of {totals.histories} histories)" for reason, count in totals.doubts.items()]
    return Cell(
        variant=_variant(totals.cell),
        layout=totals.cell.layout,
        histories=totals.histories,
        operations=totals.operations,
        verdict=totals.verdict,
        reason="; ".join(doubts),
        unchecked=totals.unchecked,
        exercised=tuple(totals.witnessed),
    )


def _kind_of_row(row: KindRow, folder: Path) -> Kind:
    return Kind(
        property=row.property,
        signature=row.signature,
        message=row.message,
        trace=parse_trace(row.trace.encode(), row.trace_file),
        trace_file=str(folder / row.trace_file),
        sightings=(Sighting(variant=_variant(row.cell), layout=row.cell.layout, histories=row.histories),),
    )


def _pending_kind(cell: CampaignCell, name: str, bucket: str, trace: Trace) -> Kind:
    """A failure that the campaign has not come to shrink: it counts all the same."""
    return Kind(
        property=name,
        signature=bucket,
        message="found, and not made small yet",
        trace=trace,
        trace_file="",
        sightings=(Sighting(variant=_variant(cell), layout=cell.layout),),
    )


def _merged(kinds: Iterable[Kind]) -> Iterator[Kind]:
    """Kinds of one property and signature as one: the smallest history, all sightings."""
    ordered = sorted(kinds, key=lambda kind: (kind.property, kind.signature))
    for _, group in groupby(ordered, key=lambda kind: (kind.property, kind.signature)):
        same = list(group)
        # Of equals the last: the newest release.
        smallest = min(
            reversed(same), key=lambda kind: (operations_of(kind), kind.message.startswith("found, and not"))
        )
        sightings = tuple(sighting for kind in same for sighting in kind.sightings)
        yield replace(smallest, sightings=sightings, found_on=smallest.sightings[-1].variant)
