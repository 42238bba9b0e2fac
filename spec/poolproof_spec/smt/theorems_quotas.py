"""[T5, T6] Amounts after which freeing more is never needed (docs/spec.md#t5, docs/spec.md#t6)."""

from typing import Any

import z3

from poolproof_spec.occupancy import Occupancy
from poolproof_spec.quotas import grid_slack
from poolproof_spec.smt.query import Query, Witness
from poolproof_spec.smt.symbols import any_member, is_window_of
from poolproof_spec.smt.terms import TERMS, QuotientTerms, times_keeps_order
from poolproof_spec.smt.theorem import Theorem
from poolproof_spec.sweep import sweep, sweep_member

Need = Any


def own_quota() -> tuple[Query, ...]:
    """T5. The extent that a member had before the frees is a window for what is left and what is new.

    Extents of a well-formed state are in chain order (W2), so all of them together are an arrangement, and T1 finds
    one. Nothing is said of what is pinned: it lay inside the extent.
    """
    need, member = any_member()
    start, end, taken, freed, demanded = z3.Ints("extent_start extent_end taken freed demanded")
    extent = (
        need.first_page <= start,
        end <= need.page_count,
        taken >= 1,
        taken <= end - start,
        z3.Or(need.pinned_count == 0, z3.And(start <= need.pinned_start, need.pinned_end <= end)),
    )
    left = need.pinned_count + need.loose_count == taken - freed + demanded
    quota = (demanded >= 0, demanded <= freed, freed <= taken)
    return (Query("extent-is-a-window", (*member, *extent, *quota, left), is_window_of(need, start, end)),)


def cross_quota() -> tuple[Query, ...]:
    """T6, by induction along the chain; the payer may stand anywhere in it.

    `surplus` is what the demand has added so far, in bytes, slack of floats included, less what the payer gave up.
    Until the payer is passed it is not negative. From the payer on, the position before plus the surplus is at least
    the sink: what the payer gave up lay above it.
    """
    page_bytes, first_page, page_count, sink = z3.Ints("page_bytes first_page page_count sink_bytes")
    held, demanded, given, surplus = z3.Ints("held demanded given surplus")
    position, later, total_bytes = z3.Ints("position position_after_frees total_bytes")
    before = Occupancy(page_bytes=page_bytes, first_page=first_page, page_count=page_count, loose_count=held)
    left = held + demanded - given
    now = Occupancy(page_bytes=page_bytes, first_page=first_page, page_count=page_count, loose_count=left)
    arithmetic = QuotientTerms()
    window, after = sweep_member(before, position, arithmetic)
    window_now, after_now = sweep_member(now, later, arithmetic)
    grid = (
        page_bytes >= 1,
        sink >= 1,
        first_page * page_bytes >= sink,
        (first_page - 1) * page_bytes < sink,
    )
    ends = (page_count * page_bytes <= total_bytes, total_bytes < (page_count + 1) * page_bytes)
    pages = (
        held >= 0,
        demanded >= 0,
        given >= 0,
        given <= held,
        z3.Or(given == 0, demanded == 0),
        z3.Implies(demanded > 0, held > 0),
    )
    paid_at_most_once = z3.Implies(given > 0, surplus >= 0)
    hypothesis = (*keeps(position, later, surplus, sink), position <= total_bytes)
    premises = (*grid, *ends, *pages, *hypothesis, window.fits, paid_at_most_once, *arithmetic.definitions)
    added = surplus + (demanded - given) * page_bytes
    at_the_bottom = (position == 0, later == 0, surplus == 0)
    room = page_count - left
    highest = (
        *grid,
        *pages,
        *keeps(position, later, surplus, sink),
        window.fits,
        paid_at_most_once,
        added <= 0,
        left > 0,
    )
    starts = (
        arithmetic.ceil_at_most(position, page_bytes, page_count - held),
        arithmetic.ceil_at_most(later, page_bytes, room),
        times_keeps_order(room, first_page - 1, page_bytes),
        times_keeps_order(demanded, given, page_bytes),
    )
    shown = {"position after, before": after, "position after, now": after_now}
    return (
        Query(
            "lowest",
            (*premises, *at_the_bottom),
            z3.And(*keeps(after, after_now, added, sink), after <= total_bytes),
            shown,
        ),
        Query(
            "float",
            premises,
            z3.And(*keeps(after, after_now, added + grid_slack(page_bytes), sink), after <= total_bytes),
            shown,
        ),
        Query("highest-has-the-bytes", (*highest, *starts), later <= room * page_bytes, shown),
        Query("highest-is-above-the-sink", (*highest, *starts, later <= room * page_bytes), first_page <= room, shown),
        Query(
            "highest-fits",
            (*grid, left > 0, later <= room * page_bytes, first_page <= room, *arithmetic.definitions, *starts),
            window_now.fits,
            shown,
        ),
        Query("highest-empty", (*premises, added <= 0, left == 0), after_now <= total_bytes, shown),
        Query(
            "below-the-end-is-on-the-grid",
            (*grid, *ends, left > 0, *arithmetic.definitions),
            (window_now.end * page_bytes <= total_bytes) == (window_now.end <= page_count),
        ),
    )


def keeps(position: Any, later: Any, surplus: Any, sink: Any) -> tuple[Any, ...]:
    """The hypothesis of T6: how far from where it ended before a member may end now."""
    return (
        position >= 0,
        later >= 0,
        later <= position + surplus,
        z3.Or(surplus >= 0, position + surplus >= sink),
    )


SizesOfTri = tuple[int, int, int]
"""Page sizes of STATE, SWA and FULL, in bytes."""
SERVED: SizesOfTri = (48, 64, 32)
"""Sizes as a served model has them."""
COPRIME: SizesOfTri = (5, 7, 3)
"""Sizes without a common divisor, for which a float can lose all but one byte of a page to its grid."""


def tri(sizes: SizesOfTri, pages: tuple[Any, Any, Any], total_bytes: Any) -> tuple[Need, ...]:
    """The tri layout with nothing pinned; the sink is the largest page."""
    return tuple(
        Occupancy(
            page_bytes=z3.IntVal(size),
            first_page=z3.IntVal(-(-max(sizes) // size)),
            page_count=TERMS.floor_div(total_bytes, z3.IntVal(size)),
            loose_count=count,
        )
        for size, count in zip(sizes, pages, strict=True)
    )


def state_quota(sizes: SizesOfTri, token_pages: Any, slack: int) -> Any:
    """States whose bytes pay for token pages, with or without the slack of the float's grid."""
    state_bytes, swa_bytes, full_bytes = sizes
    return TERMS.ceil_div(token_pages * (swa_bytes + full_bytes) + slack, z3.IntVal(state_bytes))


def too_small(sizes: SizesOfTri, slack: int, less: int) -> tuple[Any, ...]:
    """Facts: a state that fits, and no longer does when the quota, less so many, pays for token pages."""
    states, swa_pages, full_pages, token_pages, total = z3.Ints("states swa_pages full_pages token_pages total_bytes")
    quota = state_quota(sizes, token_pages, slack) - less
    now = sweep(tri(sizes, (states, swa_pages, full_pages), total), TERMS)
    paid = sweep(tri(sizes, (states - quota, swa_pages + token_pages, full_pages + token_pages), total), TERMS)
    held = (swa_pages >= 1, full_pages >= 1, token_pages >= 1, total > 0, total <= 4096)
    return (*held, quota >= 1, states > quota, now.fits, z3.Not(paid.fits))


def quota_is_tight() -> tuple[Witness, ...]:
    """States in which the quota without slack is too small, and in which one state less than ours is."""
    return (
        Witness("without-slack-is-too-small", too_small(SERVED, slack=0, less=0)),
        Witness("one-state-less-is-too-small", too_small(COPRIME, slack=grid_slack(COPRIME[1]), less=1)),
    )


THEOREMS = (
    Theorem(
        name="T5-own-quota",
        claim="Once as many pages of each demanded member have been freed as are demanded, and the ids, the demand "
        "fits.",
        bounds="any chain length (with T1), any sizes, whatever is pinned",
        queries=own_quota,
    ),
    Theorem(
        name="T6-cross-quota",
        claim="With nothing pinned and every demanded member holding a page, freeing bytes of one member that "
        "cover the "
        "demand of others and a page less one byte for each float makes it fit; without the floats' slack, as the "
        "state quota of SGLang 0.5.23 has it, it need not.",
        bounds="any chain length by induction, any sizes, any place of the payer; the witnesses in the tri layout",
        queries=cross_quota,
        witnesses=quota_is_tight,
    ),
)
