import pytest
from msgspec.structs import replace

from poolproof_spec.geometry import LAYOUTS, Geometry, Member, derive, geometry_problems, layout, layout_name
from poolproof_spec.units import ByteCount, PageCount, PageId

Grid = tuple[int, int, int]
"""(page_bytes, first_page, page_count)"""

KNOWN_GRIDS: dict[str, tuple[str, int, int, dict[str, Grid]]] = {
    "V1": ("tri", 768, 1, {"FULL": (64, 1, 12), "SWA": (32, 2, 24), "STATE": (48, 2, 16)}),
    "V2": ("tri", 896, 1, {"FULL": (32, 6, 28), "SWA": (32, 6, 28), "STATE": (176, 1, 5)}),
    "V3": ("tri", 384, 1, {"FULL": (64, 1, 6), "SWA": (32, 2, 12), "STATE": (48, 2, 8)}),
    "V4": ("tri", 368, 1, {"FULL": (32, 2, 11), "SWA": (32, 2, 11), "STATE": (48, 1, 7)}),
    "V5": ("swa2", 256, 2, {"FULL": (64, 1, 4), "SWA": (64, 1, 4)}),
    "V6": ("swa2", 256, 1, {"FULL": (32, 1, 8), "SWA": (32, 1, 8)}),
    "V7": ("tri", 576, 1, {"FULL": (32, 2, 18), "SWA": (64, 1, 9), "STATE": (48, 2, 12)}),
    "V8": ("mamba2", 288, 2, {"FULL": (64, 1, 4), "STATE": (48, 2, 6)}),
    "V9": ("mamba2", 1152, 1, {"FULL": (96, 2, 12), "STATE": (176, 1, 6)}),
    "V10": ("mamba2", 208, 2, {"FULL": (64, 1, 3), "STATE": (48, 2, 4)}),
    "seed FULL/SWA": ("swa2", 6400, 1, {"FULL": (32, 1, 200), "SWA": (32, 1, 200)}),
    "seed FULL/SWA/state": ("tri", 6784, 1, {"FULL": (32, 2, 212), "SWA": (32, 2, 212), "STATE": (48, 1, 141)}),
}
"""As observed on the released engine: layout, arena bytes, page_tokens, and each member's grid."""


@pytest.mark.parametrize("case", KNOWN_GRIDS)
def test_page_counts_and_sink_are_derived_as_the_engine_has_them(case: str) -> None:
    name, total_bytes, page_tokens, grids = KNOWN_GRIDS[case]
    sizes = {member: page_bytes for member, (page_bytes, _, _) in grids.items()}
    geometry = layout(name, total_bytes, page_tokens=page_tokens, **sizes)
    assert {m.name: (m.page_bytes, m.first_page, m.page_count) for m in geometry.members} == grids
    assert geometry_problems(geometry) == []
    assert layout_name(geometry) == name
    assert [m.name for m in geometry.members] == [member for member, _, _ in LAYOUTS[name]]


def test_an_unknown_chain_is_custom() -> None:
    assert layout_name(derive(12, [("X", "full", 1, "down")])) == "custom"


def test_only_a_chain_with_swa_has_a_window() -> None:
    assert layout("swa2", 64, SWA=1, FULL=1, window_tokens=7).window_tokens == 7
    assert layout("mamba2", 64, STATE=1, FULL=1, window_tokens=7).window_tokens == 0


def test_roles_and_names_find_members() -> None:
    chain = layout("tri", 12, STATE=1, SWA=1, FULL=1)
    assert list(chain.with_role("swa")) == [1]
    assert chain.has_role("state")
    assert not layout("swa2", 12, SWA=1, FULL=1).has_role("state")
    assert chain.index_of("FULL") == 2
    with pytest.raises(KeyError, match=r"no member 'X'; the chain has \['STATE', 'SWA', 'FULL'\]"):
        chain.index_of("X")


def test_full_and_swa_share_the_ids_of_full() -> None:
    geometry = layout("tri", 24, STATE=4, SWA=1, FULL=2)
    assert geometry.id_range("full") == geometry.id_range("swa") == range(2, 12)
    assert geometry.id_range("state") == range(1, 6)
    assert layout("swa2", 24, SWA=1, FULL=1).id_range("state") == range(0)


SOUND = layout("tri", 48, STATE=4, SWA=1, FULL=2)


def with_member(index: int, **changes: object) -> Geometry:
    members = list(SOUND.members)
    members[index] = replace(members[index], **changes)
    return replace(SOUND, members=tuple(members))


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (replace(SOUND, total_bytes=ByteCount(0)), "arena of 0 bytes: must be positive"),
        (replace(SOUND, page_tokens=0), "page_tokens 0: must be at least 1"),
        (replace(SOUND, members=()), "no members"),
        (with_member(0, name="SWA"), "two members have the same name"),
        (with_member(1, page_bytes=0), "page_bytes must be at least 1"),
        (with_member(2, role="swa"), "exactly one member must have role full"),
        (with_member(1, role="full"), "exactly one member must have role full"),
        (with_member(1, page_count=49), "SWA: page_count 49, floor(total_bytes / page_bytes) is 48"),
        (with_member(2, first_page=1), "FULL: first_page 1, ceil(sink / page_bytes) is 2"),
        (layout("tri", 4, STATE=4, SWA=1, FULL=2), "STATE: no usable page in [1, 1)"),
        (with_member(0, kind="float"), "STATE: kind float, its place in the chain makes it up"),
        (with_member(1, kind="down"), "SWA: kind down, its place in the chain makes it float"),
        (with_member(2, kind="up"), "FULL: kind up, its place in the chain makes it down"),
    ],
)
def test_each_wrong_geometry_is_told(wrong: Geometry, problem: str) -> None:
    assert problem in geometry_problems(wrong)


def test_a_lone_member_may_grow_either_way() -> None:
    lone = Member(
        name="F", role="full", page_bytes=ByteCount(1), first_page=PageId(1), page_count=PageCount(4), kind="up"
    )
    assert geometry_problems(Geometry(total_bytes=ByteCount(4), page_tokens=1, window_tokens=0, members=(lone,))) == []
