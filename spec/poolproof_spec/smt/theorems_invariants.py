"""[W1-W5] as an inductive invariant: true of the empty pool, and kept by each operation (docs/spec.md#well-formedness).

A state is a handful of functions: where an id's page lies in a member (-1: nowhere), which pages are pending, who owns
an id. An operation says what the functions are afterwards, element by element; the invariant is used at the elements
that matter and concluded at arbitrary ones, so nothing depends on how many pages, ids or members there are. `low` and
`high` are any two members in chain order. Operations that touch neither pages nor owners (match, lock, unlock, gate,
launch, query) keep it by saying so.
"""

from collections.abc import Iterator
from typing import Any

import z3

from poolproof_spec.smt.query import Query
from poolproof_spec.smt.theorem import Theorem

NOWHERE, NOBODY = -1, 0
"""Where an id without a page lies; who owns an id that is free."""


class Places:
    """Pages of one member at one time."""

    def __init__(self, member: str, time: str) -> None:
        self.page_of = z3.Function(f"page_of_{member}_{time}", z3.IntSort(), z3.IntSort())
        self.pending = z3.Function(f"pending_{member}_{time}", z3.IntSort(), z3.BoolSort())

    def live(self, identifier: Any) -> Any:
        """Whether the id has a page."""
        return self.page_of(identifier) != NOWHERE

    def occupied(self, page: Any, identifier: Any) -> Any:
        """Whether the page is pending, or live as that id's."""
        return z3.Or(self.pending(page), z3.And(self.live(identifier), self.page_of(identifier) == page))


class Grid:
    """A member's grid, and the window that an operation gives it."""

    def __init__(self, member: str) -> None:
        names = ("page_bytes", "first_page", "page_count", "window_start", "window_end")
        self.page_bytes, self.first_page, self.page_count, self.start, self.end = (
            z3.Int(f"{name}_{member}") for name in names
        )

    def contains(self, page: Any) -> Any:
        """[W1] for one page."""
        return z3.And(self.first_page <= page, page < self.page_count)

    def in_window(self, page: Any) -> Any:
        """Whether the page lies in the window."""
        return z3.And(self.start <= page, page < self.end)


LOW, HIGH = Grid("low"), Grid("high")
GRIDS = (LOW.page_bytes >= 1, HIGH.page_bytes >= 1, LOW.first_page >= 0, HIGH.first_page >= 0)
V, W, PAGE, OTHER = z3.Ints("id other_id page other_page")


def below(page: Any, other: Any) -> Any:
    """[W2] for a page of `low` and one of `high`."""
    return (page + 1) * LOW.page_bytes <= other * HIGH.page_bytes


def in_range(grid: Grid, places: Places, page: Any, identifier: Any) -> Any:
    """[W1] at one page and id."""
    return z3.Implies(places.occupied(page, identifier), grid.contains(page))


def ordered(low: Places, high: Places, page: Any, identifier: Any, other: Any, other_id: Any) -> Any:
    """[W2] at two pages."""
    return z3.Implies(z3.And(low.occupied(page, identifier), high.occupied(other, other_id)), below(page, other))


def bound_once(places: Places, one: Any, other: Any) -> Any:
    """[W3] at two ids: different pages, and neither is pending."""
    both = z3.And(places.live(one), places.live(other), one != other)
    return z3.And(
        z3.Implies(both, places.page_of(one) != places.page_of(other)),
        z3.Implies(places.live(one), z3.Not(places.pending(places.page_of(one)))),
    )


def placed(grid: Grid, old: Places, new: Places, changed: Any, page: Any, ids: tuple[Any, ...]) -> Iterator[Any]:
    """A reserve or an insert, seen at `page` and `ids`: some ids are moved or newly bound, all into the window.

    Where they go was neither live nor pending, and no two go to one page. What stays lies in the window already, and
    so does what is pending: it is pinned. (Where events were waited for, nothing is pending any more.)
    """
    yield z3.Implies(new.pending(page), z3.And(old.pending(page), grid.in_window(page)))
    yield z3.And(grid.first_page <= grid.start, grid.end <= grid.page_count)
    for identifier in ids:
        goes_to = new.page_of(identifier)
        yield z3.Implies(z3.Not(changed(identifier)), goes_to == old.page_of(identifier))
        yield z3.Implies(new.live(identifier), grid.in_window(goes_to))
        yield z3.Implies(changed(identifier), z3.And(new.live(identifier), z3.Not(old.pending(goes_to))))
        yield z3.Implies(new.pending(goes_to), old.pending(goes_to))
        for other in ids:
            yield z3.Implies(z3.And(changed(identifier), old.live(other)), old.page_of(other) != goes_to)
            both = z3.And(changed(identifier), changed(other), z3.Not(identifier == other))
            yield z3.Implies(both, goes_to != new.page_of(other))


def place_keeps() -> tuple[Query, ...]:
    """Reserve and insert: what they do to the pages of two members."""
    old_low, old_high, new_low, new_high = (Places(m, t) for t in ("before", "after") for m in ("low", "high"))
    moves_low, moves_high = (z3.Function(f"changed_{m}", z3.IntSort(), z3.BoolSort()) for m in ("low", "high"))
    facts = (
        *GRIDS,
        *placed(LOW, old_low, new_low, moves_low, PAGE, (V, W)),
        *placed(HIGH, old_high, new_high, moves_high, OTHER, (W,)),
    )
    in_order = LOW.end * LOW.page_bytes <= HIGH.start * HIGH.page_bytes
    return (
        Query("W1", facts, in_range(LOW, new_low, PAGE, V)),
        Query("W2", (*facts, in_order), ordered(new_low, new_high, PAGE, V, OTHER, W)),
        Query("W3", (*facts, bound_once(old_low, V, W), bound_once(old_low, W, V)), bound_once(new_low, V, W)),
    )


def fewer_keeps() -> tuple[Query, ...]:
    """Frees of every kind (leaf, tombstone, state, request, group) and fired events: what is occupied was before."""
    old_low, old_high, new_low, new_high = (Places(m, t) for t in ("before", "after") for m in ("low", "high"))

    def shrinks(old: Places, new: Places, page: Any, ids: tuple[Any, ...]) -> Iterator[Any]:
        yield z3.Implies(new.pending(page), old.pending(page))
        for identifier in ids:
            yield z3.Implies(new.live(identifier), new.page_of(identifier) == old.page_of(identifier))
            yield z3.Implies(new.pending(new.page_of(identifier)), old.pending(new.page_of(identifier)))

    facts = (*GRIDS, *shrinks(old_low, new_low, PAGE, (V, W)), *shrinks(old_high, new_high, OTHER, (W,)))
    return (
        Query("W1", (*facts, in_range(LOW, old_low, PAGE, V)), in_range(LOW, new_low, PAGE, V)),
        Query(
            "W2",
            (*facts, ordered(old_low, old_high, PAGE, V, OTHER, W)),
            ordered(new_low, new_high, PAGE, V, OTHER, W),
        ),
        Query("W3", (*facts, bound_once(old_low, V, W)), bound_once(new_low, V, W)),
    )


def compact_keeps() -> tuple[Query, ...]:
    """Housekeeping: pages move into holes of their own extent, and leave their places pending while they are read.

    `first` and `last` are occupied pages at the two ends of the extent; everything happens between them.
    """
    old, new, high = Places("low", "before"), Places("low", "after"), Places("high", "before")
    moved = z3.Function("moved", z3.IntSort(), z3.BoolSort())
    first, last, first_id, last_id, source = z3.Ints("first last first_id last_id source_id")
    extent = (old.occupied(first, first_id), old.occupied(last, last_id))
    facts: list[Any] = [*GRIDS, *extent]
    for page in (PAGE, new.page_of(V)):
        vacated = z3.And(old.live(source), moved(source), old.page_of(source) == page)
        facts.append(z3.Implies(new.pending(page), z3.Or(old.pending(page), vacated)))
        facts.append(z3.Implies(old.occupied(page, source), z3.And(first <= page, page <= last)))
    for identifier in (V, W, source):
        goes_to = new.page_of(identifier)
        facts.append(old.live(identifier) == new.live(identifier))
        facts.append(z3.Implies(z3.Not(moved(identifier)), goes_to == old.page_of(identifier)))
        into_hole = z3.And(first <= goes_to, goes_to <= last, z3.Not(old.pending(goes_to)))
        facts.append(z3.Implies(moved(identifier), into_hole))
        facts.append(
            z3.Implies(old.live(identifier), z3.And(first <= old.page_of(identifier), old.page_of(identifier) <= last))
        )
        for other in (V, W, source):
            facts.append(z3.Implies(z3.And(moved(identifier), old.live(other)), old.page_of(other) != goes_to))
            both = z3.And(moved(identifier), moved(other), z3.Not(identifier == other))
            facts.append(z3.Implies(both, goes_to != new.page_of(other)))
    ends = ((first, first_id), (last, last_id))
    once = (bound_once(old, V, W), bound_once(old, V, source), bound_once(old, source, V))
    return (
        Query("W1", (*facts, *(in_range(LOW, old, *end) for end in ends)), in_range(LOW, new, PAGE, V)),
        Query(
            "W2",
            (*facts, *(ordered(old, high, *end, OTHER, W) for end in ends)),
            ordered(new, high, PAGE, V, OTHER, W),
        ),
        Query("W3", (*facts, *once), bound_once(new, V, W)),
    )


class Owners:
    """Who owns the FULL and the SWA page of each token id at one time: a node, a request, the group, or nobody."""

    def __init__(self, time: str) -> None:
        self.full = z3.Function(f"owner_of_full_{time}", z3.IntSort(), z3.IntSort())
        self.swa = z3.Function(f"owner_of_swa_{time}", z3.IntSort(), z3.IntSort())

    def sound(self, identifier: Any) -> Any:
        """[W4, W5] at one id: an SWA page has the owner of the FULL page of its id, so there is one.

        A page is live iff it is owned; that each has one owner is in this being a function.
        """
        return z3.Implies(self.swa(identifier) != NOBODY, self.swa(identifier) == self.full(identifier))


def owners_keep() -> tuple[Query, ...]:
    """What each operation does to owners."""
    old, new = Owners("before"), Owners("after")
    one, other = z3.Ints("owner other_owner")
    chosen = z3.Function("chosen", z3.IntSort(), z3.BoolSort())
    full, swa, now_full, now_swa = old.full(V), old.swa(V), new.full(V), new.swa(V)
    named = (one != NOBODY, other != NOBODY)
    same_full, same_swa = now_full == full, now_swa == swa
    becomes: dict[str, tuple[Any, ...]] = {
        "grant": (
            z3.Implies(chosen(V), full == NOBODY),
            now_full == z3.If(chosen(V), one, full),
            z3.Or(same_swa, z3.And(chosen(V), now_swa == one)),
        ),
        "recover": (same_full, z3.Or(same_swa, z3.And(full == one, now_swa == one))),
        "free-owner": (now_full == z3.If(full == one, NOBODY, full), now_swa == z3.If(swa == one, NOBODY, swa)),
        "tombstone": (same_full, now_swa == z3.If(swa == one, NOBODY, swa)),
        "hand-over": (now_full == z3.If(full == one, other, full), now_swa == z3.If(swa == one, other, swa)),
        "split": (
            now_full == z3.If(z3.And(full == one, chosen(V)), other, full),
            now_swa == z3.If(z3.And(swa == one, chosen(V)), other, swa),
        ),
    }
    return tuple(Query(name, (*named, old.sound(V), *change), new.sound(V)) for name, change in becomes.items())


def empty_pool() -> tuple[Query, ...]:
    """The initial state: nothing is live, pending or owned."""
    low, high, owners = Places("low", "before"), Places("high", "before"), Owners("before")
    nothing = (
        *(z3.Not(places.live(i)) for places in (low, high) for i in (V, W)),
        *(z3.Not(places.pending(page)) for places in (low, high) for page in (PAGE, OTHER)),
        owners.full(V) == NOBODY,
        owners.swa(V) == NOBODY,
    )
    holds = z3.And(
        in_range(LOW, low, PAGE, V), ordered(low, high, PAGE, V, OTHER, W), bound_once(low, V, W), owners.sound(V)
    )
    return (Query("W1-to-W5", nothing, holds),)


ANY = "any geometry, any chain length, any numbers of pages, ids and owners"

THEOREMS = (
    Theorem(name="W-holds-of-the-empty-pool", claim="W1 to W5 hold of the empty pool.", bounds=ANY, queries=empty_pool),
    Theorem(
        name="W-kept-by-placing",
        claim="Reserve and insert keep W1, W2 and W3: all that is live or pending afterwards lies in windows in order.",
        bounds=ANY,
        queries=place_keeps,
    ),
    Theorem(
        name="W-kept-by-freeing",
        claim="Leaves, tombstones, states, frees, groups and fired events keep W1, W2 and W3.",
        bounds=ANY,
        queries=fewer_keeps,
    ),
    Theorem(
        name="W-kept-by-compacting",
        claim="Housekeeping within a member's own extent keeps W1, W2 and W3, pending places included.",
        bounds=ANY,
        queries=compact_keeps,
    ),
    Theorem(
        name="W-kept-by-owners",
        claim="Grants, recoveries, frees, tombstones, inserts, queued frees and splits keep W4 and W5.",
        bounds=ANY,
        queries=owners_keep,
    ),
)
