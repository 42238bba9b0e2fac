"""The agreements hold on every TINY state; wrong sweeps and wrong plans are caught; nothing checked is no pass."""

from collections.abc import Iterator, Sequence

import pytest

from poolproof_conformance import agreements
from poolproof_conformance.agreements import DEMANDS, MOVES, SWEEP, Agreement, agree, disagreements, window_problem
from poolproof_spec import moves
from poolproof_spec.geometry import Geometry
from poolproof_spec.moves import Batch, in_vacating_order
from poolproof_spec.occupancy import Occupancy
from poolproof_spec.sweep import Sweep, Window, sweep, sweep_member, widen
from poolproof_spec.tiny import state_of, tiny_geometries, tiny_states
from poolproof_spec.verdict import Verdict

FAMILY = list(tiny_geometries())
SMALL = [FAMILY[4], FAMILY[7], FAMILY[11]]
"""Two chains of three with page sizes of 1, 2 and 3 bytes, one anchored; 11,253 states."""
MIXED = [FAMILY[12]]
"""A chain of four; 5,584 states."""


def verdicts(found: tuple[Agreement, ...]) -> dict[str, Verdict]:
    return {agreement.name: agreement.verdict for agreement in found}


def test_a_subfamily_agrees() -> None:
    told: list[int] = []
    found = agree([*SMALL, *MIXED], on_state=told.append)
    assert verdicts(found) == {SWEEP: "holds", MOVES: "holds"}
    assert {agreement.states for agreement in found} == {5284 + 4549 + 1420 + 5584}
    assert [agreement.detail for agreement in found] == ["", ""]
    assert told == list(range(1000, 16_001, 1000))


def test_nothing_checked_is_unknown() -> None:
    assert verdicts(agree([])) == {SWEEP: "unknown", MOVES: "unknown"}


def off_by_one(needs: Sequence[Occupancy]) -> Sweep:
    """Starts one page late."""
    found = sweep(needs)
    return found._replace(
        fits=found.fits and all(window.end < need.page_count for need, window in zip(needs, found.windows, strict=True))
    )


def ignores_pins(needs: Sequence[Occupancy]) -> Sweep:
    """Counts pages and forgets where the pinned ones lie."""
    return sweep([Occupancy(**{**_fields(need), "pinned_end": 0, "pinned_start": 99}) for need in needs])


def ignores_the_grid(needs: Sequence[Occupancy]) -> Sweep:
    """Compares bytes in all, as one certificate did."""
    total = sum((need.pinned_count + need.loose_count) * need.page_bytes for need in needs)
    room = max(need.page_count * need.page_bytes for need in needs) - max(need.page_bytes for need in needs)
    return sweep(needs)._replace(fits=total <= room)


def ignores_anchors(needs: Sequence[Occupancy]) -> Sweep:
    """Takes an empty anchored member for a transparent one."""
    return sweep([Occupancy(**{**_fields(need), "anchored_up": False, "anchored_down": False}) for need in needs])


def _fields(need: Occupancy) -> dict[str, int | bool]:
    return {name: getattr(need, name) for name in Occupancy.__struct_fields__}


@pytest.mark.parametrize("wrong", [off_by_one, ignores_pins, ignores_the_grid, ignores_anchors])
def test_a_wrong_sweep_is_caught(monkeypatch: pytest.MonkeyPatch, wrong: object) -> None:
    monkeypatch.setattr(agreements, "sweep", wrong)
    found = agree([FAMILY[11]])
    assert verdicts(found)[SWEEP] == "violated"
    assert "sweep says" in found[0].detail
    assert "the definition" in found[0].detail


def test_a_sweep_that_skips_the_float_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def skipping(needs: Sequence[Occupancy]) -> Sweep:
        windows, position = [], 0
        for index, need in enumerate(needs):
            window, after = sweep_member(need, position)
            windows.append(window)
            position = position if index == 1 else after
        return Sweep(all(window.fits for window in windows), tuple(windows))

    monkeypatch.setattr(agreements, "sweep", skipping)
    assert verdicts(agree([FAMILY[4]]))[SWEEP] == "violated"


def reversed_order(geometry: Geometry, batches: Sequence[Batch]) -> Iterator[Batch]:
    yield from reversed(list(in_vacating_order(geometry, batches)))


def chain_order(geometry: Geometry, batches: Sequence[Batch]) -> Iterator[Batch]:
    """Low to high, whoever stands in the way."""
    yield from (batch for batch in batches if batch.moves)


def test_the_order_of_moves_reversed_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "in_vacating_order", reversed_order)
    found = agree(MIXED)
    assert verdicts(found) == {SWEEP: "holds", MOVES: "violated"}
    assert "which are in use" in found[1].detail


def test_moves_in_chain_order_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "in_vacating_order", chain_order)
    asked = (disagreements(state, demand) for state in tiny_states(FAMILY[0]) for demand in DEMANDS)
    name, detail = next(problem for problems in asked for problem in problems)
    assert name == MOVES
    assert "which are in use" in detail


def test_windows_that_overlap_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def to_the_end(needs: Sequence[Occupancy], windows: Sequence[Window]) -> tuple[Window | None, ...]:
        return tuple(
            window and window._replace(end=need.page_count)
            for need, window in zip(needs, widen(needs, windows), strict=True)
        )

    monkeypatch.setattr(agreements, "widen", to_the_end)
    found = agree([FAMILY[4]])
    assert verdicts(found) == {SWEEP: "holds", MOVES: "violated"}
    assert "overlaps the one below" in found[1].detail


def test_a_window_too_small_is_told() -> None:
    need = Occupancy(page_bytes=1, first_page=1, page_count=9, loose_count=3)
    assert window_problem([need], [Window(1, 4, True)]) is None
    assert window_problem([need], [Window(1, 3, True)]) == "window Window(start=1, end=3, fits=True) is too small"
    assert "leaves the arena" in str(window_problem([need], [Window(7, 10, True)]))


def test_one_state_is_asked_every_demand() -> None:
    state = state_of(FAMILY[0], ["." * 5] * 3)
    assert [list(disagreements(state, demand)) for demand in DEMANDS] == [[], [], []]
    assert state in set(tiny_states(FAMILY[0]))


def test_the_whole_family_agrees() -> None:
    """The two agreements of `poolproof check`; about half a minute."""
    found = agree()
    assert verdicts(found) == {SWEEP: "holds", MOVES: "holds"}
    assert {agreement.states for agreement in found} == {184_144}
    assert all(agreement.states >= 100_000 for agreement in found)
