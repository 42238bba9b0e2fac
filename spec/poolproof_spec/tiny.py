"""Every state of small arenas, for agreements that are checked by exhaustion (docs/spec.md#tiny)."""

from collections.abc import Iterator, Sequence
from itertools import product

from poolproof_spec.geometry import Geometry, Kind, Role, derive
from poolproof_spec.state import Flight, MemberState, PoolState
from poolproof_spec.units import PageId, VirtualId

EVENT = "e"
"""The one event of these states: what it holds is pinned for a caller that does not wait."""

Label = str
"""One page: "." free, "l" loose live, "p" live and read by a forward in flight, "w" pending."""


def tiny_geometries() -> Iterator[Geometry]:
    """Arenas of 5 to 12 bytes with three and four members, page sizes 1 to 3 bytes, anchored and not."""
    three: tuple[tuple[int, tuple[int, int, int]], ...] = (
        (6, (1, 1, 1)),
        (8, (2, 1, 1)),
        (7, (1, 2, 1)),
        (9, (3, 1, 2)),
        (9, (2, 3, 1)),
        (12, (2, 3, 2)),
    )
    for total_bytes, (low, middle, high) in three:
        for anchored in ((), ("A", "D")):
            chain: list[tuple[str, Role, int, Kind]] = [
                ("A", "state", low, "up"),
                ("B", "swa", middle, "float"),
                ("D", "full", high, "down"),
            ]
            yield derive(total_bytes, chain, anchored=anchored)
    four: tuple[tuple[int, tuple[int, int, int, int]], ...] = (
        (5, (1, 1, 1, 1)),
        (7, (2, 1, 1, 1)),
        (8, (1, 1, 2, 2)),
        (10, (2, 3, 2, 1)),
    )
    for total_bytes, sizes in four:
        kinds: tuple[Kind, ...] = ("up", "float", "float", "down")
        roles: tuple[Role, ...] = ("state", "swa", "swa", "full")
        yield derive(total_bytes, list(zip("ABCD", roles, sizes, kinds, strict=True)))


def tiny_states(geometry: Geometry) -> Iterator[PoolState]:
    """Every well-formed placement: each page of each member free, loose, read in flight, or pending (W1, W2 hold)."""
    for labels in _placements(geometry, 0, 0):
        yield state_of(geometry, labels)


def _placements(geometry: Geometry, index: int, from_byte: int) -> Iterator[tuple[str, ...]]:
    """Labels of the members from `index` on, none of their occupied pages below `from_byte`."""
    if index == len(geometry.members):
        yield ()
        return
    member = geometry.members[index]
    open_pages = [page for page in member.usable_pages if page * member.page_bytes >= from_byte]
    closed = "." * (len(member.usable_pages) - len(open_pages))
    for labels in product(".lpw", repeat=len(open_pages)):
        taken = [page for page, label in zip(open_pages, labels, strict=True) if label != "."]
        end = (taken[-1] + 1) * member.page_bytes if taken else from_byte
        for rest in _placements(geometry, index + 1, end):
            yield (closed + "".join(labels), *rest)


def state_of(geometry: Geometry, labels: Sequence[str]) -> PoolState:
    """The state in which each usable page of each member has the given label. An id is its page's number."""
    members, reads = [], []
    for member, of_member in zip(geometry.members, labels, strict=True):
        pages = [(PageId(page), label) for page, label in zip(member.usable_pages, of_member, strict=True)]
        bindings = tuple((VirtualId(page), page) for page, label in pages if label in "lp")
        pending = tuple((page, EVENT) for page, label in pages if label == "w")
        members.append(MemberState(bindings=bindings, pending=pending))
        reads += [(member.name, VirtualId(page)) for page, label in pages if label == "p"]
    flights = (Flight(event=EVENT, reads=tuple(reads)),) if reads else ()
    ids = geometry.id_range("full"), geometry.id_range("state")
    return PoolState(
        geometry=geometry,
        members=tuple(members),
        flights=flights,
        free_token_ids=tuple(VirtualId(i) for i in ids[0]),
        free_state_ids=tuple(VirtualId(i) for i in ids[1]),
    )
