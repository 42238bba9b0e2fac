"""[D-fits]: the definition. Windows exist, found by trying all of them (docs/spec.md#d-fits).

Nothing here is shared with the sweep, on purpose: the two are held against each other (T1).
"""

from collections.abc import Sequence

from poolproof_spec.geometry import Geometry
from poolproof_spec.units import PageId

Windows = tuple[tuple[int, int] | None, ...]
"""[A, B) in pages for each member that has any; None for an empty one."""


def is_window(geometry: Geometry, index: int, window: tuple[int, int], pinned: frozenset[PageId], loose: int) -> bool:
    """Whether [A, B) is a window of member `index` by itself: usable, around its pins, large enough."""
    member, (start, end) = geometry.members[index], window
    return (
        member.first_page <= start <= end <= member.page_count
        and all(start <= page < end for page in pinned)
        and end - start >= len(pinned) + loose
    )


def are_windows(
    geometry: Geometry, windows: Windows, pinned: Sequence[frozenset[PageId]], loose: Sequence[int]
) -> bool:
    """Whether the windows are all windows, in chain order, and share no byte with each other or a closed band."""
    return all(
        (window is None and not pinned[i] and loose[i] == 0)
        or (window is not None and is_window(geometry, i, window, pinned[i], loose[i]))
        for i, window in enumerate(windows)
    ) and are_in_order(geometry, windows)


def are_in_order(geometry: Geometry, windows: Windows) -> bool:
    """Every pair i < j: what i closes below ends no later than what j closes above begins."""
    count = len(windows)
    return all(
        _closed_up_to(geometry, i, windows[i]) <= _closed_from(geometry, j, windows[j])
        for i in range(count)
        for j in range(i + 1, count)
        if windows[i] is not None or windows[j] is not None
    )


def _closed_up_to(geometry: Geometry, index: int, window: tuple[int, int] | None) -> int:
    """The byte up to which a member closes the arena to those above it."""
    member = geometry.members[index]
    if window is not None:
        return window[1] * member.page_bytes
    return member.first_page * member.page_bytes if member.anchored and member.kind == "up" else 0


def _closed_from(geometry: Geometry, index: int, window: tuple[int, int] | None) -> int:
    """The byte from which on a member closes the arena to those below it."""
    member = geometry.members[index]
    if window is not None:
        return window[0] * member.page_bytes
    return member.page_count * member.page_bytes if member.anchored and member.kind == "down" else geometry.total_bytes


def windows_exist(geometry: Geometry, pinned: Sequence[frozenset[PageId]], loose: Sequence[int]) -> bool:
    """[D-fits] without the ids, by brute force: for small geometries only."""

    def some(chosen: Windows) -> bool:
        if not are_in_order(geometry, chosen):
            return False
        index = len(chosen)
        if index == len(geometry.members):
            return True
        if not pinned[index] and loose[index] == 0:
            return some((*chosen, None))
        ends = range(geometry.members[index].page_count + 1)
        return any(
            is_window(geometry, index, (start, end), pinned[index], loose[index]) and some((*chosen, (start, end)))
            for start in ends
            for end in ends
        )

    return some(())
