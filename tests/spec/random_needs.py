"""Random chains of any size, in numbers: what the rules are asked on each carrier (brute force: random_chains)."""

from random import Random

from poolproof_spec.geometry import Geometry, derive
from poolproof_spec.occupancy import Occupancy

SIZES = (1, 2, 3, 16, 24, 32, 32, 48, 64, 64, 96)


def random_chain_geometry(rng: Random, *, fewest: int = 2, most: int = 5, pages: int = 120) -> Geometry:
    """A chain with sinks and ends as they are derived, some members anchored, often with equal page sizes."""
    count = rng.randint(fewest, most)
    sizes = [rng.choice(SIZES)] * count if rng.random() < 0.3 else [rng.choice(SIZES) for _ in range(count)]
    kinds = ["up", *["float"] * (count - 2), "down"] if count > 1 else ["down"]
    return derive(
        max(sizes) * rng.randint(3, pages) + rng.randint(0, 7),
        [("ABCDE"[i], "full", size, kind) for i, (size, kind) in enumerate(zip(sizes, kinds, strict=True))],  # type: ignore[misc]
        anchored=[name for name in "ABCDE"[:count] if rng.random() < 0.3],
    )


def random_needs(rng: Random, geometry: Geometry, *, pins: bool = True) -> list[Occupancy]:
    """Needs that fill about one arena in all; pins anywhere, so that many do not fit."""
    needs = []
    for member in geometry.members:
        room = member.page_count - member.first_page
        pinned_count = pinned_start = pinned_end = 0
        if pins and rng.random() < 0.4:
            pinned_start = rng.randrange(member.first_page, member.page_count)
            pinned_end = rng.randint(pinned_start + 1, min(member.page_count, pinned_start + 1 + room // 4))
            pinned_count = rng.randint(min(2, pinned_end - pinned_start), pinned_end - pinned_start)
        needs.append(
            Occupancy(
                page_bytes=member.page_bytes,
                first_page=member.first_page,
                page_count=member.page_count,
                anchored_up=member.anchored and member.kind == "up",
                anchored_down=member.anchored and member.kind == "down",
                pinned_count=pinned_count,
                pinned_start=pinned_start,
                pinned_end=pinned_end,
                loose_count=rng.choice(
                    (0, 1, *[rng.randint(0, 2 * room // len(geometry.members) + 1) for _ in "abcde"])
                ),
            )
        )
    return needs
