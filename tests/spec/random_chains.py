"""Random chains of any sizes with pinned and loose pages, small enough for the definition's brute force."""

from random import Random
from typing import NamedTuple

from poolproof_spec.geometry import Geometry, Kind, Member
from poolproof_spec.occupancy import Occupancy, occupancy_of
from poolproof_spec.units import ByteCount, PageCount, PageId


class Chain(NamedTuple):
    """A geometry and what each of its members must hold."""

    geometry: Geometry
    pinned: tuple[frozenset[PageId], ...]
    loose: tuple[int, ...]

    def needs(self) -> tuple[Occupancy, ...]:
        """As the sweep reads it."""
        return tuple(map(occupancy_of, self.geometry.members, self.pinned, self.loose))


def random_chain(rng: Random, *, arena: int = 9) -> Chain:
    """1 to 5 members with grids of their own: page sizes, sinks and ends need not fit each other."""
    count = rng.randint(1, 5)
    members = []
    for index in range(count):
        kind: Kind = "up" if index == 0 else "down" if index == count - 1 else "float"
        page_bytes = rng.randint(1, 3)
        page_count = rng.randint(1, arena // page_bytes)
        members.append(
            Member(
                name="ABCDE"[index],
                role="full",
                page_bytes=ByteCount(page_bytes),
                first_page=PageId(rng.randint(0, min(2, page_count - 1))),
                page_count=PageCount(page_count),
                kind=kind,
                anchored=rng.random() < 0.3,
            )
        )
    geometry = Geometry(total_bytes=ByteCount(arena), page_tokens=1, window_tokens=0, members=tuple(members))
    if not anchors_apart(geometry):
        return random_chain(rng, arena=arena)
    pinned = tuple(
        frozenset(PageId(page) for page in member.usable_pages if rng.random() < rng.choice((0, 0, 0.3)))
        for member in members
    )
    return Chain(geometry, pinned, tuple(rng.choice((0, 0, 1, 1, 2, 3)) for _ in members))


def anchors_apart(geometry: Geometry) -> bool:
    """Two anchors do not close the same bytes: so it is where the sinks are derived from one largest page."""
    low, high = geometry.members[0], geometry.members[-1]
    return not (low.anchored and high.anchored) or low.first_page * low.page_bytes <= high.page_count * high.page_bytes
