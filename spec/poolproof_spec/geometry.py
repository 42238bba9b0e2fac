"""One byte arena and the chain of members that share it (docs/spec.md#geometry)."""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from poolproof_spec.units import ByteCount, PageCount, PageId, ceil_div

Role = Literal["full", "swa", "state"]
Kind = Literal["up", "float", "down"]


class Member(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One member of the chain: its page grid, its usable pages and how it behaves towards its neighbours."""

    name: str
    """Unique in the geometry: FULL, SWA, STATE in the known layouts."""
    role: Role
    """What a page holds: full-attention KV, sliding-window KV, or one Mamba state."""
    page_bytes: ByteCount
    """Bytes of one page (e): page p begins at byte p * page_bytes."""
    first_page: PageId
    """Pages below it are the padding sink and are never handed out (f), in pages."""
    page_count: PageCount
    """Whole pages in the arena (N), in pages: usable pages are [first_page, page_count)."""
    kind: Kind
    """The way the member grows by preference: lowest `up`, highest `down`, `float` between."""
    anchored: bool = False
    """Bounds its neighbours at its base even when it is empty (released SGLang's ENDs do)."""

    @property
    def usable_pages(self) -> range:
        """Every page that may be handed out, low to high."""
        return range(self.first_page, self.page_count)


class Geometry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arena and its members, low bytes to high bytes. Never changes during a history."""

    total_bytes: ByteCount
    """Size of the arena (T), in bytes."""
    page_tokens: int
    """Tokens in one FULL or SWA page (t). A state page holds one state."""
    window_tokens: int
    """Sliding window of the SWA members, in tokens; 0 where the chain has none."""
    members: tuple[Member, ...]
    """The chain, from low bytes to high bytes."""

    def with_role(self, role: Role) -> Iterator[int]:
        """Indices of the members that hold `role`, low to high."""
        return (i for i, member in enumerate(self.members) if member.role == role)

    def has_role(self, role: Role) -> bool:
        """Whether some member holds `role`."""
        return any(member.role == role for member in self.members)

    def index_of(self, name: str) -> int:
        """Index of the member called `name`; KeyError names the known ones."""
        for index, member in enumerate(self.members):
            if member.name == name:
                return index
        raise KeyError(f"no member {name!r}; the chain has {[m.name for m in self.members]}")

    def id_range(self, role: Role) -> range:
        """The virtual ids that pages of `role` are named in.

        FULL and SWA share one id space, which FULL owns; states have their own. An id space has one id
        for each usable page of its owner.
        """
        owner: Role = "state" if role == "state" else "full"
        return max((self.members[i].usable_pages for i in self.with_role(owner)), key=len, default=range(0))


def sink_bytes(page_bytes: Sequence[int]) -> ByteCount:
    """Bytes that a dummy write to slot 0 may touch: the largest page of any member."""
    return ByteCount(max(page_bytes))


def derive(
    total_bytes: int,
    chain: Sequence[tuple[str, Role, int, Kind]],
    *,
    page_tokens: int = 1,
    window_tokens: int = 1,
    anchored: Sequence[str] = (),
) -> Geometry:
    """The geometry of a chain of (name, role, page_bytes, kind), with page counts and sink derived.

    page_count = floor(T / e) and first_page = ceil(sink / e), each on the member's own grid.
    """
    sink = sink_bytes([page_bytes for _, _, page_bytes, _ in chain])
    members = tuple(
        Member(
            name=name,
            role=role,
            page_bytes=ByteCount(page_bytes),
            first_page=PageId(ceil_div(sink, page_bytes)),
            page_count=PageCount(total_bytes // page_bytes),
            kind=kind,
            anchored=name in anchored,
        )
        for name, role, page_bytes, kind in chain
    )
    return Geometry(
        total_bytes=ByteCount(total_bytes),
        page_tokens=page_tokens,
        window_tokens=window_tokens if any(m.role == "swa" for m in members) else 0,
        members=members,
    )


LAYOUTS: dict[str, tuple[tuple[str, Role, Kind], ...]] = {
    "swa2": (("SWA", "swa", "up"), ("FULL", "full", "down")),
    "mamba2": (("STATE", "state", "up"), ("FULL", "full", "down")),
    "tri": (("STATE", "state", "up"), ("SWA", "swa", "float"), ("FULL", "full", "down")),
}
"""The three layouts that serving engines use, low bytes to high bytes."""


def layout(name: str, total_bytes: int, *, page_tokens: int = 1, window_tokens: int = 1, **page_bytes: int) -> Geometry:
    """One of LAYOUTS, e.g. `layout("swa2", 6400, FULL=32, SWA=32)`; page sizes in bytes a page."""
    chain = [(member, role, page_bytes[member], kind) for member, role, kind in LAYOUTS[name]]
    return derive(total_bytes, chain, page_tokens=page_tokens, window_tokens=window_tokens)


def layout_name(geometry: Geometry) -> str:
    """Which of LAYOUTS the chain is, or `custom`."""
    chain = tuple((m.name, m.role, m.kind) for m in geometry.members)
    return next((name for name, known in LAYOUTS.items() if known == chain), "custom")


def geometry_problems(geometry: Geometry) -> list[str]:
    """What is wrong with a geometry that somebody wrote by hand; empty when it is sound."""
    problems = [f"arena of {geometry.total_bytes} bytes: must be positive"] if geometry.total_bytes <= 0 else []
    if geometry.page_tokens < 1:
        problems.append(f"page_tokens {geometry.page_tokens}: must be at least 1")
    if not geometry.members:
        return [*problems, "no members"]
    if len({m.name for m in geometry.members}) < len(geometry.members):
        problems.append("two members have the same name")
    if any(m.page_bytes < 1 for m in geometry.members):
        return [*problems, "page_bytes must be at least 1"]
    if sum(m.role == "full" for m in geometry.members) != 1:
        problems.append("exactly one member must have role full")
    sink = sink_bytes([m.page_bytes for m in geometry.members])
    for position, member in enumerate(geometry.members):
        count, first = geometry.total_bytes // member.page_bytes, ceil_div(sink, member.page_bytes)
        if member.page_count != count:
            problems.append(
                f"{member.name}: page_count {member.page_count}, floor(total_bytes / page_bytes) is {count}"
            )
        if member.first_page != first:
            problems.append(f"{member.name}: first_page {member.first_page}, ceil(sink / page_bytes) is {first}")
        if member.first_page >= member.page_count:
            problems.append(f"{member.name}: no usable page in [{member.first_page}, {member.page_count})")
        expected = {0: "up", len(geometry.members) - 1: "down"}.get(position, "float")
        if len(geometry.members) > 1 and member.kind != expected:
            problems.append(f"{member.name}: kind {member.kind}, its place in the chain makes it {expected}")
    return problems
