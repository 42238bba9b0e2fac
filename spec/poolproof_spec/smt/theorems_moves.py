"""[T3, T4] The moves that follow from windows can be executed, and are as few as can be (docs/spec.md#t3)."""

from typing import Any, NamedTuple

import z3

from poolproof_spec.smt.query import Query
from poolproof_spec.smt.theorem import Theorem


class Bytes(NamedTuple):
    """The bytes of one page."""

    start: Any
    end: Any


def any_page(name: str) -> tuple[Bytes, Any]:
    """A page somewhere in the arena: at least one byte."""
    page = Bytes(z3.Int(f"{name}_start"), z3.Int(f"{name}_end"))
    return page, z3.And(page.start >= 0, page.start < page.end)


def overlap(one: Bytes, other: Bytes) -> Any:
    """Whether two pages share a byte."""
    return z3.And(one.start < other.end, other.start < one.end)


def order_exists() -> tuple[Query, ...]:
    """T3. Waiting has no cycle.

    A member waits for another when one of its destinations lies on a source of the other. In a cycle of waiting take
    the lowest member: it waits for one above it, and one above it waits for it. That cannot be: its destinations lie
    below those of all members above it (windows are in chain order), its sources below theirs (extents are, W2).
    """
    names = ("destination", "source", "source_above", "destination_above")
    pages, facts = zip(*(any_page(name) for name in names), strict=True)
    destination, source, source_above, destination_above = pages
    in_order = (destination.end <= destination_above.start, source.end <= source_above.start)
    waits, is_awaited = overlap(destination, source_above), overlap(destination_above, source)
    return (
        Query("lowest-of-a-cycle", (*facts, *in_order, waits), z3.Not(is_awaited)),
        Query("lowest-of-a-cycle-awaited", (*facts, *in_order, is_awaited), z3.Not(waits)),
    )


def copies_are_safe() -> tuple[Query, ...]:
    """T3. No copy lands on what is live or pending: on a source of its own batch, or on a page that stays."""
    start, end, source, target = z3.Ints("window_start window_end source destination")
    inside, outside = z3.And(start <= target, target < end), z3.Or(source < start, end <= source)
    size, other_size, other_start, other_end, stays = z3.Ints("page_bytes other_bytes other_start other_end stays")
    in_order = z3.Or(end * size <= other_start * other_size, other_end * other_size <= start * size)
    stays_inside = z3.And(other_start <= stays, stays < other_end)
    apart = z3.Not(
        overlap(Bytes(target * size, (target + 1) * size), Bytes(stays * other_size, (stays + 1) * other_size))
    )
    return (
        Query("batch-is-disjoint", (inside, outside), source != target),
        Query("others-stay-apart", (size >= 1, other_size >= 1, inside, stays_inside, in_order), apart),
    )


def room_inside() -> tuple[Query, ...]:
    """T3. A window has a free page for each page that must come in, and then one for each demanded page."""
    start, end, pinned, loose, outside, demanded = z3.Ints("start end pinned loose outside demanded")
    premises = (
        pinned >= 0,
        demanded >= 0,
        outside >= 0,
        outside <= loose,
        end - start >= pinned + loose + demanded,
    )
    free_inside = (end - start) - pinned - (loose - outside)
    return (Query("enough-free-pages", premises, free_inside - outside >= demanded),)


def motion_is_minimal() -> tuple[Query, ...]:
    """T4. Page by page: whatever plan ends inside the window has moved what lay outside; ours moves nothing else."""
    start, end, before, after, planned = z3.Ints("start end page_before page_after page_planned")
    outside = z3.Or(before < start, end <= before)
    ends_inside = z3.And(start <= after, after < end)
    plan = z3.If(outside, z3.And(start <= planned, planned < end), planned == before)
    return (
        Query("outside-must-move", (start < end, outside, ends_inside), after != before),
        Query("plan-moves-no-other", (start < end, plan, planned != before), outside),
    )


THEOREMS = (
    Theorem(
        name="T3-move-order",
        claim="There is an order of the members in which no copy lands on a page that has yet to leave.",
        bounds="any chain length, any sizes",
        queries=order_exists,
    ),
    Theorem(
        name="T3-copies-are-safe",
        claim="A batch's sources and destinations are disjoint, and no destination touches a page that stays in "
        "its window.",
        bounds="any sizes",
        queries=copies_are_safe,
    ),
    Theorem(
        name="T3-room-inside",
        claim="Each window has a free page for each page that must come in, and then for each demanded page.",
        bounds="any sizes",
        queries=room_inside,
    ),
    Theorem(
        name="T4-minimal-motion",
        claim="For given windows the plan moves exactly the loose pages outside them, and no plan moves fewer.",
        bounds="any sizes",
        queries=motion_is_minimal,
    ),
)
