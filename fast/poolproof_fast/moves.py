"""[T3, T4] From windows to batches of moves that can be executed one after the other.

The order. Within a member nothing depends on it: sources lie outside its window, destinations inside. Between members a
batch must wait for another whose sources lie where it writes. That is judged by intervals: member i waits for a member
j above it where the bytes from the first to the last destination of i meet those from the first to the last source of
j below j's window (sources above it cannot be in the way: they are above j's window, destinations of i below it); and
the mirror image for a member below. Interval comparison may find a wait where no two pages share a byte, but misses
none, and cannot go round in a circle:

- If i waits for j above it, j has a source in i's window or below. Every live page of i lies below it, since live pages
  lie in chain order [W2]; so i has no source above its window, and no member above i waits for i. The mirror image
  holds below.
- So once one waits for a member above, that member, which has a source below its window, waits for none below it: that
  would take, by the above, that it has none. Whoever follows waits always the same way, and a chain has two ends.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolproof_fast.scan import FoundPages, PageMap, extent_without, highest, lowest
from poolproof_spec.geometry import Geometry, Kind

Pages = NDArray[np.int32]
Interval = tuple[int, int]
"""[start, end) in bytes; empty where they are equal."""
NOTHING: Interval = (0, 0)


class Batch(NamedTuple):
    """All moves of one member: page sources[k] goes to destinations[k], in any order."""

    member_index: int
    sources: Pages
    destinations: Pages


class Span(NamedTuple):
    """Where in the arena a batch reads and writes."""

    sources_below: Interval
    """From the first to the last source below the window."""
    sources_above: Interval
    destinations: Interval


def batches(
    geometry: Geometry,
    windows: Sequence[tuple[int, int] | None],
    movable: Sequence[PageMap],
    free: Sequence[PageMap],
) -> list[Batch]:
    """Moves after which every movable page lies in its member's window, as few as can be, in an order that works.

    `movable[i]` and `free[i]` have a byte for each page of member i: 1 where a movable live page lies, 1 where a page
    is neither live nor pending. A window has a free page for each movable one outside it. Destinations are those
    nearest to where the member grows from: the lowest (up), the highest (down), or nearest to what stays (float).
    """
    waiting: list[tuple[Batch, Span]] = []
    for index, (member, window) in enumerate(zip(geometry.members, windows, strict=True)):
        if window is None:
            continue
        start, end = window
        below = lowest(movable[index], start, 0, start)
        above = lowest(movable[index], len(movable[index]), end, len(movable[index]))
        count = len(below) + len(above)
        if not count:
            continue
        found = destinations_for(count, member.kind, free[index], start, end)
        if len(found) != count:
            raise ValueError(f"{member.name}: {count} pages must move into window {window}, found {len(found)} free")
        sources = np.concatenate((below, above)).astype(np.int32)
        size = member.page_bytes
        span = Span(_interval(below, size), _interval(above, size), _interval(found, size))
        waiting.append((Batch(index, sources, found.astype(np.int32)), span))
    return _in_vacating_order(waiting)


def destinations_for(count: int, kind: Kind, free: PageMap, start: int, end: int) -> FoundPages:
    """`count` free pages of [start, end), ascending; fewer where there are fewer."""
    if kind == "up":
        return lowest(free, count, start, end)
    if kind == "down":
        return highest(free, count, start, end)
    return _around(count, free, start, end)


def _around(count: int, free: PageMap, start: int, end: int) -> FoundPages:
    """Holes of what stays, then the pages on both sides in turn; where nothing stays, from the middle of the window."""
    stays = extent_without(free, start, end)
    if stays is None:
        begin = min(max((start + end - count) // 2, start), end)
        return np.arange(begin, min(begin + count, end))
    low, high = stays
    holes = lowest(free, count, low, high)
    rest = min(count - len(holes), low - start + end - high)
    below = min(max((rest + 1) // 2, rest - (end - high)), low - start)
    above = rest - below
    return np.concatenate((np.arange(low - below, low), holes, np.arange(high, high + above)))


def _interval(pages: FoundPages, page_bytes: int) -> Interval:
    return (int(pages[0]) * page_bytes, (int(pages[-1]) + 1) * page_bytes) if len(pages) else NOTHING


def _in_vacating_order(waiting: list[tuple[Batch, Span]]) -> list[Batch]:
    """The batches, each after those that it waits for."""
    ordered = []
    while waiting:
        ready = next(k for k, one in enumerate(waiting) if not any(_waits_for(one, other) for other in waiting))
        ordered.append(waiting.pop(ready)[0])
    return ordered


def _waits_for(one: tuple[Batch, Span], other: tuple[Batch, Span]) -> bool:
    """Whether a batch may write where another has yet to leave."""
    (batch, span), (in_the_way, vacating) = one, other
    if batch.member_index == in_the_way.member_index:
        return False
    is_above = in_the_way.member_index > batch.member_index
    start, end = vacating.sources_below if is_above else vacating.sources_above
    return start < span.destinations[1] and span.destinations[0] < end
