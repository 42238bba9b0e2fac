"""[T3, T4] Batches are executed copy by copy on a map of who owns each byte."""

from collections import Counter
from random import Random

import numpy as np
import pytest

from poolproof_fast import moves, scan
from poolproof_fast.moves import Batch, batches, destinations_for
from poolproof_fast.windows import least_byte_windows
from poolproof_spec.sweep import sweep, widen

from .random_layouts import Layout, random_layout

Pairs = list[tuple[int, int] | None]


def execution_problem(given: Layout, pairs: Pairs, plan: list[Batch]) -> str | None:
    """The twin: what goes wrong when the batches are executed in order, page by page; None if nothing does."""
    members = given.geometry.members
    live = [set(pages) for pages in given.live]
    owner = {
        byte: index
        for index, member in enumerate(members)
        for page in given.live[index] | given.pinned[index]
        for byte in range(page * member.page_bytes, (page + 1) * member.page_bytes)
    }
    for index, sources, destinations in plan:
        size = members[index].page_bytes
        if set(sources.tolist()) & set(destinations.tolist()):
            return "sources and destinations meet"
        for source, destination in zip(sources.tolist(), destinations.tolist(), strict=True):
            target = range(destination * size, (destination + 1) * size)
            if source not in live[index]:
                return f"page {source} of member {index} is not there or cannot move"
            if any(byte in owner for byte in target):
                return f"page {source} of member {index} is copied over bytes in use"
            owner.update(dict.fromkeys(target, index))
            for byte in range(source * size, (source + 1) * size):
                del owner[byte]
            live[index] = live[index] - {source} | {destination}
    for index, pair in enumerate(pairs):
        if pair is not None and any(not pair[0] <= page < pair[1] for page in live[index]):
            return f"member {index} has pages outside {pair}"
    outside = sum(
        not pair[0] <= page < pair[1]
        for pages, pair in zip(given.live, pairs, strict=True)
        if pair is not None
        for page in pages
    )
    moved = sum(len(batch.sources) for batch in plan)
    return None if moved == outside else f"{moved} moves for {outside} pages outside"


def cases(count: int, seed: int) -> list[tuple[Layout, Pairs]]:
    """Layouts that fit, with the cheapest windows and with the sweep's, for which more must move."""
    rng, found = Random(seed), []
    while len(found) < count:
        given = random_layout(rng, rng.randint(6, 40), pins=0.3)
        cheapest = least_byte_windows(given.geometry, given.needs(), given.movable())
        if cheapest is not None:
            swept = widen(given.occupancies(), sweep(given.occupancies()).windows)
            found.append((given, cheapest))
            found.append((given, [None if window is None else (window.start, window.end) for window in swept]))
    return found


def plan_of(given: Layout, pairs: Pairs) -> list[Batch]:
    return batches(given.geometry, pairs, given.movable(), given.free())


@pytest.mark.parametrize("chunk", [2, 4096])
def test_batches_execute_and_move_no_page_that_may_stay(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "FIRST_CHUNK_PAGES", chunk)
    seen: Counter[str] = Counter()
    for given, pairs in cases(1600, seed=chunk):
        plan = plan_of(given, pairs)
        assert execution_problem(given, pairs, plan) is None, (given, pairs, plan)
        assert all(batch.sources.dtype == batch.destinations.dtype == np.int32 for batch in plan)
        seen["moving"] += bool(plan)
        seen["several members"] += len(plan) > 1
        seen["down the chain"] += [batch.member_index for batch in plan] != sorted(b.member_index for b in plan)
        seen["order matters"] += execution_problem(given, pairs, plan[::-1]) is not None
    assert seen["moving"] > 500
    assert seen["several members"] > 150
    assert seen["down the chain"] > 15
    assert seen["order matters"] > 15


def test_without_the_order_a_copy_lands_on_what_has_yet_to_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "_waits_for", lambda one, other: False)
    problems = [execution_problem(given, pairs, plan_of(given, pairs)) for given, pairs in cases(600, seed=5)]
    assert sum(problem is not None and "bytes in use" in problem for problem in problems) > 10


def test_destinations_are_nearest_to_where_the_member_grows_from() -> None:
    free = np.ones(20, dtype=np.uint8)
    free[[8, 9, 11]] = 0
    assert destinations_for(3, "up", free, 2, 18).tolist() == [2, 3, 4]
    assert destinations_for(3, "down", free, 2, 18).tolist() == [15, 16, 17]
    assert destinations_for(1, "float", free, 2, 18).tolist() == [10]
    assert destinations_for(4, "float", free, 2, 18).tolist() == [6, 7, 10, 12]
    assert destinations_for(4, "float", free, 7, 18).tolist() == [7, 10, 12, 13]
    assert destinations_for(4, "float", free, 2, 13).tolist() == [6, 7, 10, 12]
    assert destinations_for(4, "float", free, 12, 20).tolist() == [14, 15, 16, 17]
    assert len(destinations_for(40, "float", free, 2, 18)) == 13
    assert len(destinations_for(40, "float", free, 12, 18)) == 6


def test_a_window_without_room_is_an_error() -> None:
    given = next(given for given, pairs in cases(50, seed=1) if len(given.live[0]) > 1)
    member = given.geometry.members[0]
    pairs: Pairs = [(member.page_count, member.page_count), *[None] * (len(given.live) - 1)]
    with pytest.raises(ValueError, match=r"pages must move into window .* found 0 free"):
        plan_of(given, pairs)
