"""What the model answers to a case: the one place that both the export and the verification ask."""

from collections.abc import Sequence

import msgspec

from poolproof_conformance.vectors.vector_format import Need, PageDemand
from poolproof_reference.reserve import victims
from poolproof_spec.calls import is_good_call
from poolproof_spec.demand import Demand, demand_of
from poolproof_spec.geometry import Geometry
from poolproof_spec.occupancy import Occupancy, occupancy_of
from poolproof_spec.operation import AnyDemand
from poolproof_spec.outcome import Blocked, Impossible, Step
from poolproof_spec.state import PoolState
from poolproof_spec.steps import after_group
from poolproof_spec.sweep import is_empty, sweep
from poolproof_spec.verdict import honest_reason


class FitsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of a FitsCase."""

    result: str
    windows: tuple[tuple[int, int] | None, ...] | None = None
    fails_at: str | None = None
    needed_end: int | None = None


class ReserveAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of a ReserveCase."""

    result: str
    steps: tuple[Step, ...] = ()
    evicted_pages: int = 0
    reason: Impossible | Blocked | None = None


def page_demand(state: PoolState, operation: AnyDemand) -> PageDemand | None:
    """What the operation demands in the state; None for a bad call."""
    demand = demand_of(state, operation) if is_good_call(state, operation) else None
    if demand is None:
        return None
    return PageDemand(full_pages=demand.full_pages, swa_pages=demand.swa_pages, state_pages=demand.state_pages)


def occupancies(geometry: Geometry, needs: Sequence[Need]) -> list[Occupancy]:
    """The needs as the sweep reads them."""
    return [
        occupancy_of(member, frozenset(need.pinned), need.loose)
        for member, need in zip(geometry.members, needs, strict=True)
    ]


def fits_answer(geometry: Geometry, needs: Sequence[Need]) -> FitsAnswer:
    """[D-sweep] on the needs."""
    read = occupancies(geometry, needs)
    found = sweep(read)
    if found.fits:
        windows = tuple(
            None if is_empty(need) else (int(window.start), int(window.end))
            for need, window in zip(read, found.windows, strict=True)
        )
        return FitsAnswer(result="fits", windows=windows)
    member, window = next(
        (member, window) for member, window in zip(geometry.members, found.windows, strict=True) if not window.fits
    )
    return FitsAnswer(result="does_not_fit", fails_at=member.name, needed_end=int(window.end))


def reserve_answer(state: PoolState, operation: AnyDemand) -> ReserveAnswer:
    """The least victims in policy order, or the honest reason."""
    demand = demand_of(state, operation)
    assert demand is not None, "every operation of a case is a demand"
    settled = after_group(state)
    steps = victims(settled, demand)
    if steps is None:
        return ReserveAnswer(result="rejected", reason=honest_reason(settled, demand))
    return ReserveAnswer(result="granted", steps=tuple(steps), evicted_pages=pages_lost(settled, steps))


def pages_lost(state: PoolState, steps: Sequence[Step]) -> int:
    """Cached FULL pages that the steps cost."""
    own = {entry.key: len(entry.ids) for entry in state.entries}
    return sum(own[step.key] for step in steps if step.kind == "leaf")


def as_demand(pages: PageDemand, may_wait: bool) -> Demand:
    """The specification's type."""
    return Demand(
        full_pages=pages.full_pages, swa_pages=pages.swa_pages, state_pages=pages.state_pages, may_wait=may_wait
    )
