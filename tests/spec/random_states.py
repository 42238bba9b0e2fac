"""Random chains, states and prefix trees. A function of a `Random`, so that Hypothesis can drive and shrink it too."""

from random import Random

from poolproof_spec.demand import Demand
from poolproof_spec.geometry import Geometry, Kind, Role, derive, geometry_problems
from poolproof_spec.occupancy import as_it_lies
from poolproof_spec.state import Entry, Flight, Hold, MemberState, PoolState
from poolproof_spec.steps import Key, Tree
from poolproof_spec.sweep import sweep
from poolproof_spec.units import PageId, PageKey, VirtualId

EVENT = "e"


def random_geometry(rng: Random, *, fewest: int = 1, most: int = 5, largest_page: int = 4, pages: int = 8) -> Geometry:
    """A sound chain: states below, floats between, FULL on top; `pages` bounds the arena in largest pages."""
    count = rng.randint(fewest, most)
    roles: list[Role] = ["state", *["swa"] * (count - 2), "full"] if count > 1 else ["full"]  # type: ignore[list-item]
    if count == 2 and rng.random() < 0.5:
        roles[0] = "swa"
    kinds: list[Kind] = ["up", *["float"] * (count - 2), "down"] if count > 1 else ["down"]  # type: ignore[list-item]
    sizes = [rng.randint(1, largest_page) for _ in roles]
    names = "ABCDEFGH"[:count]
    anchored = [name for name in (names[0], names[-1]) if rng.random() < 0.25]
    total_bytes = rng.randint(3 * max(sizes), max(3, pages) * max(sizes))
    geometry = derive(total_bytes, list(zip(names, roles, sizes, kinds, strict=True)), anchored=anchored)
    assert not geometry_problems(geometry)
    return geometry


def random_state(rng: Random, geometry: Geometry, *, pins: bool = True, fullness: float | None = None) -> PoolState:
    """A well-formed state (W1 to W4, anchors kept) with holes, pending pages, closed gates and flights."""
    while True:
        state = _placed(rng, geometry, pins, rng.choice((0.3, 0.7, 0.9, 1.0)) if fullness is None else fullness)
        if sweep(as_it_lies(state, Demand())).fits:
            return state


def _placed(rng: Random, geometry: Geometry, pins: bool, fullness: float) -> PoolState:
    cuts = sorted(rng.randint(0, geometry.total_bytes) for _ in geometry.members[1:])
    bounds = list(zip([0, *cuts], [*cuts, geometry.total_bytes], strict=True))
    full_ids: list[VirtualId] = []
    members: list[MemberState] = []
    for member, (start, end) in reversed(list(zip(geometry.members, bounds, strict=True))):
        room = [p for p in member.usable_pages if start <= p * member.page_bytes and (p + 1) * member.page_bytes <= end]
        taken = [page for page in room if rng.random() < fullness]
        waiting = [page for page in taken if pins and rng.random() < 0.15]
        live = [page for page in taken if page not in waiting]
        names = list(geometry.id_range(member.role)) if member.role != "swa" else [int(i) for i in full_ids]
        live = sorted(rng.sample(live, min(len(live), len(names))))
        chosen = [VirtualId(i) for i in rng.sample(names, len(live))]
        if member.role == "full":
            full_ids = chosen
        members.append(
            MemberState(
                bindings=tuple(sorted(zip(chosen, map(PageId, live), strict=True))),
                pending=tuple((PageId(page), EVENT) for page in waiting),
                gate_open=not pins or rng.random() < 0.8,
            )
        )
    members.reverse()
    return _with_ids_and_flights(rng, geometry, members, pins)


def _with_ids_and_flights(rng: Random, geometry: Geometry, members: list[MemberState], pins: bool) -> PoolState:
    bound: dict[Role, frozenset[VirtualId]] = {
        member.role: now.live_ids for member, now in zip(geometry.members, members, strict=True)
    }
    read = [
        (member.name, identifier)
        for member, now in zip(geometry.members, members, strict=True)
        for identifier, _ in now.bindings
        if pins and rng.random() < 0.15
    ]
    split = rng.randint(0, len(read))
    state_ids = set(geometry.id_range("state")) - bound.get("state", frozenset())
    return PoolState(
        geometry=geometry,
        members=tuple(members),
        flights=(Flight(event=EVENT, reads=tuple(read), writes=tuple(read[:split])),) if read else (),
        free_token_ids=tuple(VirtualId(i) for i in sorted(set(geometry.id_range("full")) - bound["full"])),
        free_state_ids=tuple(VirtualId(i) for i in sorted(state_ids)),
    )


def random_demand(rng: Random, state: PoolState, *, most: int = 4) -> Demand:
    """Pages for any role that the chain has; often none of some."""
    roles: tuple[Role, ...] = ("full", "swa", "state")
    counts = {role: rng.choice((0, rng.randint(0, most))) if state.geometry.has_role(role) else 0 for role in roles}
    return Demand(
        full_pages=counts["full"],
        swa_pages=counts["swa"],
        state_pages=counts["state"],
        may_wait=rng.random() < 0.5,
    )


def random_frees(rng: Random, state: PoolState, share: float) -> Hold:
    """Some of what is live, to be freed; an id that leaves FULL leaves SWA too (W4)."""
    geometry = state.geometry
    live: dict[Role, set[VirtualId]] = {"full": set(), "swa": set(), "state": set()}
    for member, now in zip(geometry.members, state.members, strict=True):
        live[member.role] |= now.live_ids
    full = {i for i in sorted(live["full"]) if rng.random() < share}
    swa = {i for i in sorted(live["swa"]) if i in full or rng.random() < share}
    states = {i for i in sorted(live["state"]) if rng.random() < share}
    return Hold(name="", ids=tuple(sorted(full)), swa_ids=tuple(sorted(swa)), state_ids=tuple(sorted(states)))


def random_tree(rng: Random, *, nodes: int = 7) -> Tree:
    """A prefix tree with tombstones, states, ties in recency, and locks on any component of any node."""
    tree: Tree = {}
    keys: list[Key] = [()]
    identifier = 0
    for _ in range(rng.randint(0, nodes)):
        parent = rng.choice(keys)
        below = (*parent, PageKey(len(keys)), *([PageKey(0)] * rng.randint(0, 1)))
        own = tuple(VirtualId(identifier + offset) for offset in range(len(below) - len(parent)))
        identifier += len(own)
        locked = [rng.choice((0, 0, 0, 1, 2)) for _ in range(3)]
        tree[below] = Entry(
            key=below,
            ids=own,
            swa_ids=own if rng.random() < 0.6 else (),
            state_id=VirtualId(identifier) if rng.random() < 0.5 else None,
            full_locks=locked[0],
            swa_locks=locked[1],
            state_locks=locked[2],
            last_use=rng.randint(0, 4),
        )
        keys.append(below)
    return tree
