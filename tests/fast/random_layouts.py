"""Random arenas whose members' pages lie in chain order, with pins, and a demand for more: for windows and moves."""

from random import Random
from typing import NamedTuple

import numpy as np

from poolproof_fast.scan import PageMap
from poolproof_fast.windows import Need
from poolproof_spec.geometry import Geometry, Kind, Member
from poolproof_spec.occupancy import Occupancy, occupancy_of
from poolproof_spec.units import ByteCount, PageCount, PageId


class Layout(NamedTuple):
    """What lies where, and how many new pages each member is asked for."""

    geometry: Geometry
    live: tuple[frozenset[PageId], ...]
    """Movable live pages."""
    pinned: tuple[frozenset[PageId], ...]
    """Live or pending pages that cannot move."""
    demanded: tuple[int, ...]

    @property
    def loose(self) -> tuple[int, ...]:
        return tuple(len(live) + more for live, more in zip(self.live, self.demanded, strict=True))

    def occupancies(self) -> tuple[Occupancy, ...]:
        return tuple(map(occupancy_of, self.geometry.members, self.pinned, self.loose))

    def needs(self) -> list[Need]:
        return [Need(o.pinned_count, o.pinned_start, o.pinned_end, o.loose_count) for o in self.occupancies()]

    def movable(self) -> list[PageMap]:
        return [page_map(member, live) for member, live in zip(self.geometry.members, self.live, strict=True)]

    def free(self) -> list[PageMap]:
        taken = (live | pinned for live, pinned in zip(self.live, self.pinned, strict=True))
        return [
            page_map(member, frozenset(member.usable_pages) - pages)
            for member, pages in zip(self.geometry.members, taken, strict=True)
        ]


def page_map(member: Member, pages: frozenset[int]) -> PageMap:
    found = np.zeros(member.page_count, dtype=np.uint8)
    found[sorted(pages)] = 1
    return found


def random_layout(rng: Random, arena: int, *, pins: float = 0.25) -> Layout:
    """1 to 5 members; each holds pages in a zone of its own, and the zones lie in chain order.

    In some a float between two others is asked for pages, so that it can be had by moving those below or those above.
    """
    squeezes = rng.random() < 0.5
    count = rng.randint(3, 4) if squeezes else rng.randint(1, 5)
    equal = rng.choice((0, 0, 1, 2))
    borders = sorted(rng.randint(0, arena) for _ in range(count - 1))
    if squeezes:
        borders = [arena * index // count + rng.randint(-1, 1) for index in range(1, count)]
    members, live, pinned = [], [], []
    for index, (low, high) in enumerate(zip((0, *borders), (*borders, arena), strict=True)):
        size = equal or rng.randint(1, 3)
        page_count = arena // size - (rng.random() < 0.1 and arena // size > 1)
        kind: Kind = "up" if index == 0 else "down" if index == count - 1 else "float"
        first_page = rng.randint(0, min(2, page_count - 1))
        members.append(
            Member(
                name="ABCDE"[index],
                role="full",
                page_bytes=ByteCount(size),
                first_page=PageId(first_page),
                page_count=PageCount(page_count),
                kind=kind,
                anchored=rng.random() < 0.2,
            )
        )
        density = rng.choice((0.4, 0.6) if squeezes else (0, 0.3, 0.5, 0.7, 1))
        if squeezes and kind == "float":
            density = 1
        zone = range(max(first_page, -(-low // size)), min(page_count, high // size))
        pages = frozenset(PageId(page) for page in zone if rng.random() < density)
        stuck = rng.choice((0, 0.1, 0.5)) if rng.random() < pins else 0
        pinned.append(frozenset(page for page in pages if rng.random() < stuck))
        live.append(pages - pinned[-1])
    geometry = Geometry(total_bytes=ByteCount(arena), page_tokens=1, window_tokens=0, members=tuple(members))
    return Layout(geometry, tuple(live), tuple(pinned), random_demand(rng, geometry, live, pinned, squeezes))


def random_demand(
    rng: Random,
    geometry: Geometry,
    live: list[frozenset[PageId]],
    pinned: list[frozenset[PageId]],
    floats_only: bool,
) -> tuple[int, ...]:
    """Pages worth some share of the free bytes, often nearly all, so that much must move or it does not fit."""
    held = sum(
        member.page_bytes * (len(one) + len(other))
        for member, one, other in zip(geometry.members, live, pinned, strict=True)
    )
    budget = (geometry.total_bytes - held) * rng.choice((0.3, 0.5, 0.7) if floats_only else (0.2, 0.6, 0.8, 0.9))
    demanded = [0] * len(geometry.members)
    able = range(1, len(demanded) - 1) if floats_only else range(len(demanded))
    asking = rng.sample(able, rng.randint(1, len(able)))
    while True:
        index = rng.choice(asking)
        budget -= geometry.members[index].page_bytes
        if budget < 0:
            return tuple(demanded)
        demanded[index] += 1
