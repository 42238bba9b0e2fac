"""The first pages of a kind from one end of a stretch, looked for in growing chunks: cost follows how far they lie."""

import numpy as np
from numpy.typing import NDArray

PageMap = NDArray[np.uint8]
"""One byte a page of a member: 1 where something holds, else 0."""
FoundPages = NDArray[np.int64]

FIRST_CHUNK_PAGES = 4096
"""Pages that a scan looks at first; each further chunk is twice as long."""


def lowest(pages: PageMap, count: int, start: int, end: int) -> FoundPages:
    """Up to `count` lowest pages of [start, end) that the map has, ascending."""
    truths, found, chunk = pages.view(np.bool_), [], max(FIRST_CHUNK_PAGES, count)
    if count > 0 and start < end:
        start += int(truths[start:end].argmax())  # stays where there is none
        if not truths[start]:
            return _joined([])
    while count > 0 and start < end:
        stop = min(start + chunk, end)
        new = np.flatnonzero(truths[start:stop])[:count]
        if len(new):
            found.append(new + start)
            count -= len(new)
        start, chunk = stop, 2 * chunk
    return _joined(found)


def highest(pages: PageMap, count: int, start: int, end: int) -> FoundPages:
    """Up to `count` highest pages of [start, end) that the map has, ascending."""
    truths, found, chunk = pages.view(np.bool_), [], max(FIRST_CHUNK_PAGES, count)
    while count > 0 and start < end:
        stop = max(end - chunk, start)
        new = np.flatnonzero(truths[stop:end])[-count:]
        if len(new):
            found.append(new + stop)
            count -= len(new)
        end, chunk = stop, 2 * chunk
    return _joined(found[::-1])


def extent_without(pages: PageMap, start: int, end: int) -> tuple[int, int] | None:
    """From the lowest to one past the highest page of [start, end) that the map lacks; None where it has all."""
    if start >= end:
        return None
    truths, chunk, high = pages.view(np.bool_), FIRST_CHUNK_PAGES, end
    low = start + int(truths[start:end].argmin())
    if truths[low]:
        return None
    while truths[max(high - chunk, low) : high].all():
        high, chunk = high - chunk, 2 * chunk
    bottom = max(high - chunk, low)
    return low, bottom + int(np.flatnonzero(~truths[bottom:high])[-1]) + 1


def count_in(pages: PageMap, start: int, end: int) -> int:
    """How many pages of [start, end) the map has."""
    return int(np.count_nonzero(pages[start:end].view(np.bool_))) if start < end else 0


def _joined(parts: list[FoundPages]) -> FoundPages:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
