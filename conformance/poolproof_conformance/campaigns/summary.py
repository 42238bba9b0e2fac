"""The JSON that `poolproof campaign --json` writes; others rely on these names and shapes."""

import msgspec

from poolproof_conformance.campaigns.rows import RunState
from poolproof_conformance.campaigns.store import Store
from poolproof_spec.verdict import Verdict, worst


class KindSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of failure in one cell."""

    property: str
    signature: str
    operations: int
    """Length of the smallest history."""
    trace_file: str


class CellSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One cell."""

    target: str
    core: str | None
    mode: str | None
    layout: str
    histories: int
    operations: int
    verdict: Verdict
    kinds: tuple[KindSummary, ...]


class CampaignSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A whole campaign."""

    targets: tuple[CellSummary, ...]
    run_state: RunState
    seconds: float
    """Wall time of all runs together."""

    @property
    def verdict(self) -> Verdict:
        """Of all cells together; unknown where nothing was run."""
        return worst(cell.verdict for cell in self.targets)


def summary_of(store: Store) -> CampaignSummary:
    """What a campaign's file tells."""
    kinds = store.kinds()
    return CampaignSummary(
        targets=tuple(
            CellSummary(
                target=totals.cell.target,
                core=totals.cell.core,
                mode=totals.cell.mode,
                layout=totals.cell.layout,
                histories=totals.histories,
                operations=totals.operations,
                verdict=totals.verdict,
                kinds=tuple(
                    KindSummary(
                        property=kind.property,
                        signature=kind.signature,
                        operations=kind.operations,
                        trace_file=str(store.traces_folder / kind.trace_file),
                    )
                    for kind in kinds
                    if kind.cell == totals.cell
                ),
            )
            for totals in store.cells()
        ),
        run_state=store.run_state(),
        seconds=store.seconds(),
    )
