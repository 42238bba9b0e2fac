"""[T1]: the sweep is the definition, on chains of any length and sizes."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from poolproof_spec.definition import are_windows, is_window, windows_exist
from poolproof_spec.occupancy import Occupancy
from poolproof_spec.sweep import Window, is_empty, sweep, sweep_member, widen

from .random_chains import random_chain

RANDOM = st.randoms(use_true_random=False)


@given(RANDOM)
@settings(max_examples=600)
def test_the_sweep_is_the_definition(rng: Random) -> None:
    chain = random_chain(rng)
    assert sweep(chain.needs()).fits == windows_exist(*chain)


def test_the_sweep_is_the_definition_on_many_more() -> None:
    rng, fitting, pinned, lengths = Random(2), 0, 0, set()
    for _ in range(16000):
        chain = random_chain(rng, arena=rng.randint(3, 9))
        found = sweep(chain.needs()).fits
        assert found == windows_exist(*chain), chain
        fitting, pinned = fitting + found, pinned + any(chain.pinned)
        lengths.add(len(chain.geometry.members))
    assert lengths == {1, 2, 3, 4, 5}
    assert 4000 < fitting < 14000
    assert pinned > 4000


@given(RANDOM, st.integers(0, 6))
@settings(max_examples=300)
def test_no_window_above_a_position_ends_lower_than_the_sweeps(rng: Random, position: int) -> None:
    """The induction step of T1."""
    chain = random_chain(rng)
    need, member = chain.needs()[0], chain.geometry.members[0]
    if is_empty(need):
        return
    least, end_byte = sweep_member(need, position)
    starts = range(-(-position // member.page_bytes), member.page_count + 1)
    ends = [
        end
        for start in starts
        for end in range(member.page_count + 1)
        if is_window(chain.geometry, 0, (start, end), chain.pinned[0], chain.loose[0])
    ]
    assert least.fits == bool(ends)
    if ends:
        assert least.end == min(ends)
        assert end_byte == least.end * member.page_bytes


@given(RANDOM)
@settings(max_examples=300)
def test_unpinning_and_lowering_never_turn_fits_into_not_fits(rng: Random) -> None:
    """[T2] on the sweep's own inputs."""
    chain = random_chain(rng)
    if not sweep(chain.needs()).fits:
        return
    for index, loose in enumerate(chain.loose):
        for page in chain.pinned[index]:
            fewer = [*chain.pinned]
            fewer[index] = chain.pinned[index] - {page}
            moved = [*chain.loose]
            moved[index] = loose + 1
            assert sweep(chain._replace(pinned=tuple(fewer)).needs()).fits, "freeing a pinned page"
            assert sweep(chain._replace(pinned=tuple(fewer), loose=tuple(moved)).needs()).fits, "unpinning a page"
        if loose:
            lower = [*chain.loose]
            lower[index] = loose - 1
            assert sweep(chain._replace(loose=tuple(lower)).needs()).fits, "freeing a loose page"


@given(RANDOM)
@settings(max_examples=500)
def test_widened_windows_are_windows_and_leave_no_room_between(rng: Random) -> None:
    chain = random_chain(rng)
    needs = chain.needs()
    found = sweep(needs)
    if not found.fits:
        return
    widened = widen(needs, found.windows)
    pairs = tuple(None if window is None else (window.start, window.end) for window in widened)
    assert are_windows(chain.geometry, pairs, chain.pinned, chain.loose)
    above: tuple[Occupancy, Window] | None = None
    for need, narrow, window in reversed(list(zip(needs, found.windows, widened, strict=True))):
        assert (window is None) == is_empty(need)
        if window is not None:
            assert window.start == narrow.start
            assert window.end >= narrow.end
            blocked_by_next = (
                above is not None and (window.end + 1) * need.page_bytes > above[1].start * above[0].page_bytes
            )
            top = needs[-1]
            anchored = (
                is_empty(top)
                and top.anchored_down
                and (window.end + 1) * need.page_bytes > top.page_count * top.page_bytes
            )
            assert window.end == need.page_count or blocked_by_next or anchored
            above = (need, window)


def test_the_seeds_second_row() -> None:
    """State ends at page 8 of 48 bytes = byte 384 = SWA page 12; FULL's low frontier is page 113 (model, section 7)."""
    state = Occupancy(page_bytes=48, first_page=1, page_count=141, loose_count=7)
    swa = Occupancy(page_bytes=32, first_page=2, page_count=212, loose_count=95 + 4)
    full = Occupancy(page_bytes=32, first_page=2, page_count=212, loose_count=95 + 4)
    found = sweep((state, swa, full))
    assert [(window.start, window.end) for window in found.windows] == [(1, 8), (12, 111), (111, 210)]
    assert found.fits
    more = replace(state, loose_count=8), replace(swa, loose_count=100), replace(full, loose_count=100)
    assert [(window.start, window.end, window.fits) for window in sweep(more).windows] == [
        (1, 9, True),
        (14, 114, True),
        (114, 214, False),
    ]


def test_an_empty_chain_fits() -> None:
    assert sweep(()).fits
    assert widen((), ()) == ()
