"""Histories are drawn in several searches, and the same seed gives the same ones."""

from poolproof_conformance.conform import HISTORIES_A_SEARCH, draw_histories
from poolproof_conformance.generator import History


def drawn(traces: int, seed_number: int) -> list[History]:
    found: list[History] = []
    draw_histories(found.append, traces=traces, seed_number=seed_number)
    return found


def test_the_same_seed_gives_the_same_histories() -> None:
    more = HISTORIES_A_SEARCH + 5
    histories = drawn(more, 3)
    assert len(histories) == more
    assert histories == drawn(more, 3)
    assert histories[:HISTORIES_A_SEARCH] == drawn(HISTORIES_A_SEARCH, 3)


def test_another_seed_and_another_search_give_other_histories() -> None:
    histories = drawn(2 * HISTORIES_A_SEARCH, 3)
    assert histories[:HISTORIES_A_SEARCH] != histories[HISTORIES_A_SEARCH:]
    assert histories[:HISTORIES_A_SEARCH] != drawn(HISTORIES_A_SEARCH, 4)


def test_histories_keep_to_the_asked_layouts() -> None:
    found: list[History] = []
    draw_histories(found.append, traces=20, seed_number=1, layouts=("mamba2",))
    assert {tuple(m.name for m in geometry.members) for geometry, _ in found} == {("STATE", "FULL")}
