"""[D-sweep]: one pass, low bytes to high, that decides whether windows exist (docs/spec.md#d-sweep).

Written once over an arithmetic interface: on ints it is the reference's decision. The definition that it must equal
is written separately, in fits.py.
"""

from collections.abc import Sequence
from typing import NamedTuple

from poolproof_spec.arithmetic import INTEGERS, Arithmetic, Quantity, Truth
from poolproof_spec.occupancy import Occupancy


class Window(NamedTuple):
    """[start, end) in pages of one member; the least start and end that the members below leave it."""

    start: Quantity
    end: Quantity
    fits: Truth
    """Whether this member's own conditions hold; an empty member asks only for what an anchor closes."""


class Sweep(NamedTuple):
    """The outcome of one pass."""

    fits: Truth
    windows: tuple[Window, ...]
    """One for each member; meaningless for an empty one, and from the first that does not fit on."""


def sweep_member(need: Occupancy, position: Quantity, arithmetic: Arithmetic = INTEGERS) -> tuple[Window, Quantity]:
    """One step: the least window of a member above byte `position`, and the byte at which it ends.

    Any feasible window of this member above `position` ends at or after the returned one: this is the induction step
    of T1.
    """
    start = arithmetic.maximum(need.first_page, arithmetic.ceil_div(position, need.page_bytes))
    end = arithmetic.maximum(need.pinned_end, start + need.pinned_count + need.loose_count)
    empty = need.pinned_count + need.loose_count == 0
    fits = arithmetic.any_of(
        arithmetic.all_of(
            arithmetic.negate(empty),
            arithmetic.any_of(need.pinned_count == 0, start <= need.pinned_start),
            end <= need.page_count,
        ),
        arithmetic.all_of(
            empty,
            arithmetic.any_of(arithmetic.negate(need.anchored_down), position <= need.page_count * need.page_bytes),
        ),
    )
    closed = arithmetic.where(need.anchored_up, need.first_page * need.page_bytes, 0)
    after = arithmetic.where(empty, arithmetic.maximum(position, closed), end * need.page_bytes)
    return Window(start, end, fits), after


def sweep(needs: Sequence[Occupancy], arithmetic: Arithmetic = INTEGERS) -> Sweep:
    """Decide a whole chain; `fits` holds iff windows exist (T1)."""
    position: Quantity = 0
    windows = []
    for need in needs:
        window, position = sweep_member(need, position, arithmetic)
        windows.append(window)
    return Sweep(arithmetic.all_of(*(window.fits for window in windows)), tuple(windows))


def is_empty(need: Occupancy) -> bool:
    """Whether a member holds nothing and is asked for nothing (Python ints only)."""
    return bool(need.pinned_count + need.loose_count == 0)


def widen(needs: Sequence[Occupancy], windows: Sequence[Window]) -> tuple[Window | None, ...]:
    """The sweep's windows with each end raised to the start of the next non-empty member; None for empty members.

    Starts stay the least ones, so that nearly all room is the highest member's, whose window reaches the end of the
    arena; between two others there is room only where a grid or a pin leaves some. Pages inside need not move.
    """
    widened: list[Window | None] = []
    limit: int | None = None
    for need, window in zip(reversed(needs), reversed(windows), strict=True):
        if is_empty(need):
            if need.anchored_down:
                limit = need.page_count * need.page_bytes if limit is None else limit
            widened.append(None)
            continue
        end = need.page_count if limit is None else min(need.page_count, limit // need.page_bytes)
        widened.append(Window(window.start, end, window.fits))
        limit = window.start * need.page_bytes
    return tuple(reversed(widened))
