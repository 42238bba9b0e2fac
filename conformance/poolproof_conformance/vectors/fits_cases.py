"""Cases of fits.json: chains of one to five members at the edge of what fits, from a seeded search and by hand."""

from collections.abc import Iterator, Sequence
from random import Random

from msgspec.structs import replace

from poolproof_conformance.vectors.answers import FitsAnswer, fits_answer
from poolproof_conformance.vectors.vector_format import FitsCase, FitsGroup, Need
from poolproof_spec.geometry import Geometry, Kind, Member, Role, derive, geometry_problems
from poolproof_spec.units import PageId

SEED = 20250101
ARENAS_A_LENGTH = 14
"""Arenas for each number of members."""
EDGES_AN_ARENA = 4
"""Needs in each, each with its exact fit and one page too many."""
PAGE_BYTES = (1, 2, 3, 4, 6)
SERVING_PAGE_BYTES = (16, 32, 48, 64, 96, 176)


def fits_groups() -> Iterator[FitsGroup]:
    """One group for each arena; the ids are given later."""
    rng = Random(SEED)
    for count in range(1, 6):
        for number in range(ARENAS_A_LENGTH):
            geometry = _arena(rng, count, SERVING_PAGE_BYTES if number % 2 else PAGE_BYTES)
            cases = tuple(_edges(rng, geometry))
            if cases:
                yield FitsGroup(geometry=geometry, tests=cases)


def _arena(rng: Random, count: int, sizes: Sequence[int]) -> Geometry:
    roles: list[Role] = ["full"] if count == 1 else ["state", *["swa"] * (count - 2), "full"]  # type: ignore[list-item]
    kinds: list[Kind] = ["up"] if count == 1 else ["up", *["float"] * (count - 2), "down"]  # type: ignore[list-item]
    if count == 2 and rng.random() < 0.5:
        roles[0] = "swa"
    names = "ABCDE"[:count]
    page_bytes = [rng.choice(sizes) for _ in names]
    anchored = [name for name in (names[0], names[-1]) if count > 1 and rng.random() < 0.4]
    total = max(page_bytes) * rng.randint(4, 9) + rng.randint(0, max(page_bytes) - 1)
    geometry = derive(total, list(zip(names, roles, page_bytes, kinds, strict=True)), anchored=anchored)
    return geometry if not geometry_problems(geometry) else _arena(rng, count, sizes)


def _edges(rng: Random, geometry: Geometry) -> Iterator[FitsCase]:
    """Needs at the edge: one member grows until it fits no more."""
    seen: set[tuple[Need, ...]] = set()
    for _ in range(EDGES_AN_ARENA):
        needs = _needs(rng, geometry)
        grown = rng.randrange(len(needs))
        most = _most_loose(geometry, needs, grown)
        if most is None:
            candidates = [needs]
        else:
            candidates = [_with_loose(needs, grown, most), _with_loose(needs, grown, most + 1)]
        for candidate in candidates:
            if candidate not in seen:
                seen.add(candidate)
                yield _case(geometry, candidate)


def _needs(rng: Random, geometry: Geometry) -> tuple[Need, ...]:
    """Pins that lie in chain order mostly, so that some of them fit; some members empty."""
    needs = []
    position = 0
    for member in geometry.members:
        pins: tuple[PageId, ...] = ()
        if rng.random() < 0.45:
            low = (
                max(member.first_page, -(-position // member.page_bytes)) if rng.random() < 0.85 else member.first_page
            )
            pages = range(low, min(member.page_count, low + rng.randint(1, 5)))
            pins = tuple(PageId(page) for page in pages if rng.random() < 0.6)
            position = max(position, (max(pins, default=-1) + 1) * member.page_bytes)
        needs.append(Need(pinned=pins, loose=rng.choice((0, 0, 1, 1, 2, 3))))
    return tuple(needs)


def _with_loose(needs: tuple[Need, ...], index: int, loose: int) -> tuple[Need, ...]:
    return tuple(replace(need, loose=loose) if i == index else need for i, need in enumerate(needs))


def _most_loose(geometry: Geometry, needs: tuple[Need, ...], index: int) -> int | None:
    """The most loose pages of that member that fit; None where none do."""
    most = None
    for loose in range(geometry.members[index].page_count + 1):
        if fits_answer(geometry, _with_loose(needs, index, loose)).result == "fits":
            most = loose
    return most


def _case(geometry: Geometry, needs: tuple[Need, ...]) -> FitsCase:
    answer = fits_answer(geometry, needs)
    told = ", ".join(
        f"{member.name} {len(need.pinned)} pinned + {need.loose} loose"
        for member, need in zip(geometry.members, needs, strict=True)
    )
    return FitsCase(
        tcId=0,
        comment=told,
        flags=tuple(dict.fromkeys(fits_flags(geometry, needs, answer))),
        needs=needs,
        result="fits" if answer.result == "fits" else "does_not_fit",
        windows=answer.windows,
        fails_at=answer.fails_at,
        needed_end=answer.needed_end,
    )


def fits_flags(geometry: Geometry, needs: tuple[Need, ...], answer: FitsAnswer) -> Iterator[str]:
    """What kind of case it is."""
    yield f"Chain{len(needs)}"
    changed = [(i, +1 if answer.result == "fits" else -1) for i in range(len(needs))]
    for index, by in changed:
        loose = needs[index].loose + by
        if loose >= 0 and fits_answer(geometry, _with_loose(needs, index, loose)).result != answer.result:
            yield "ExactFit" if by > 0 else "OnePageTooMany"
    for member, need in zip(geometry.members, needs, strict=True):
        if not need.pinned and not need.loose:
            yield "AnchoredEmpty" if member.anchored else "EmptyMember"
    free = replace(geometry, members=tuple(replace(member, anchored=False) for member in geometry.members))
    if fits_answer(free, needs).result != answer.result:
        yield "AnchorCosts"
    if answer.windows is None:
        failed = geometry.index_of(answer.fails_at or "")
        if needs[failed].pinned and (answer.needed_end or 0) <= geometry.members[failed].page_count:
            yield "PinBelowReach"
        return
    below = 0
    for member, need, window in zip(geometry.members, needs, answer.windows, strict=True):
        if window is not None:
            yield from _window_flags(member, need, window, below)
            below = window[1] * member.page_bytes


def _window_flags(member: Member, need: Need, window: tuple[int, int], below: int) -> Iterator[str]:
    start, end = window
    if below == 0 and start == member.first_page:
        yield "SinkBinds"
    if start > member.first_page and below % member.page_bytes:
        yield "GridLoss"
    if need.pinned and end > start + len(need.pinned) + need.loose:
        yield "PinStretches"
    if need.pinned and need.loose:
        if start < min(need.pinned) and end > max(need.pinned) + 1:
            yield "BothSides"
        if max(need.pinned) + 1 - min(need.pinned) > len(need.pinned):
            yield "HolesUsed"
