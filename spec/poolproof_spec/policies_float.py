"""The room beside and around a float in released SGLang, eager compaction; restated as arithmetic.

Sources below sglang/srt/mem_cache: allocator/unified_hybrid_swa.py 1405-1478 of 0.5.22, 1480-1670 of 0.5.23;
allocator/unified_sub_pool.py 155-209 and 2557 of 0.5.23. A float that loses pages keeps its span until its edges are
given back ("absorbed"). `Slide.exact` is false where it has holes inside and must slide: then positions decide.
"""

from typing import NamedTuple

from poolproof_spec.arithmetic import Arithmetic, Quantity, Truth
from poolproof_spec.policies import View
from poolproof_spec.policies_ends import frontiers


class Float(NamedTuple):
    """The float at one stage, in its pages."""

    low: Quantity
    high: Quantity
    live: Quantity
    room_low: Quantity
    """First page above the states."""
    room_high: Quantity
    """One past the last page below FULL, once FULL has taken its new pages."""


class Slide(NamedTuple):
    """Room made beside the float by moving it."""

    done: Truth
    """Whether it moves."""
    exact: Truth
    """Whether this is sure."""
    low: Quantity
    """Its lowest page then; it has no holes."""


class Ready(NamedTuple):
    """Whether an allocation succeeds."""

    done: Truth
    exact: Truth
    """Whether this is sure."""


def float_at(view: View, stage: int, absorbed: bool, a: Arithmetic, full_pages: Quantity = 0) -> Float:
    """Its span as frees left it, or absorbed."""
    band, held, ends = view.members[1], view.stages[stage][1], frontiers(view, stage)
    full_low = ends.full_low - full_pages * view.members[-1].page_bytes
    return Float(
        low=held.low if absorbed else band.span_low,
        high=held.high if absorbed else band.span_high,
        live=held.live,
        room_low=a.maximum(band.first_page, a.ceil_div(ends.base_high, band.page_bytes)),
        room_high=a.minimum(band.page_count, a.floor_div(full_low, band.page_bytes)),
    )


def enough_ids(view: View, stage: int, pages: Quantity, a: Arithmetic) -> Truth:
    """Whether FULL has the ids, and SWA the index room."""
    band, held = view.members[1], view.stages[stage][1]
    return a.all_of(pages <= frontiers(view, stage).full_room, pages <= band.page_count - band.first_page - held.live)


def certified(view: View, stage: int, pages: Quantity, a: Arithmetic, absorbed: bool = False) -> Truth:
    """The END certificate: FULL extends, SWA fills its holes and extends on one side; nothing moves."""
    return holds_pair(view, stage, float_at(view, stage, absorbed, a, pages), pages, a)


def holds_pair(view: View, stage: int, flt: Float, pages: Quantity, a: Arithmetic) -> Truth:
    """The same for a float with that span, its room that which FULL's new pages leave."""
    ends = frontiers(view, stage)
    empty, full_after = flt.live == 0, ends.full_low - pages * view.members[-1].page_bytes
    bound = a.where(empty, ends.base_high, flt.high * view.members[1].page_bytes)
    extension = pages - (flt.high - flt.low - flt.live)
    sides = a.maximum(0, a.maximum(flt.low - flt.room_low, flt.room_high - flt.high))
    return a.all_of(
        enough_ids(view, stage, pages, a),
        full_after >= bound,
        a.where(empty, pages, extension) <= a.where(empty, a.maximum(0, flt.room_high - flt.room_low), sides),
    )


def high_target(view: View, stage: int, pages: Quantity, a: Arithmetic, absorbed: bool = False) -> Truth:
    """The HIGH-side target: new SWA pages above the float, which retreats onto fresh pages below; no hole counts."""
    flt, full = float_at(view, stage, absorbed, a, pages), view.members[-1]
    retreat = flt.high - (flt.room_high - pages)
    full_after = frontiers(view, stage).full_low - pages * full.page_bytes
    return a.all_of(
        enough_ids(view, stage, pages, a),
        flt.live > 0,
        full_after >= full.first_page * full.page_bytes,
        retreat > 0,
        flt.low - flt.room_low >= retreat,
    )


def edges_given_back(view: View, stage: int, a: Arithmetic) -> Truth:
    """Whether absorbing changes nothing."""
    band, held = view.members[1], view.stages[stage][1]
    return a.any_of(held.live == 0, a.all_of(band.span_low == held.low, band.span_high == held.high))


def slide(view: View, stage: int, high: Truth, target: Quantity, a: Arithmetic) -> Slide:
    """Leave `target` bytes free on the float's high side, or else on its low side, if that can be.

    It steps back by what is missing, or, where that is all of its pages, lies down at the far edge of its room.
    """
    flt, size = float_at(view, stage, True, a), view.members[1].page_bytes
    above, below = flt.room_high - flt.high, flt.low - flt.room_low
    gap, far = a.where(high, above, below), a.where(high, below, above)
    steps = a.ceil_div(target - gap * size, size)
    possible = (flt.room_high - flt.room_low - flt.live) * size >= target
    over = steps >= flt.live
    stepped = a.where(high, flt.low - steps, flt.low + steps)
    low = a.where(over, a.where(high, flt.room_low, flt.room_high - flt.live), stepped)
    done = a.all_of(flt.live > 0, possible, a.any_of(over, steps <= far))
    solid = flt.high - flt.low == flt.live
    return Slide(done, a.any_of(flt.live == 0, solid, a.negate(possible), over), low)


def pair_after_slide(view: View, stage: int, pages: Quantity, a: Arithmetic) -> tuple[Truth, Slide]:
    """(whether a pair fits then, the slide): by what one side lacks and a slack of the largest demanded page.

    Not where both sides lack something.
    """
    flt, ends = float_at(view, stage, True, a), frontiers(view, stage)
    band, full = view.members[1], view.members[-1]
    full_bytes, holes = pages * full.page_bytes, flt.high - flt.low - flt.live
    swa_bytes = a.maximum(0, pages - holes) * band.page_bytes
    below, above = flt.low * band.page_bytes - ends.base_high, ends.full_low - flt.high * band.page_bytes
    spare, slack = above - full_bytes, max(band.page_bytes, full.page_bytes)
    high = a.any_of(spare < 0, below < spare)
    on_high = full_bytes + a.where(spare < 0, a.maximum(0, swa_bytes - below), swa_bytes)
    needed = a.any_of(spare < 0, swa_bytes > a.maximum(below, spare))
    moved = slide(view, stage, high, a.where(high, on_high, swa_bytes) + slack, a)
    done = a.all_of(needed, enough_ids(view, stage, pages, a), moved.done)
    room = float_at(view, stage, True, a, pages)
    there = room._replace(low=moved.low, high=moved.low + flt.live)
    return a.all_of(done, holds_pair(view, stage, there, pages, a)), Slide(done, moved.exact, moved.low)


def byte_shortfall(view: View, pages: Quantity, stage: int, a: Arithmetic) -> Truth:
    """The optimistic bound: live bytes, the least sink and the new pairs are more than the arena; no grid, no order."""
    sink: Quantity = view.members[0].first_page * view.members[0].page_bytes
    for member in view.members[1:]:
        sink = a.minimum(sink, member.first_page * member.page_bytes)
    live = sum(m.page_bytes * held.live for m, held in zip(view.members, view.stages[stage], strict=True))
    pairs = pages * (view.members[1].page_bytes + view.members[2].page_bytes)
    return live + sink + pairs > view.total_bytes


def pair_ready(view: View, stage: int, pages: Quantity, a: Arithmetic, targets: bool) -> Ready:
    """Whether an allocation of pairs succeeds at a stage; `targets`: with the shortcuts of 0.5.23, which asks twice."""
    as_is, absorbed = certified(view, stage, pages, a), certified(view, stage, pages, a, absorbed=True)
    fits, moved = pair_after_slide(view, stage, pages, a)
    done, sure = a.any_of(absorbed, fits), a.any_of(as_is, absorbed, moved.exact)
    if not targets:
        return Ready(a.any_of(as_is, done), sure)
    short, high = byte_shortfall(view, pages, stage, a), high_target(view, stage, pages, a)
    # A float that moved in vain lies elsewhere when it is asked again.
    in_vain = a.all_of(moved.done, a.negate(fits))
    done = a.any_of(as_is, high, a.all_of(a.negate(short), done))
    return Ready(done, a.any_of(high, short, a.all_of(sure, a.any_of(as_is, absorbed, a.negate(in_vain)))))
