"""Members with every quantity symbolic, and what is true of each member of each chain."""

from typing import Any

import z3
from msgspec.structs import replace

from poolproof_spec.occupancy import Occupancy


def any_member(suffix: str = "") -> tuple[Occupancy, tuple[Any, ...]]:
    """A member's needs as constants, and the premises that hold of any: positive page size, pins inside the grid."""
    need = Occupancy(
        page_bytes=z3.Int(f"page_bytes{suffix}"),
        first_page=z3.Int(f"first_page{suffix}"),
        page_count=z3.Int(f"page_count{suffix}"),
        anchored_up=z3.Bool(f"anchored_up{suffix}"),
        anchored_down=z3.Bool(f"anchored_down{suffix}"),
        **any_pages(suffix),
    )
    return need, (need.page_bytes >= 1, need.first_page >= 0, need.page_count >= 0, *pages_make_sense(need))


def same_member(need: Occupancy, suffix: str) -> tuple[Occupancy, tuple[Any, ...]]:
    """The same member at another time: its grid and anchors stay, its pages are others."""
    other = replace(need, **any_pages(suffix))
    return other, pages_make_sense(other)


def any_pages(suffix: str) -> dict[str, Any]:
    """Pinned and loose pages of a member, as constants."""
    names = ("pinned_count", "pinned_start", "pinned_end", "loose_count")
    return {name: z3.Int(f"{name}{suffix}") for name in names}


def pages_make_sense(need: Occupancy) -> tuple[Any, ...]:
    """Counts are not negative; pins lie inside the grid and have room between the lowest and the highest."""
    inside = z3.And(
        need.first_page <= need.pinned_start,
        need.pinned_end - need.pinned_start >= need.pinned_count,
        need.pinned_end <= need.page_count,
    )
    return (
        need.pinned_count >= 0,
        need.loose_count >= 0,
        z3.Implies(need.pinned_count == 0, need.pinned_end == 0),
        z3.Implies(need.pinned_count > 0, inside),
    )


def is_window_of(need: Occupancy, start: Any, end: Any) -> Any:
    """Whether [start, end) is a window of the member by itself, as the definition has it (docs/spec.md#d-fits)."""
    around = z3.Or(need.pinned_count == 0, z3.And(start <= need.pinned_start, need.pinned_end <= end))
    large = end - start >= need.pinned_count + need.loose_count
    return z3.And(need.first_page <= start, end <= need.page_count, around, large)


def is_empty(need: Occupancy) -> Any:
    """Whether the member holds nothing and is asked for nothing."""
    return need.pinned_count + need.loose_count == 0


def at_most_one_anchor(need: Occupancy) -> Any:
    """A member grows one way, so it is anchored one way."""
    return z3.Not(z3.And(need.anchored_up, need.anchored_down))
