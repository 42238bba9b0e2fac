"""The exhaustive family: how many states there are, and that each is what it says."""

from collections import Counter

from poolproof_spec.geometry import geometry_problems
from poolproof_spec.invariants import extents_ordered, pages_in_range
from poolproof_spec.occupancy import pinned_pages
from poolproof_spec.tiny import EVENT, state_of, tiny_geometries, tiny_states

from .builders import tri

STATES = (14464, 14464, 26128, 26128, 5284, 5284, 4549, 4549, 4549, 4549, 1420, 1420, 5584, 15964, 30160, 19648)
"""Exact number of states for each geometry, in order; of each pair the second differs in its anchors alone."""


def test_every_geometry_is_sound() -> None:
    geometries = list(tiny_geometries())
    assert [problems for problems in map(geometry_problems, geometries) if problems] == []
    assert Counter(len(geometry.members) for geometry in geometries) == {3: 12, 4: 4}
    assert sum(any(member.anchored for member in geometry.members) for geometry in geometries) == 6


def test_exact_counts_of_states() -> None:
    counts = [sum(1 for _ in tiny_states(geometry)) for geometry in tiny_geometries()]
    assert tuple(counts) == STATES
    assert sum(counts) == 184_144
    assert sum(counts) - sum(counts[1:12:2]) == 127_750 >= 100_000, "also without the anchored twins"


def test_states_are_distinct_and_well_formed() -> None:
    for geometry, count in zip(tiny_geometries(), STATES, strict=True):
        if count < 6000:
            states = list(tiny_states(geometry))
            assert len({(state.members, state.flights) for state in states}) == count
            assert not any(pages_in_range(state) or extents_ordered(state) for state in states)


def test_a_state_has_its_labels() -> None:
    state = state_of(tri(6), ("l....", ".pw..", "....l"))
    assert [set(now.live_pages) for now in state.members] == [{1}, {2}, {5}]
    assert state.members[1].pending == ((3, EVENT),)
    assert [flight.reads for flight in state.flights] == [(("SWA", 2),)]
    assert pinned_pages(state, 1, may_wait=False) == {2, 3}
    assert state_of(tri(6), (".....",) * 3).flights == ()
