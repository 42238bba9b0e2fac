"""The windows are allowed by the definition, and no allowed windows cost less: against trying all of them."""

from functools import cache
from random import Random

import numpy as np
import pytest

from poolproof_fast import scan, windows
from poolproof_fast.windows import Need, least_byte_windows
from poolproof_spec.definition import are_windows, is_window
from poolproof_spec.geometry import layout
from poolproof_spec.sweep import Window, is_empty, sweep, widen

from .random_layouts import Layout, random_layout

Pairs = tuple[tuple[int, int] | None, ...]


def copied_bytes(given: Layout, pairs: Pairs) -> int:
    """[T4] What must be copied for these windows."""
    return sum(
        member.page_bytes * sum(not pair[0] <= page < pair[1] for page in live)
        for member, live, pair in zip(given.geometry.members, given.live, pairs, strict=True)
        if pair is not None
    )


def least_cost(given: Layout) -> float:
    """The twin: every window of every member, from the lowest on."""
    members, needs = given.geometry.members, given.occupancies()

    @cache
    def cost_from(index: int, position: int) -> float:
        if index == len(members):
            return 0
        member, need = members[index], needs[index]
        if is_empty(need):
            if need.anchored_down and position > member.page_count * member.page_bytes:
                return float("inf")
            closed = member.first_page * member.page_bytes if need.anchored_up else 0
            return cost_from(index + 1, max(position, closed))
        live = given.live[index]
        return min(
            (
                member.page_bytes * sum(not start <= page < end for page in live)
                + cost_from(index + 1, end * member.page_bytes)
                for start in range(-(-position // member.page_bytes), member.page_count)
                for end in range(start, member.page_count + 1)
                if is_window(given.geometry, index, (start, end), given.pinned[index], given.loose[index])
            ),
            default=float("inf"),
        )

    return cost_from(0, 0)


def as_pairs(found: tuple[Window | None, ...]) -> Pairs:
    return tuple(None if window is None else (window.start, window.end) for window in found)


def check(given: Layout) -> float | None:
    """Everything that is claimed of the windows; their cost, None where there are none."""
    found = least_byte_windows(given.geometry, given.needs(), given.movable())
    swept = sweep(given.occupancies())
    assert (found is not None) == swept.fits, given
    if found is None:
        return None
    assert are_windows(given.geometry, tuple(found), given.pinned, given.loose), (given, found)
    cost = copied_bytes(given, tuple(found))
    assert cost == least_cost(given), (given, found)
    assert cost <= copied_bytes(given, as_pairs(widen(given.occupancies(), swept.windows)))
    return cost


@pytest.mark.parametrize(("spare", "chunk"), [(64, 4096), (0, 1), (1, 2)])
def test_no_windows_cost_less(spare: int, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "SPARE_PAGES", spare)
    monkeypatch.setattr(scan, "FIRST_CHUNK_PAGES", chunk)
    rng = Random(7 + spare)
    costs = [check(random_layout(rng, rng.randint(5, 13))) for _ in range(1000)]
    assert 0.1 < sum(cost is None for cost in costs) / len(costs) < 0.5
    assert sum(cost is not None and cost > 0 for cost in costs) > 100


def test_no_windows_cost_less_in_larger_arenas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "SPARE_PAGES", 1)
    rng = Random(3)
    costs = [check(random_layout(rng, 26, pins=0.1)) for _ in range(200)]
    assert sum(cost is not None and cost > 3 for cost in costs) > 12


def test_a_dearer_choice_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong on purpose: the least end instead of the cheapest one."""
    right = windows.chosen
    monkeypatch.setattr(
        windows,
        "chosen",
        lambda needs, choices: right(needs, [c._replace(costs=np.arange(len(c.ends))) for c in choices]),
    )
    rng = Random(7)
    layouts = [random_layout(rng, 26) for _ in range(100)]
    with pytest.raises(AssertionError):
        list(map(check, layouts))


def test_free_room_is_the_lower_members() -> None:
    """Nothing moves, and each boundary lies right below the next member's lowest page, less what is demanded of it."""
    geometry = layout("tri", 64 * 100, STATE=64, SWA=64, FULL=64)
    movable = [np.zeros(100, dtype=np.uint8) for _ in "abc"]
    movable[0][1:5], movable[1][30:50], movable[2][80:100] = 1, 1, 1
    needs = [Need(0, 0, 0, 4 + 1), Need(0, 0, 0, 20), Need(0, 0, 0, 20 + 3)]
    assert least_byte_windows(geometry, needs, movable) == [(1, 30), (30, 77), (77, 100)]


def test_a_pinned_float_keeps_its_place_and_others_make_room() -> None:
    geometry = layout("tri", 64 * 100, STATE=64, SWA=64, FULL=64)
    movable = [np.zeros(100, dtype=np.uint8) for _ in "abc"]
    movable[0][1:11], movable[1][11:20], movable[2][90:100] = 1, 1, 1
    needs = [Need(0, 0, 0, 10 + 5), Need(1, 20, 21, 9), Need(0, 0, 0, 10)]
    assert least_byte_windows(geometry, needs, movable) == [(1, 16), (16, 90), (90, 100)]
    assert least_byte_windows(geometry, [Need(0, 0, 0, 20), *needs[1:]], movable) is None


def test_nothing_held_and_nothing_asked() -> None:
    geometry = layout("swa2", 640, FULL=32, SWA=32)
    assert least_byte_windows(geometry, [Need(0, 0, 0, 0)] * 2, [np.zeros(20, dtype=np.uint8)] * 2) == [None, None]
