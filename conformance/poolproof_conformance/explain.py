"""Why a demand is granted, with how many victims, or rejected: the sweep's numbers in words.

`explain_demand` computes, `explanation_lines` words it. Only the specification is asked, no target.
"""

from collections.abc import Iterator

import msgspec

from poolproof_conformance.wording import call_words, plural, step_words
from poolproof_reference.reserve import spare
from poolproof_spec.demand import Demand, demand_of
from poolproof_spec.fits import fits
from poolproof_spec.geometry import Member
from poolproof_spec.occupancy import Occupancy, occupancies
from poolproof_spec.operation import AnyOperation
from poolproof_spec.outcome import Blocked, Impossible, Step
from poolproof_spec.state import PoolState
from poolproof_spec.steps import after_group, after_steps, policy_order, tree_of
from poolproof_spec.sweep import is_empty, sweep
from poolproof_spec.verdict import honest_reason


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """One member in one pass of the sweep."""

    member: str
    page_bytes: int
    first_page: int
    page_count: int
    below_bytes: int
    """End of the member below, in bytes: nothing of this one may lie under it."""
    pinned: int
    """Pages that cannot move now."""
    pinned_start: int
    pinned_end: int
    live: int
    """Movable live pages."""
    new: int
    """Pages that the demand takes."""
    anchored: bool
    """Bounds the others even when empty."""
    start: int
    """The least window is [start, end), in pages."""
    end: int
    fits: bool
    reached: bool
    """Whether the pass came here: false above the first member that does not fit."""

    @property
    def empty(self) -> bool:
        """Holds nothing and is asked for nothing."""
        return self.pinned + self.live + self.new == 0


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """The sweep once some victims are gone."""

    victims: int
    bands: tuple[Band, ...]
    token_ids: tuple[int, int]
    """(needed, free)."""
    state_ids: tuple[int, int]
    """(needed, free)."""
    fits: bool


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that `explain` tells of one demand."""

    operation: AnyOperation
    full_pages: int
    swa_pages: int
    state_pages: int
    granted: bool
    victims: tuple[Step, ...]
    """In policy order, the first that suffice; empty for a rejection."""
    spared: tuple[Step, ...]
    """Those of the victims that need not go once the later ones are gone."""
    reason: Impossible | Blocked | None
    """Of a rejection."""
    stages: tuple[Stage, ...]
    """One victim fewer than needed (where there is one), then the deciding one."""


def explain_demand(state: PoolState, operation: AnyOperation) -> Explanation | None:
    """Why the model answers as it does; None where the operation is no demand."""
    demand = demand_of(state, operation)
    if demand is None:
        return None
    state = after_group(state)
    order = policy_order(tree_of(state))
    enough = next((k for k in range(len(order) + 1) if fits(after_steps(state, order[:k]), demand)), None)
    victims = order[: enough or 0]
    kept = spare(state, demand, victims)
    if enough is None:
        counts = [len(order)]
    else:
        counts = [enough - 1, enough] if enough else [0]
    return Explanation(
        operation=operation,
        full_pages=demand.full_pages,
        swa_pages=demand.swa_pages,
        state_pages=demand.state_pages,
        granted=enough is not None,
        victims=tuple(victims),
        spared=tuple(step for step in victims if step not in kept),
        reason=honest_reason(state, demand) if enough is None else None,
        stages=tuple(_stage(after_steps(state, order[:count]), demand, count) for count in counts),
    )


def _stage(state: PoolState, demand: Demand, victims: int) -> Stage:
    needs = occupancies(state, demand)
    return Stage(
        victims=victims,
        bands=tuple(_bands(state, demand, needs)),
        token_ids=(demand.full_pages, len(state.free_token_ids)),
        state_ids=(demand.state_pages, len(state.free_state_ids)),
        fits=fits(state, demand),
    )


def _bands(state: PoolState, demand: Demand, needs: tuple[Occupancy, ...]) -> Iterator[Band]:
    """The members low to high, with the byte at which each finds the room above the one below."""
    below, reached = 0, True
    for member, need, window in zip(state.geometry.members, needs, sweep(needs).windows, strict=True):
        new = demand.pages(member.role)
        yield Band(
            member=member.name,
            page_bytes=member.page_bytes,
            first_page=member.first_page,
            page_count=member.page_count,
            below_bytes=below,
            pinned=need.pinned_count,
            pinned_start=need.pinned_start,
            pinned_end=need.pinned_end,
            live=need.loose_count - new,
            new=new,
            anchored=member.anchored,
            start=window.start,
            end=window.end,
            fits=bool(window.fits),
            reached=reached,
        )
        below = _below_next(member, need, window.end, below)
        reached = reached and bool(window.fits)


def _below_next(member: Member, need: Occupancy, end: int, below: int) -> int:
    if not is_empty(need):
        return end * member.page_bytes
    return max(below, member.first_page * member.page_bytes) if need.anchored_up else below


def explanation_lines(explanation: Explanation) -> Iterator[str]:
    """The explanation in words, a sentence or two a line."""
    yield f"demand: {_demand_words(explanation)}"
    count = len(explanation.victims)
    if explanation.granted and not count:
        yield "granted: it fits with nothing evicted."
    elif explanation.granted:
        yield f"granted with {plural(count, 'victim')}, the first in policy order that suffice:"
        yield from (f"  {index}. {step_words([step])}" for index, step in enumerate(explanation.victims, 1))
        if explanation.spared:
            yield f"of these it fits without {step_words(explanation.spared)}, which an irredundant pool keeps."
    else:
        yield f"rejected: {_reason_words(explanation.reason)}"
    for stage in explanation.stages:
        yield ""
        yield from _stage_lines(stage, explanation)


def _stage_lines(stage: Stage, explanation: Explanation) -> Iterator[str]:
    if not explanation.granted:
        yield f"with everything evicted that may be ({plural(stage.victims, 'step')}), low bytes to high:"
    elif stage.victims < len(explanation.victims):
        yield f"why not {stage.victims}: with {plural(stage.victims, 'victim')} gone, low bytes to high:"
    else:
        yield f"with {plural(stage.victims, 'victim')} gone, low bytes to high:"
    for name, (needed, free) in (("token", stage.token_ids), ("state", stage.state_ids)):
        if needed > free:
            yield f"  {name} ids: {needed} needed, {free} free: {needed - free} short."
    for band in stage.bands:
        yield f"  {_band_words(band)}" if band.reached else f"  {band.member}: not looked at any more."
    yield "  so it fits." if stage.fits else f"  so it does not fit: {_binding_words(stage)}."


def _band_words(band: Band) -> str:
    if band.empty:
        return f"{band.member}: empty; {_empty_words(band)}"
    from_below = -(-band.below_bytes // band.page_bytes)
    why = f"first page {band.first_page}" if band.first_page >= from_below else f"byte {band.below_bytes} below it"
    parts = [f"{band.live} live"] if band.live else []
    parts += [f"{band.pinned} pinned in [{band.pinned_start}, {band.pinned_end})"] if band.pinned else []
    parts += [f"{band.new} new"] if band.new else []
    text = (
        f"{band.member} ({band.page_bytes}-byte pages): {' + '.join(parts)}; from page {band.start} ({why}) "
        f"its least window is [{band.start}, {band.end}) of {band.page_count}, to byte {band.end * band.page_bytes}"
    )
    if band.fits:
        return text + "."
    if band.pinned and band.start > band.pinned_start:
        return text + f": page {band.pinned_start} is pinned below it."
    over = band.end - band.page_count
    return text + f": {plural(over, 'page')} ({over * band.page_bytes} bytes) too many."


def _empty_words(band: Band) -> str:
    if not band.fits:
        return f"but anchored at its end, byte {band.page_count * band.page_bytes}, which those below it pass."
    return "but anchored: bounds the others where its own pages would begin." if band.anchored else "bounds nobody."


def _binding_words(stage: Stage) -> str:
    if stage.token_ids[0] > stage.token_ids[1]:
        return "token ids bind"
    if stage.state_ids[0] > stage.state_ids[1]:
        return "state ids bind"
    band = next(band for band in stage.bands if not band.fits)
    if band.pinned and band.start > band.pinned_start:
        return f"a pinned page of {band.member} binds"
    return f"the bytes of {band.member} bind"


def _demand_words(explanation: Explanation) -> str:
    counts = {
        "FULL page": explanation.full_pages,
        "SWA page": explanation.swa_pages,
        "state": explanation.state_pages,
    }
    wanted = [plural(count, what) for what, count in counts.items() if count]
    return f"{call_words(explanation.operation)}: {' + '.join(wanted) or 'no page'}"


def _reason_words(reason: Impossible | Blocked | None) -> str:
    match reason:
        case Impossible(bound="ids"):
            return f"impossible: {reason.needed} {reason.where} ids needed, {reason.available} could ever be free."
        case Impossible():
            return (
                f"impossible: even in the emptiest pool there can be, {reason.where} would end at page {reason.needed} "
                f"of {reason.available}."
            )
        case Blocked():
            return f"blocked by {' and '.join(reason.by)}."
        case None:
            return "no reason found; this is a fault of the specification."
