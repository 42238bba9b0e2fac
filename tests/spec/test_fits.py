"""The definition by itself, and that it is monotone [T2]."""

from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from poolproof_spec.definition import Windows, are_windows, is_window, windows_exist
from poolproof_spec.demand import Demand
from poolproof_spec.fits import fits, ids_suffice
from poolproof_spec.geometry import derive
from poolproof_spec.state import Hold
from poolproof_spec.steps import after_free
from poolproof_spec.units import PageId
from poolproof_spec.verdict import after_events

from .builders import hold, pool, swa2, tri
from .random_chains import Chain, random_chain
from .random_states import EVENT, random_demand, random_geometry, random_state

RANDOM = st.randoms(use_true_random=False)


def pages(*numbers: int) -> frozenset[PageId]:
    return frozenset(PageId(number) for number in numbers)


def exist_naively(chain: Chain) -> bool:
    """Every choice of windows for all members at once."""
    choices: list[list[tuple[int, int] | None]] = [
        [None, *product(range(member.page_count + 1), range(member.page_count + 1))]
        for member in chain.geometry.members
    ]
    return any(are_windows(chain.geometry, windows, chain.pinned, chain.loose) for windows in product(*choices))


def test_windows_exist_tries_every_choice() -> None:
    rng, answers = Random(1), set()
    for _ in range(150):
        chain = random_chain(rng, arena=5)
        if len(chain.geometry.members) <= 3:
            found = exist_naively(chain)
            assert windows_exist(*chain) == found, chain
            answers.add(found)
    assert answers == {True, False}


@pytest.mark.parametrize(
    ("window", "pinned", "loose", "holds"),
    [
        ((1, 4), pages(), 3, True),
        ((0, 3), pages(), 3, False),
        ((2, 5), pages(), 3, False),
        ((1, 3), pages(), 3, False),
        ((1, 3), pages(2), 1, True),
        ((2, 4), pages(1), 1, False),
        ((1, 3), pages(3), 1, False),
        ((3, 2), pages(), 0, False),
    ],
)
def test_a_window_is_usable_around_its_pins_and_large_enough(
    window: tuple[int, int], pinned: frozenset[PageId], loose: int, holds: bool
) -> None:
    geometry = derive(4, [("F", "full", 1, "down")])
    assert is_window(geometry, 0, window, pinned, loose) == holds


@pytest.mark.parametrize(
    ("windows", "hold_there"),
    [
        (((1, 2), (2, 3), (3, 4)), True),
        (((1, 3), (2, 3), (3, 4)), False),
        (((3, 4), None, (1, 2)), False),
        (((1, 2), None, (2, 3)), True),
        (((1, 2), None, None), False),
    ],
)
def test_windows_lie_in_chain_order(windows: Windows, hold_there: bool) -> None:
    needed = (1, 1 if windows[1] else 0, 1)
    assert are_windows(tri(6), windows, (pages(), pages(), pages()), needed) == hold_there


def test_an_empty_anchored_member_closes_its_base() -> None:
    chain = [("A", "state", 2, "up"), ("D", "full", 3, "down")]
    for anchored, loose, holds in [((), 4, True), (("A",), 4, False), (("A",), 3, True)]:
        geometry = derive(15, chain, anchored=anchored)  # type: ignore[arg-type]
        assert (geometry.members[0].first_page, geometry.members[1].first_page) == (2, 1)
        assert windows_exist(geometry, (pages(), pages()), (0, loose)) == holds
    for anchored, loose, holds in [((), 6, True), (("D",), 6, False), (("D",), 5, True)]:
        geometry = derive(17, chain, anchored=anchored)  # type: ignore[arg-type]
        assert geometry.members[1].page_count * 3 == 15
        assert windows_exist(geometry, (pages(), pages()), (loose, 0)) == holds


def test_ids_must_suffice() -> None:
    state = pool(tri(12), holds=[hold("r", [1, 2], swa=False, states=[1])])
    assert len(state.free_token_ids) == 9
    assert len(state.free_state_ids) == 10
    assert ids_suffice(state, Demand(full_pages=9, state_pages=10))
    assert not ids_suffice(state, Demand(full_pages=10))
    assert not ids_suffice(state, Demand(state_pages=11))
    assert not fits(replace(state, free_token_ids=()), Demand(full_pages=1))
    assert fits(replace(state, free_token_ids=()), Demand(swa_pages=1))


def test_the_seeds_three_victims() -> None:
    """96 single-token prefixes in an arena for 199 pages: six tokens need 12 bytes' worth, 7 are free."""
    state = pool(swa2(199), holds=[hold("cached", range(1, 97))])
    six = Demand(full_pages=6, swa_pages=6)
    left = [Hold(name="", ids=cut, swa_ids=cut) for cut in (state.holds[0].ids[:count] for count in range(4))]
    assert [fits(after_free(state, freed), six) for freed in left] == [False, False, False, True]


@given(RANDOM)
@settings(max_examples=300)
def test_what_makes_room_never_turns_fits_into_not_fits(rng: Random) -> None:
    """[T2] Freeing a page, opening a gate, firing the event, waiting, and demanding less."""
    state = random_state(rng, random_geometry(rng))
    demand = random_demand(rng, state)
    if not fits(state, demand):
        return
    for member, now in zip(state.geometry.members, state.members, strict=True):
        for identifier in now.live_ids:
            part = {"full": "ids", "swa": "swa_ids", "state": "state_ids"}[member.role]
            assert fits(after_free(state, replace(Hold(name=""), **{part: (identifier,)})), demand)
    assert fits(replace(state, members=tuple(replace(now, gate_open=True) for now in state.members)), demand)
    assert fits(after_events(state, [EVENT]), demand)
    assert fits(state, replace(demand, may_wait=True))
    for less in ("full_pages", "swa_pages", "state_pages"):
        if getattr(demand, less):
            assert fits(state, replace(demand, **{less: getattr(demand, less) - 1}))
