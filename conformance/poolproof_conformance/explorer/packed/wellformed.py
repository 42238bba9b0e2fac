"""[W1-W4] of many packed states at once."""

from __future__ import annotations

from collections.abc import Callable

from poolproof_conformance.explorer.packed.derived import Derived
from poolproof_conformance.explorer.packed.fields import page_field
from poolproof_conformance.explorer.packed.lanes import Column, Lanes


def malformed(derived: Derived, lanes: Lanes) -> list[tuple[str, Column]]:
    """(rule, lanes in which it does not hold)."""
    return [
        ("pages-in-range", _out_of_range(derived, lanes)),
        ("extents-ordered", _out_of_order(derived, lanes)),
        ("pages-and-ids-partition", _shared(derived, lanes)),
        ("swa-within-full", _orphaned(derived, lanes)),
    ]


def exercised(derived: Derived, lanes: Lanes) -> list[tuple[str, Callable[[], Column]]]:
    """(rule, lanes that put a question to it)."""
    bands, nothing = derived.model.bands, lanes.number(0)

    def occupied() -> Column:
        count = nothing
        for band in bands:
            count = count + derived.backend.as_small(_occupied(derived, lanes, band.index) != 0)
        return count

    def pending() -> Column:
        found = nothing
        for band in bands:
            name = f"pend.{band.index}"
            found = found | lanes[name] if name in lanes else found
        return found

    def tombstoned() -> Column:
        return lanes["CACHED"] & ~lanes["WITH SWA"] if derived.model.caches_swa else nothing

    return [
        ("pages-in-range", lambda: occupied() > 0),
        ("extents-ordered", lambda: occupied() > 1),
        ("pages-and-ids-partition", lambda: pending() != 0),
        ("swa-within-full", lambda: tombstoned() != 0),
    ]


def _out_of_range(derived: Derived, lanes: Lanes) -> Column:
    found = lanes.number(0) != 0
    for band in derived.model.bands:
        for item in band.items:
            found = found | (lanes[page_field(band.index, item)] > band.width)
    return found


def _out_of_order(derived: Derived, lanes: Lanes) -> Column:
    """[W2] Each member begins where the highest byte below it ends, or after."""
    found, position = lanes.number(0) != 0, lanes.number(0)
    for band in derived.model.bands:
        pages, tables = _occupied(derived, lanes, band.index), derived.pages[band.index]
        start, end = (derived.backend.look_up(table, pages) for table in (tables.start, tables.end))
        size = int(band.member.page_bytes)
        found = found | ((pages != 0) & (start * size < position))
        position = derived.backend.where(pages != 0, end * size, position)
    return found


def _shared(derived: Derived, lanes: Lanes) -> Column:
    """[W3] No two items have one page, none a pending one; no two have one id."""
    backend, found = derived.backend, lanes.number(0) != 0
    for band in derived.model.bands:
        owners = lanes.number(0)
        for item in band.items:
            owners = owners + backend.as_small(lanes[page_field(band.index, item)] != 0)
        live = lanes[f"live.{band.index}"]
        found = found | (owners != backend.look_up(derived.pages[band.index].count, live))
        if f"pend.{band.index}" in lanes:
            found = found | ((live & lanes[f"pend.{band.index}"]) != 0)
    for what, member, items in _id_spaces(derived):
        seen = lanes.number(0)
        for item in items:
            there = backend.as_small(lanes[page_field(member, item)] != 0) << lanes[f"{what}.{item}"]
            found = found | ((seen & there) != 0)
            seen = seen | there
    return found


def _id_spaces(derived: Derived) -> list[tuple[str, int, range]]:
    """Id fields, the member that tells which of them are in use, and their items; none where ids are left out."""
    model = derived.model
    spaces = [("id", model.full, model.token_items)]
    spaces += [("sid", index, model.state_items) for index in model.state]
    return [space for space in spaces if len(space[2]) and f"{space[0]}.0" in model.fields]


def _orphaned(derived: Derived, lanes: Lanes) -> Column:
    """[W4] An SWA page without its FULL page."""
    found = lanes.number(0) != 0
    for index in derived.model.swa:
        for item in derived.model.token_items:
            full, swa = (lanes[page_field(member, item)] for member in (derived.model.full, index))
            found = found | ((swa != 0) & (full == 0))
    return found


def _occupied(derived: Derived, lanes: Lanes, member: int) -> Column:
    live = lanes[f"live.{member}"]
    return live | lanes[f"pend.{member}"] if f"pend.{member}" in lanes else live
