"""From a campaign's file to the traces and the index that the page of findings is made of.

Each kind once, with its smallest trace on the newest target that shows it; replayed on the other targets of the
campaign, so that the page and a later test can tell whether they show it too.
"""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
from msgspec.structs import replace
from packaging.version import InvalidVersion, Version

from poolproof_conformance.adapter import Adapter
from poolproof_conformance.atomic_file import write_atomically
from poolproof_conformance.campaign import failure_trace
from poolproof_conformance.campaigns.cells import target_of
from poolproof_conformance.campaigns.rows import Cell, KindRow
from poolproof_conformance.campaigns.store import Store
from poolproof_conformance.campaigns.trace_names import kind_slug
from poolproof_conformance.conform import Failure
from poolproof_conformance.errors import PoolproofError
from poolproof_conformance.explain import explain_demand, explanation_lines
from poolproof_conformance.run import run_history
from poolproof_conformance.target_names import Target
from poolproof_conformance.trace_format import Expected, Trace, TreeCore
from poolproof_conformance.traces import parse_trace, write_trace

DEFAULT_CORE: TreeCore = "rust"
"""The tree core that the engine ships as its default."""
INDEX = "index.json"
"""The file beside the traces that tells what they are."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of failure."""

    property: str
    signature: str
    trace: str
    """Name of its trace file."""
    operations: int
    target: str
    """The newest target that shows it: there it was found and shrunk."""
    core: str | None
    mode: str | None
    modes: tuple[str, ...]
    """On that target: all modes that show it."""
    cores: tuple[str, ...]
    histories: int
    """On that target: how many histories show it."""
    shown_by: dict[str, bool]
    """Each other target of the campaign: whether the same history violates the same property there."""


class TargetFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One target's part of the campaign."""

    target: str
    cells: int
    histories: int
    operations: int
    doubts: int
    """Histories without an answer."""


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """The index file."""

    seed: str
    seconds: int
    targets: tuple[TargetFacts, ...]
    """Newest first."""
    findings: tuple[Finding, ...]


class NoFindingsError(PoolproofError):
    """A campaign that found nothing, or a folder without an index."""


def newest_first(names: Sequence[str]) -> list[str]:
    """Targets by version, the newest first; those without one last."""

    def key(name: str) -> tuple[Version, str]:
        try:
            return Version(name.partition("==")[2]), name
        except InvalidVersion:
            return Version("0"), name

    return sorted(dict.fromkeys(names), key=key, reverse=True)


def collect(store: Store, folder: Path) -> Findings:
    """Write the traces and the index of a campaign into `folder`; older ones there go. Raises NoFindingsError."""
    kinds, cells = store.kinds(), store.cells()
    if not kinds:
        raise NoFindingsError(
            f"{store.path}: no kind of failure in it", "run a campaign on a target that violates something"
        )
    names = newest_first([totals.cell.target for totals in cells])
    by_kind: dict[tuple[str, str], list[KindRow]] = {}
    for kind in kinds:
        by_kind.setdefault((kind.property, kind.signature), []).append(kind)
    for stale in folder.glob("*.json"):
        stale.unlink()
    with _Adapters() as adapters:
        findings = [_collected(rows, names, adapters, folder) for _, rows in sorted(by_kind.items())]
    facts = tuple(_facts(name, store) for name in names)
    index = Findings(
        seed=store.settings()["seed"], seconds=round(store.seconds()), targets=facts, findings=tuple(findings)
    )
    text = msgspec.json.format(msgspec.json.encode(index), indent=2).decode()
    write_atomically(folder / INDEX, text + "\n")
    return index


def read_findings(folder: Path) -> Findings:
    """The index in a folder. Raises NoFindingsError."""
    try:
        return msgspec.json.decode((folder / INDEX).read_bytes(), type=Findings)
    except (OSError, msgspec.MsgspecError) as error:
        fix = f"poolproof campaign findings DB --traces {folder} --markdown FILE"
        raise NoFindingsError(f"{folder / INDEX}: no index of findings: {error}", fix) from None


def _facts(name: str, store: Store) -> TargetFacts:
    mine = [totals for totals in store.cells() if totals.cell.target == name]
    return TargetFacts(
        target=name,
        cells=len(mine),
        histories=sum(totals.histories for totals in mine),
        operations=sum(totals.operations for totals in mine),
        doubts=sum(sum(totals.doubts.values()) for totals in mine),
    )


class _Adapters(ExitStack):
    """Adapters by cell, each opened once."""

    def __init__(self) -> None:
        super().__init__()
        self._opened: dict[Target, Adapter] = {}

    def of(self, cell: Cell) -> tuple[Target, Adapter]:
        target = target_of(cell)
        if target not in self._opened:
            self._opened[target] = self.enter_context(target.opened())
        return target, self._opened[target]


def _collected(rows: Sequence[KindRow], names: Sequence[str], adapters: _Adapters, folder: Path) -> Finding:
    """Write one kind's trace, with what each target does, and tell what it is."""
    newest = next(name for name in names if any(row.cell.target == name for row in rows))
    there = [row for row in rows if row.cell.target == newest]
    smallest = min(there, key=lambda row: (row.operations, len(row.trace), row.trace_file))
    slug = kind_slug(smallest.property, smallest.signature)
    trace = parse_trace(smallest.trace.encode(), smallest.trace_file)
    smallest = _on_default_core(smallest, trace, adapters)
    known = {name: _on(name, smallest, trace, adapters) for name in names}
    expected = Expected(
        outcomes=trace.expected.outcomes,
        targets=tuple(one for name in names for one in known[name].expected.targets),
    )
    written = replace(known[newest], name=slug, source=trace.source, expected=expected)
    _, adapter = adapters.of(smallest.cell)
    write_trace(folder / f"{slug}.json", replace(written, explanation=_explanation(adapter, written)))
    shown = {one.target: smallest.property in one.violates for one in expected.targets if one.target != newest}
    return Finding(
        property=smallest.property,
        signature=smallest.signature,
        trace=f"{slug}.json",
        operations=smallest.operations,
        target=newest,
        core=smallest.cell.core,
        mode=smallest.cell.mode,
        modes=tuple(_named(row.cell.mode for row in there)),
        cores=tuple(_named(row.cell.core for row in (*there, smallest))),
        histories=sum(row.histories for row in there),
        shown_by=shown,
    )


def _on_default_core(kind: KindRow, trace: Trace, adapters: _Adapters) -> KindRow:
    """The kind as the default tree core shows it, if it does: so that a replay of the page needs few processes."""
    if kind.cell.core in (None, DEFAULT_CORE):
        return kind
    other = replace(kind, cell=replace(kind.cell, core=DEFAULT_CORE))
    shown = _on(kind.cell.target, other, trace, adapters).expected.targets[0].violates
    return other if kind.property in shown else kind


def _explanation(adapter: Adapter, trace: Trace) -> str:
    """Why the model answers the last demand as it does in the target's state, in lines; empty where it is none."""
    run = run_history(adapter, trace.geometry, trace.operations)
    last = run.steps[-1] if run.steps else None
    explained = explain_demand(last.before, last.operation) if last is not None else None
    return "\n".join(explanation_lines(explained)) if explained is not None else ""


def _named(names: Iterable[str | None]) -> list[str]:
    return sorted({name for name in names if name is not None})


def _on(name: str, kind: KindRow, trace: Trace, adapters: _Adapters) -> Trace:
    """The trace as one target shows it."""
    target, adapter = adapters.of(replace(kind.cell, target=name))
    failure = Failure(kind.property, 1, (trace.geometry, trace.operations), kind.message)
    return failure_trace(target, adapter, failure, 0)
