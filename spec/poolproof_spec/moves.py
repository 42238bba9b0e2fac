"""[T3]: from windows to moves that can be executed, member by member (docs/spec.md#t3-moves)."""

from collections.abc import Iterator, Sequence

import msgspec

from poolproof_spec.geometry import Geometry
from poolproof_spec.state import PoolState
from poolproof_spec.sweep import Window
from poolproof_spec.units import PageId


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """All moves of one member; sources and destinations are disjoint, so their order within it is free."""

    member_index: int
    moves: tuple[tuple[PageId, PageId], ...]
    """(source, destination) pages on the member's own grid."""


def batch_of(state: PoolState, index: int, window: Window, movable: frozenset[PageId]) -> Batch:
    """One member's moves: from its movable pages outside the window to free pages inside it.

    [T4] No plan for this window moves fewer pages: what lies outside must go, what lies inside may stay.
    """
    now = state.members[index]
    inside = range(window.start, window.end)
    sources = sorted(page for page in movable if page not in inside)
    taken = now.live_pages | now.pending_pages
    free = [PageId(page) for page in inside if page not in taken]
    return Batch(member_index=index, moves=tuple(zip(sources, free[: len(sources)], strict=True)))


def byte_range(geometry: Geometry, index: int, page: PageId) -> tuple[int, int]:
    """The bytes of a page of member `index`."""
    size = geometry.members[index].page_bytes
    return page * size, (page + 1) * size


def overlaps(geometry: Geometry, index: int, page: PageId, other_index: int, other_page: PageId) -> bool:
    """Whether two pages of two members share a byte."""
    start, end = byte_range(geometry, index, page)
    other_start, other_end = byte_range(geometry, other_index, other_page)
    return start < other_end and other_start < end


def must_vacate_first(geometry: Geometry, batch: Batch, other: Batch) -> bool:
    """Whether some destination of `batch` lies on a source of `other`."""
    return any(
        overlaps(geometry, batch.member_index, destination, other.member_index, source)
        for _, destination in batch.moves
        for source, _ in other.moves
    )


def in_vacating_order(geometry: Geometry, batches: Sequence[Batch]) -> Iterator[Batch]:
    """The batches so ordered that no copy lands on a page that has yet to leave.

    Such an order exists: the boundary between two members moves one way, so of two members at most one waits for
    the other, and along the chain the waiting has no cycle [T3].
    """
    waiting = [batch for batch in batches if batch.moves]
    while waiting:
        ready = next(
            batch
            for batch in waiting
            if not any(must_vacate_first(geometry, batch, other) for other in waiting if other is not batch)
        )
        waiting.remove(ready)
        yield ready


def move_plan(
    state: PoolState, windows: Sequence[Window | None], pinned: Sequence[frozenset[PageId]]
) -> tuple[Batch, ...]:
    """Every batch of moves that makes the state lie inside the windows, in an order that can be executed."""
    batches = [
        batch_of(state, index, window, state.members[index].live_pages - pinned[index])
        for index, window in enumerate(windows)
        if window is not None
    ]
    return tuple(in_vacating_order(state.geometry, batches))
