"""[T1, T2, T10] Whole chains, by induction over their members (docs/spec.md#t1).

A statement about a chain of any length is proved as its base (no member: position 0, nothing closed) and its step (one
member more). The step's hypothesis and conclusion are the same formula, once before and once after the member.
"""

from typing import Any

import z3

from poolproof_spec.smt.query import Query
from poolproof_spec.smt.symbols import any_member, at_most_one_anchor, is_empty, is_window_of, same_member
from poolproof_spec.smt.terms import TERMS
from poolproof_spec.smt.theorem import Theorem
from poolproof_spec.sweep import sweep_member

Need = Any


def arranged(need: Need, start: Any, end: Any, closed: Any) -> tuple[Any, Any]:
    """(whether a member may lie at [start, end) above what is closed so far, up to which byte it is closed then).

    The definition's pairs of members come down to this: what lies below closes the arena up to its highest end, or
    to the band of an empty member that is anchored and grows up. Bands at the two ends of an arena never overlap.
    """
    empty = is_empty(need)
    lies = z3.If(
        empty,
        z3.Implies(need.anchored_down, closed <= need.page_count * need.page_bytes),
        z3.And(is_window_of(need, start, end), start * need.page_bytes >= closed),
    )
    band = z3.If(need.anchored_up, need.first_page * need.page_bytes, 0)
    after = z3.If(empty, TERMS.maximum(closed, band), TERMS.maximum(closed, end * need.page_bytes))
    return lies, after


def sweep_decides() -> tuple[Query, ...]:
    """T1. Completeness: the sweep stays at or below any arrangement. Soundness: its own windows are an arrangement."""
    need, member = any_member()
    position, closed, start, end = z3.Ints("position closed other_start other_end")
    window, after = sweep_member(need, position, TERMS)
    premises = (*member, at_most_one_anchor(need), position >= 0)
    other_lies, other_closed = arranged(need, start, end, closed)
    own_lies, own_closed = arranged(need, window.start, window.end, position)
    shown = {"window start": window.start, "window end": window.end, "position after": after}
    return (
        Query(
            "complete-step",
            (*premises, position <= closed, other_lies),
            z3.And(window.fits, after >= 0, after <= other_closed),
            shown,
        ),
        Query("sound-step", (*premises, window.fits), z3.And(own_lies, after == own_closed), shown),
    )


def no_more_needed(less: Need, more: Need) -> Any:
    """`less` asks for no more pages than `more`, and its pins lie within the span of the other's."""
    return z3.And(
        less.pinned_count + less.loose_count <= more.pinned_count + more.loose_count,
        z3.Or(
            less.pinned_count == 0,
            z3.And(more.pinned_count > 0, less.pinned_start >= more.pinned_start, less.pinned_end <= more.pinned_end),
        ),
    )


def sweep_is_monotone() -> tuple[Query, ...]:
    """T2. The step keeps: if the chain fits, the same chain with no more needed fits and ends no higher."""
    more, member = any_member()
    less, others = same_member(more, "_less")
    position, lower = z3.Ints("position position_less")
    window, after = sweep_member(more, position, TERMS)
    window_less, after_less = sweep_member(less, lower, TERMS)
    premises = (*member, *others, at_most_one_anchor(more), lower >= 0, lower <= position, window.fits)
    shown = {"position after": after, "position after, less needed": after_less}
    return (
        Query(
            "step",
            (*premises, no_more_needed(less, more)),
            z3.And(window_less.fits, after_less >= 0, after_less <= after),
            shown,
        ),
        *causes(),
    )


def causes() -> tuple[Query, ...]:
    """Each thing that T2 speaks of makes a member need no more."""
    more, member = any_member()
    less, others = same_member(more, "_less")
    span = z3.Or(
        less.pinned_count == 0, z3.And(less.pinned_start >= more.pinned_start, less.pinned_end <= more.pinned_end)
    )
    same_pins = z3.And(
        less.pinned_count == more.pinned_count,
        less.pinned_start == more.pinned_start,
        less.pinned_end == more.pinned_end,
    )
    count = z3.Int("pages")
    fewer_pins = (less.pinned_count == more.pinned_count - count, span)
    changes: dict[str, tuple[Any, ...]] = {
        "free-loose": (same_pins, less.loose_count == more.loose_count - count),
        "free-pinned": (*fewer_pins, less.loose_count == more.loose_count),
        "open-gate": (*fewer_pins, less.loose_count == more.loose_count + count),
        "fire-event": (*fewer_pins, less.loose_count == more.loose_count),
        "lower-demand": (same_pins, less.loose_count == more.loose_count - count),
    }
    return tuple(
        Query(name, (*member, *others, count >= 1, *change), no_more_needed(less, more))
        for name, change in changes.items()
    )


def impossible_stays() -> tuple[Query, ...]:
    """T10. In whatever a history of gates, events, unlocks and evictions leads to, at least the requests' pages lie.

    The emptiest state pins nothing and keeps only what running requests hold. It needs no more than any other state
    with the same requests: by T2, if it does not fit, none of them does.
    """
    any_state, member = any_member()
    emptiest, others = same_member(any_state, "_emptiest")
    held, cached, demanded, pending = z3.Ints("held cached demanded pending")
    live_and_pending = z3.And(
        held >= 0,
        cached >= 0,
        demanded >= 0,
        pending >= 0,
        any_state.pinned_count + any_state.loose_count == held + cached + demanded + pending,
    )
    lifted = z3.And(emptiest.pinned_count == 0, emptiest.loose_count == held + demanded)
    return (Query("emptiest", (*member, *others, live_and_pending, lifted), no_more_needed(emptiest, any_state)),)


THEOREMS = (
    Theorem(
        name="T1-sweep-decides",
        claim="The sweep over a chain succeeds if and only if windows exist for it.",
        bounds="any chain length by induction, any sizes, any pins, anchored or not",
        queries=sweep_decides,
    ),
    Theorem(
        name="T2-monotone",
        claim="Freeing a page, opening a gate, firing an event or lowering a demand never turns fits into does not "
        "fit.",
        bounds="any chain length by induction, any sizes",
        queries=sweep_is_monotone,
    ),
    Theorem(
        name="T10-impossible-stays",
        claim="A demand that does not fit the emptiest state stays impossible under every gate, event, unlock and "
        "eviction.",
        bounds="any sizes, any history of gates, events, unlocks and evictions; with T2 any chain length",
        queries=impossible_stays,
    ),
)
