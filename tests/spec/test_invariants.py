"""Each of W1 to W6 on a state that keeps it and on states that break it."""

from collections.abc import Callable
from random import Random

import pytest
from msgspec.structs import replace

from poolproof_spec import invariants
from poolproof_spec.geometry import Geometry
from poolproof_spec.state import MemberState, PoolState
from poolproof_spec.units import PageId, VirtualId

from .builders import entry, four_members, hold, ids, key, pool, swa2, tri
from .random_states import random_geometry, random_state

SOUND = pool(
    tri(24),
    entry(key(1), [1, 2], state=1),
    entry(key(3), [3], swa=False),
    holds=[hold("r", [4], states=[2])],
    queued=hold("", [5]),
    pending={"SWA": {10: "e"}},
)
"""STATE pages 1, 2; SWA pages 3 to 6, 10 pending; FULL pages 19 to 23 for ids 1 to 5."""

CHECKS: dict[str, Callable[[PoolState], str | None]] = {
    "W1": invariants.pages_in_range,
    "W2": invariants.extents_ordered,
    "W3": invariants.pages_and_ids_partition,
    "W4": invariants.swa_within_full,
    "W5": invariants.owned_once,
    "W6": invariants.payloads_kept,
}


def bound(state: PoolState, member: str, **pages: int) -> PoolState:
    """The state with some ids (i3=7: id 3) of a member on other pages, or newly bound."""
    index = state.geometry.index_of(member)
    table = dict(state.members[index].bindings) | {VirtualId(int(i[1:])): PageId(page) for i, page in pages.items()}
    return with_member(state, member, bindings=tuple(sorted(table.items())))


def with_member(state: PoolState, member: str, **changes: object) -> PoolState:
    index = state.geometry.index_of(member)
    members = [*state.members]
    members[index] = replace(members[index], **changes)
    return replace(state, members=tuple(members))


def free_pages(state: PoolState, member: str) -> tuple[PageId, ...]:
    now, usable = state.member(member), state.geometry.members[state.geometry.index_of(member)].usable_pages
    return tuple(PageId(page) for page in usable if page not in now.live_pages | now.pending_pages)


@pytest.mark.parametrize("code", CHECKS)
def test_a_sound_state_keeps_it(code: str) -> None:
    assert CHECKS[code](SOUND) is None
    for geometry in (swa2(4), four_members()):
        assert CHECKS[code](pool(geometry)) is None
    listed = with_member(SOUND, "SWA", free_pages=free_pages(SOUND, "SWA"))
    assert CHECKS[code](listed) is None


SWA_FREE = free_pages(SOUND, "SWA")
BROKEN = [
    ("W1", bound(SOUND, "STATE", i1=0), "STATE: pages [0] outside [1, 24)"),
    ("W1", bound(SOUND, "FULL", i5=24), "FULL: pages [24] outside [1, 24)"),
    ("W1", with_member(SOUND, "SWA", pending=((PageId(0), "e"),)), "SWA: pages [0] outside [1, 24)"),
    ("W2", bound(SOUND, "STATE", i2=4), "STATE ends at byte 5, SWA begins at byte 3"),
    ("W2", bound(SOUND, "FULL", i1=10), "SWA ends at byte 11, FULL begins at byte 10"),
    ("W2", with_member(SOUND, "SWA", pending=((PageId(19), "e"),)), "SWA ends at byte 20, FULL begins at byte 19"),
    ("W3", bound(SOUND, "FULL", i5=19), "FULL: one page is bound to two ids"),
    (
        "W3",
        with_member(SOUND, "FULL", bindings=((ids(1)[0], 19), (ids(1)[0], 20))),
        "FULL: one id is bound to two pages",
    ),
    ("W3", bound(SOUND, "SWA", i4=10), "SWA: pages [10] are both live and pending"),
    (
        "W3",
        with_member(SOUND, "SWA", free_pages=SWA_FREE[1:]),
        f"SWA: the list of free pages is wrong about [{SWA_FREE[0]}]",
    ),
    ("W3", with_member(SOUND, "SWA", free_pages=(*SWA_FREE, SWA_FREE[-1])), "wrong about [23]"),
    ("W3", with_member(SOUND, "SWA", free_pages=(-1, *SWA_FREE)), "wrong about [-1]"),
    (
        "W3",
        replace(SOUND, free_token_ids=SOUND.free_token_ids[1:]),
        "FULL ids: free and bound do not make the id space, see [6]",
    ),
    (
        "W3",
        replace(SOUND, free_token_ids=(*ids(5), *SOUND.free_token_ids)),
        "FULL ids: free and bound do not make the id space, see [5]",
    ),
    (
        "W3",
        replace(SOUND, free_state_ids=(*SOUND.free_state_ids, *ids(3))),
        "STATE ids: free and bound do not make the id space, see [3]",
    ),
    ("W4", bound(SOUND, "SWA", i9=7), "SWA: ids [9] have no FULL page"),
    ("W5", replace(SOUND, holds=()), "STATE: ids [2] are live and nobody's (leak)"),
    ("W5", replace(SOUND, holds=(hold("r", [4], swa=False, states=[2]),)), "SWA: ids [4] are live and nobody's (leak)"),
    (
        "W5",
        replace(SOUND, holds=(*SOUND.holds, hold("s", [5], swa=False))),
        "FULL: ids [5] are owned twice, or owned and not live",
    ),
    ("W5", replace(SOUND, entries=(*SOUND.entries, entry(key(7), [3], swa=False))), "FULL: ids [3] are owned twice"),
    (
        "W5",
        replace(SOUND, entries=(entry(key(1), [1, 2], state=1), entry(key(3), [3]))),
        "SWA: ids [3] are owned twice, or owned and not live",
    ),
    ("W5", replace(SOUND, holds=(hold("r", [4, 4], states=[2]),)), "SWA: ids [4] are owned twice"),
    (
        "W6",
        replace(SOUND, payloads=(("FULL", ids(1)[0], 7), *SOUND.payloads[1:])),
        "FULL: id 1 reads 7, written was 101 to id 1",
    ),
    ("W6", replace(SOUND, payloads=SOUND.payloads[:-1]), "10 pages can be read, 11 were written"),
    ("W6", replace(SOUND, written=SOUND.written[:-1]), "11 pages can be read, 10 were written"),
]


@pytest.mark.parametrize(("code", "state", "message"), BROKEN)
def test_a_broken_state_is_caught(code: str, state: PoolState, message: str) -> None:
    found = CHECKS[code](state)
    assert found is not None
    assert message in found


def extents_ordered_naively(state: PoolState) -> bool:
    """Every byte of every live or pending page, in chain order: bytes never go down from member to member."""
    last = -1
    for member, now in zip(state.geometry.members, state.members, strict=True):
        taken = [
            byte
            for p in now.live_pages | now.pending_pages
            for byte in range(p * member.page_bytes, (p + 1) * member.page_bytes)
        ]
        if taken:
            if min(taken) <= last:
                return False
            last = max(taken)
    return True


def anywhere(rng: Random, geometry: Geometry) -> PoolState:
    """Pages anywhere, so that members may well overlap."""
    members = []
    for member in geometry.members:
        pages = rng.sample(member.usable_pages, rng.choice((0, 0, 1, min(2, len(member.usable_pages)))))
        members.append(MemberState(bindings=tuple((VirtualId(page), PageId(page)) for page in sorted(pages))))
    return PoolState(geometry=geometry, members=tuple(members))


def test_extents_against_a_walk_over_bytes() -> None:
    rng, seen = Random(12), set()
    for _ in range(1500):
        state = anywhere(rng, random_geometry(rng, fewest=2))
        ordered = invariants.extents_ordered(state) is None
        assert ordered == extents_ordered_naively(state)
        seen.add(ordered)
    assert seen == {True, False}


def test_random_states_are_well_formed() -> None:
    """The states that the theorems are tried on."""
    rng = Random(13)
    for _ in range(500):
        state = random_state(rng, random_geometry(rng))
        for code in ("W1", "W2", "W3", "W4"):
            assert CHECKS[code](state) is None
