"""Pages of many states at once: whether a demand fits, by the specification's sweep; where its pages go; what moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from poolproof_conformance.explorer.packed.derived import Derived
from poolproof_conformance.explorer.packed.fields import MOST_PAGES, page_field
from poolproof_conformance.explorer.packed.lanes import Column, Lanes
from poolproof_spec.occupancy import Occupancy
from poolproof_spec.sweep import Sweep, sweep

NONE_NEAR = 1 << 12
"""Farther than any page."""


class Item(NamedTuple):
    """An item that is to have a page, in the lanes in which it is."""

    number: int
    active: Column


class Span(NamedTuple):
    """A member's window in every lane, in pages as the sweep counts them, and as a set of pages."""

    start: Column
    end: Column
    pages: Column


class Room:
    """What the pool decides and does; one demand in pages for each member."""

    def __init__(self, derived: Derived) -> None:
        self.derived, self.model, self.backend = derived, derived.model, derived.backend
        self.pages, self.bands = derived.pages, derived.model.bands
        self.token_ids = len(self.model.geometry.id_range("full"))
        self.state_ids = len(self.model.geometry.id_range("state"))

    def live(self, lanes: Lanes) -> list[Column]:
        """The live pages of each member."""
        return [lanes[f"live.{band.index}"] for band in self.bands]

    def pending(self, lanes: Lanes, member: int) -> Column:
        """The pending pages of a member."""
        return lanes[f"pend.{member}"] if f"pend.{member}" in lanes else lanes.number(0)

    def pinned(self, lanes: Lanes, live: Sequence[Column], may_wait: bool) -> list[Column]:
        """[X] The pages of each member that cannot move."""
        found = []
        for band in self.bands:
            pages = lanes.number(0)
            if "closed" in lanes:
                pages = -lanes["closed"] & live[band.index]
            if not may_wait and "flight" in lanes and band.items:
                flying = lanes[f"flying.{band.index}"] & live[band.index]
                pages = pages | self.pending(lanes, band.index) | flying
            found.append(pages)
        return found

    def swept(self, live: Sequence[Column], pinned: Sequence[Column], demand: Sequence[Column | int]) -> Sweep:
        """The specification's sweep, one lane for each state."""
        return sweep(self._needs(live, pinned, demand), self.backend.carrier)

    def _needs(
        self, live: Sequence[Column], pinned: Sequence[Column], demand: Sequence[Column | int]
    ) -> list[Occupancy]:
        needs = []
        for band, now, stuck, wanted in zip(self.bands, live, pinned, demand, strict=True):
            tables = self.pages[band.index]
            needs.append(
                Occupancy(
                    page_bytes=int(band.member.page_bytes),
                    first_page=int(band.member.first_page),
                    page_count=int(band.member.page_count),
                    pinned_count=self.backend.look_up(tables.count, stuck),
                    pinned_start=self.backend.look_up(tables.start, stuck),
                    pinned_end=self.backend.look_up(tables.end, stuck),
                    loose_count=self.backend.look_up(tables.count, now & ~stuck) + wanted,
                )
            )
        return needs

    def fits(
        self, lanes: Lanes, live: Sequence[Column], demand: Sequence[Column | int], pinned: Sequence[Column]
    ) -> Column:
        """[D-fits] With these pages live: ids suffice, and windows exist."""
        suffice = self.backend.look_up(self.pages[self.model.full].count, live[self.model.full])
        found = suffice + demand[self.model.full] <= self.token_ids
        for index in self.model.state:
            bound = self.backend.look_up(self.pages[index].count, live[index])
            found = found & (bound + demand[index] <= self.state_ids)
        return found & self.swept(live, pinned, demand).fits

    def take(
        self,
        lanes: Lanes,
        demand: Sequence[Column | int],
        may_wait: bool,
        fresh: Sequence[Sequence[Item]],
        bare: Sequence[Sequence[Item]],
    ) -> None:
        """Make room for a demand that fits, and give each item a page: `fresh` ones first, then those that lack SWA."""
        spans, pinned = self._placed(lanes, demand, may_wait)
        for band, span, stuck in zip(self.bands, spans, pinned, strict=True):
            if band.items:
                self._move(lanes, band.index, span, stuck)
        self._name(lanes, fresh)
        for band, span, some, others in zip(self.bands, spans, fresh, bare, strict=True):
            for items in (some, others):
                self._bind(lanes, band.index, span, items)

    def _placed(self, lanes: Lanes, demand: Sequence[Column | int], may_wait: bool) -> tuple[list[Span], list[Column]]:
        """As it lies if that will do; else moving what may move; else waiting, after which nothing is in flight."""
        backend, live = self.backend, self.live(lanes)
        pinned = [now | self.pending(lanes, band.index) for band, now in zip(self.bands, live, strict=True)]
        ways = [False, True] if may_wait and "flight" in lanes else [False]
        unfit = backend.which(~self._truth(lanes, self.swept(live, pinned, demand).fits))
        waits = None
        for way in ways:
            if not len(unfit):
                break
            some = lanes.some(unfit)
            part = [backend.rows(now, unfit) for now in live]
            stuck = self.pinned(some, part, way)
            pinned = [put(whole, unfit, new) for whole, new in zip(pinned, stuck, strict=True)]
            waits = unfit if way else None
            wanted = [d if isinstance(d, int) else backend.rows(d, unfit) for d in demand]
            fitting = self._truth(some, self.swept(part, stuck, wanted).fits)
            unfit = backend.rows(unfit, backend.which(~fitting))
        if len(unfit):
            raise AssertionError("a demand was found to fit, and there is no place for it")
        if waits is not None:
            self._fire(lanes, waits)
        return self._spans(self._needs(live, pinned, demand)), pinned

    def _truth(self, lanes: Lanes, fits: Column | bool) -> Column:
        return self.backend.yes(len(lanes), fits) if isinstance(fits, bool) else fits

    def _fire(self, lanes: Lanes, rows: Column) -> None:
        """In these lanes the event was waited for."""
        for name in self.model.fields:
            if name == "flight" or name.startswith(("read.", "pend.")):
                lanes[name] = put(lanes[name], rows, 0)
        lanes.drop(*(f"flying.{band.index}" for band in self.bands))

    def _spans(self, needs: Sequence[Occupancy]) -> list[Span]:
        """The sweep's windows, each end raised to the start of the next member that holds or is asked for anything."""
        carrier, spans = self.backend.carrier, []
        limit: Column | int = self.model.geometry.total_bytes
        windows = sweep(needs, carrier).windows
        for band, need, window in zip(reversed(self.bands), reversed(needs), reversed(windows), strict=True):
            empty = need.pinned_count + need.loose_count == 0
            size, first, tables = int(band.member.page_bytes), int(band.member.first_page), self.pages[band.index]
            end = carrier.minimum(int(band.member.page_count), carrier.floor_div(limit, size) + 0 * window.start)
            below = self.backend.look_up(tables.below, carrier.maximum(end - first, 0))
            pages = below & ~self.backend.look_up(tables.below, carrier.minimum(window.start - first, band.width))
            spans.append(Span(window.start, end, pages))
            limit = carrier.where(empty, limit, window.start * size)
        return spans[::-1]

    def _move(self, lanes: Lanes, member: int, span: Span, pinned: Column) -> None:
        """Each movable page outside the window goes to a free one inside it, lowest to lowest."""
        live = lanes[f"live.{member}"]
        rows = self.backend.which((live & ~pinned & ~span.pages) != 0)
        if not len(rows):
            return
        backend, tables = self.backend, self.pages[member]
        live, pinned, inside = (backend.rows(column, rows) for column in (live, pinned, span.pages))
        sources = live & ~pinned & ~inside
        free = inside & ~(live | backend.rows(self.pending(lanes, member), rows))
        for item in self.bands[member].items:
            name = page_field(member, item)
            old = backend.rows(lanes[name], rows)
            bit = backend.look_up(tables.bit, old)
            number = backend.look_up(tables.count, sources & (bit - 1) & -backend.as_small(bit != 0))
            new = backend.look_up(tables.ranked, free * tables.width + number)
            lanes[name] = put(lanes[name], rows, backend.where((bit & sources) != 0, new, old))
        lanes.drop(f"live.{member}", f"flying.{member}")

    def _bind(self, lanes: Lanes, member: int, span: Span, items: Sequence[Item]) -> None:
        """A free page of the window for each item, nearest to where the member grows from."""
        if not items:
            return
        backend, tables, live = self.backend, self.pages[member], lanes[f"live.{member}"]
        free = span.pages & ~(live | self.pending(lanes, member))
        kind = self.bands[member].member.kind
        first = int(self.bands[member].member.first_page)
        middle = (span.start + span.end) // 2
        low = backend.where(live == 0, middle, backend.look_up(tables.start, live)) - first
        high = backend.where(live == 0, middle, backend.look_up(tables.end, live) - 1) - first
        for number, active in items:
            if kind == "float":
                code = self._nearest(free, low, high, tables.width)
            else:
                code = backend.look_up(tables.lowest if kind == "up" else tables.highest, free)
            code = backend.where(active, code, 0)
            free = free & ~backend.look_up(tables.bit, code)
            name = page_field(member, number)
            lanes[name] = lanes[name] + code
        lanes.drop(f"live.{member}", f"flying.{member}")

    def _nearest(self, free: Column, low: Column, high: Column, width: int) -> Column:
        """Code of the free page nearest to [low, high], the lower one of two."""
        carrier, best = self.backend.carrier, NONE_NEAR * 4
        for place in range(width):
            away = carrier.maximum(carrier.maximum(low - place, place - high), 0)
            far = (1 - (free >> place & 1)) * NONE_NEAR
            best = carrier.minimum(away * 16 + place + far, best)
        return (best & 15) + 1

    def _name(self, lanes: Lanes, fresh: Sequence[Sequence[Item]]) -> None:
        """New token and state items get the least free ids, in order."""
        if self.model.symmetry:
            return
        spaces = [("id", self.model.full, self.model.token_items, self.token_ids)]
        spaces += [("sid", index, self.model.state_items, self.state_ids) for index in self.model.state]
        for what, member, items, size in spaces:
            if not fresh[member] or f"{what}.{items[0]}" not in lanes:
                continue
            backend, free = self.backend, lanes.number((1 << size) - 1)
            for item in items:
                there = backend.as_small(lanes[page_field(member, item)] != 0)
                free = free & ~(there << lanes[f"{what}.{item}"])
            for number, active in fresh[member]:
                least = free & -free
                place = backend.look_up(self._log(), least)
                lanes[f"{what}.{number}"] = backend.where(active, place, lanes[f"{what}.{number}"])
                free = backend.where(active, free & (free - 1), free)

    def _log(self) -> Column:
        """A power of two to its exponent."""
        if not hasattr(self, "_exponents"):
            self._exponents = self.backend.small([max(n.bit_length() - 1, 0) for n in range(1 << MOST_PAGES)])
        return self._exponents


def put(column: Column, rows: Column, values: Column | int) -> Column:
    """A copy of the column with other values in some rows."""
    new = column + 0
    new[rows] = values
    return new
