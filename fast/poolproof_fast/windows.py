"""Windows for which the fewest bytes must be copied: exact, for chains of any length.

Which windows are allowed is the definition [D-fits]. Of those, a page that lies outside its member's window must be
copied, and nothing else need be [T4]: the cost is the bytes of the movable live pages outside. `least_byte_windows` is
proved to find the least cost for the given needs. It does not choose what the needs are (which entries to evict), nor
does it look ahead to later demands.

The proof is the recurrence. Let F_i(b) be the least cost of the members from i on, when they may begin at byte b.

    F_i(b) = below_i(A) + min over B >= max(A + |X| + M, end of X), B <= N of (above_i(B) + F_{i+1}(B * e_i))

with A = max(f, ceil(b / e_i)), F infinite where A > start of X or no B is left, and below_i(A), above_i(B) the bytes of
movable pages below A and from B on. The least A is best: it has the fewest pages below it and allows every B that
another does. Each F_i is a step function that never falls. It is kept as its steps, which are at movable pages or come
from the next member's: free pages cost no time.

Nor do pages deep inside a member: windows are looked for within a budget of bytes, and what costs more is dropped. What
is found within a budget is least of all; where nothing is found the budget grows. It begins a little above a lower
bound, which is often reached: what lies below the least start, or above the greatest end, that any windows give.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolproof_fast.scan import PageMap, count_in, highest, lowest
from poolproof_spec.geometry import Geometry
from poolproof_spec.occupancy import Occupancy
from poolproof_spec.sweep import Window, is_empty, sweep, widen

Numbers = NDArray[np.int64]
WindowPair = tuple[int, int]
"""[start, end) in pages of one member."""

SPARE_PAGES = 64
"""Pages (the largest ones) by which the first budget exceeds the lower bound."""
BUDGET_GROWTH = 4


class Need(NamedTuple):
    """What one member must hold; with its geometry, an `Occupancy` of the specification."""

    pinned_count: int
    """Pages that cannot move now (|X|)."""
    pinned_start: int
    """Lowest pinned page; meaningless when there is none."""
    pinned_end: int
    """One past the highest pinned page; 0 when there is none."""
    loose_count: int
    """Movable live pages plus demanded new pages (M)."""


class Bounds(NamedTuple):
    """Limits, in pages, within which any windows of all members lie; meaningless for an empty member."""

    least_start: int
    least_end: int
    greatest_end: int
    below_count: int
    """Movable pages below the least start."""
    beyond_count: int
    """Movable pages from the greatest end on."""


class Steps(NamedTuple):
    """F: a step function of a byte position. It is `costs[k]` up to `limits[k]`, and infinite above the last one."""

    limits: Numbers
    """In bytes, ascending."""
    costs: Numbers
    """In bytes, rising."""


class Choices(NamedTuple):
    """The ends that one member's window may have, and what it costs from that end on."""

    ends: Numbers
    """In pages, ascending."""
    costs: Numbers
    """In bytes: this member's pages from the end on, and all that the members above cost."""


def least_byte_windows(
    geometry: Geometry, needs: Sequence[Need], movable: Sequence[PageMap]
) -> list[WindowPair | None] | None:
    """Windows with the fewest bytes of movable pages outside; None where the needs do not fit.

    `movable[i]` has a byte for each page of member i, 1 where a movable live page lies. An empty member's window is
    None. Among windows of equal cost each boundary lies as high as it can, from the lowest member on: free room between
    two members is the lower one's.
    """
    occupancies = occupancies_of(geometry, needs)
    bounds = bounds_of(occupancies, movable, geometry.total_bytes)
    if bounds is None:
        return None
    budget = SPARE_PAGES * max(member.page_bytes for member in geometry.members) + sum(
        member.page_bytes * (bound.below_count + bound.beyond_count)
        for member, bound in zip(geometry.members, bounds, strict=True)
    )
    while True:
        choices = choices_within(budget, geometry.total_bytes, occupancies, movable, bounds)
        if choices is not None:
            windows = widen(occupancies, chosen(occupancies, choices))
            return [None if window is None else (window.start, window.end) for window in windows]
        assert budget <= geometry.total_bytes, "windows exist, and cost at most all bytes of the arena"
        budget = BUDGET_GROWTH * (budget + 1)


def occupancies_of(geometry: Geometry, needs: Sequence[Need]) -> list[Occupancy]:
    """The needs as the specification's rules read them."""
    return [
        Occupancy(
            page_bytes=member.page_bytes,
            first_page=member.first_page,
            page_count=member.page_count,
            anchored_up=member.anchored and member.kind == "up",
            anchored_down=member.anchored and member.kind == "down",
            pinned_count=need.pinned_count,
            pinned_start=need.pinned_start,
            pinned_end=need.pinned_end,
            loose_count=need.loose_count,
        )
        for member, need in zip(geometry.members, needs, strict=True)
    ]


def bounds_of(needs: Sequence[Occupancy], movable: Sequence[PageMap], total_bytes: int) -> list[Bounds] | None:
    """Least starts and ends from the sweep, greatest ends from its mirror image. None where nothing fits."""
    least = sweep(needs)
    if not least.fits:
        return None
    bounds = []
    limit = total_bytes
    for need, pages, window in reversed(list(zip(needs, movable, least.windows, strict=True))):
        if is_empty(need):
            bounds.append(Bounds(0, 0, 0, 0, 0))
            limit = min(limit, need.page_count * need.page_bytes) if need.anchored_down else limit
            continue
        end = min(need.page_count, limit // need.page_bytes)
        below, beyond = count_in(pages, 0, window.start), count_in(pages, end, len(pages))
        bounds.append(Bounds(window.start, window.end, end, below, beyond))
        start = end - need.pinned_count - need.loose_count
        limit = (min(start, need.pinned_start) if need.pinned_count else start) * need.page_bytes
    return bounds[::-1]


def choices_within(
    budget: int, total_bytes: int, needs: Sequence[Occupancy], movable: Sequence[PageMap], bounds: Sequence[Bounds]
) -> list[Choices] | None:
    """The backward pass: for each member every end worth choosing; None where no windows cost so little."""
    steps = Steps(np.array([total_bytes]), np.zeros(1, dtype=np.int64))
    choices = []
    for need, pages, bound in reversed(list(zip(needs, movable, bounds, strict=True))):
        if is_empty(need):
            choices.append(Choices(*steps))
            steps = _past_empty(need, steps)
        else:
            choices.append(_choices(budget, need, pages, bound, steps))
            steps = _steps(budget, need, pages, bound, choices[-1])
        if not len(steps.limits):
            return None
    return choices[::-1]


def _past_empty(need: Occupancy, above: Steps) -> Steps:
    """F of an empty member: that of the members above, but for what an anchor closes."""
    limits, costs = above
    if need.anchored_up:
        open_from = int(np.searchsorted(limits, need.first_page * need.page_bytes))
        limits, costs = limits[open_from:], costs[open_from:]
    if need.anchored_down:
        limits = np.minimum(limits, need.page_count * need.page_bytes)
    return Steps(limits, costs)


def _choices(budget: int, need: Occupancy, pages: PageMap, bound: Bounds, above: Steps) -> Choices:
    """For each step of the members above, the highest end on it: no other end there costs less."""
    ends = np.minimum(above.limits // need.page_bytes, need.page_count)
    first = int(np.searchsorted(ends, bound.least_end))
    ends, costs = ends[first:], above.costs[first:]
    if not len(ends):
        return Choices(ends, costs)
    beyond = bound.beyond_count + count_in(pages, int(ends[-1]), bound.greatest_end)
    # One page more than the budget pays for: what lies further inside need not be counted.
    counted = highest(pages, budget // need.page_bytes - beyond + 1, int(ends[0]), int(ends[-1]))
    costs = costs + need.page_bytes * (beyond + len(counted) - np.searchsorted(counted, ends))
    kept = costs <= budget
    return Choices(ends[kept], costs[kept])


def _steps(budget: int, need: Occupancy, pages: PageMap, bound: Bounds, choices: Choices) -> Steps:
    """F from the choices of this member: a step at each movable page, and where an end is no longer within reach."""
    if not len(choices.ends):
        return Steps(*choices)
    least = np.minimum.accumulate(choices.costs[::-1])[::-1]
    starts = choices.ends - (need.pinned_count + need.loose_count)
    if need.pinned_count:
        starts = np.minimum(starts, need.pinned_start)
    below = bound.below_count
    counted = lowest(pages, budget // need.page_bytes - below + 1, bound.least_start, int(starts[-1]))
    limits = np.concatenate((starts, counted))
    limits.sort(kind="stable")
    costs = least[np.searchsorted(starts, limits)] + need.page_bytes * (below + np.searchsorted(counted, limits))
    kept = costs <= budget
    kept[:-1] &= costs[:-1] < costs[1:]
    return Steps(limits[kept] * need.page_bytes, costs[kept])


def chosen(needs: Sequence[Occupancy], choices: Sequence[Choices]) -> list[Window]:
    """The forward pass: each member begins where the one below ends, and ends at the highest of its cheapest ends."""
    windows = []
    position = 0
    for need, (ends, costs) in zip(needs, choices, strict=True):
        if is_empty(need):
            windows.append(Window(0, 0, True))
            position = max(position, need.first_page * need.page_bytes) if need.anchored_up else position
            continue
        start = max(need.first_page, -(-position // need.page_bytes))
        least_end = max(need.pinned_end, start + need.pinned_count + need.loose_count)
        within_reach = costs[int(np.searchsorted(ends, least_end)) :]
        end = int(ends[len(ends) - 1 - int(np.argmin(within_reach[::-1]))])
        windows.append(Window(start, end, True))
        position = end * need.page_bytes
    return windows
