"""A pool in one immutable value and back: what a reference pool's future depends on, in canonical form.

Recency is told by ranks, ties kept. Payloads are left out: before each operation every live page is written anew, so
that what a page reads afterwards depends on that operation alone.
"""

import marshal
from collections.abc import Callable
from typing import Any

from poolproof_reference.joint_pool import JointPool
from poolproof_reference.prefix_cache import Node
from poolproof_spec.geometry import Geometry
from poolproof_spec.state import Hold, Lock
from poolproof_spec.units import VirtualId

Frozen = tuple[Any, ...]
"""Nested tuples of ints, bools, strings and None, in a fixed order."""

JOINT = {"pool", "cache", "holds", "group_open", "queued"}
POOL = {"geometry", "arena", "page_of", "pending", "gate_open", "flights", "free_token_ids", "free_state_ids"}
CACHE = {"caches_swa", "caches_states", "window_pages", "nodes", "locks", "clock"}
"""What the reference itself keeps; a pool that is derived from it may keep more."""
PASSING = {"believes", "room"}
"""What derived pools note down in one call and read in the same call only."""


def freeze(pool: JointPool) -> Frozen:
    """The state of a pool; two pools with equal states behave alike for ever."""
    arena, cache = pool.pool, pool.cache
    rank = {use: number for number, use in enumerate(sorted({node.last_use for node in cache.nodes.values()}), 1)}
    return (
        tuple(tuple(sorted(table.items())) for table in arena.page_of),
        tuple(tuple((p, tuple(sorted(pages[p]))) for p in sorted(pages)) for pages in arena.pending),
        arena.gate_open,
        tuple((e, tuple(sorted(reads)), tuple(sorted(writes))) for e, (reads, writes) in arena.flights.items()),
        tuple(sorted(arena.free_token_ids)),
        tuple(sorted(arena.free_state_ids)),
        tuple((k, tuple(n.ids), n.has_swa, n.state_id, rank[n.last_use]) for k, n in sorted(cache.nodes.items())),
        tuple((name, lock.key, lock.window_released) for name, lock in sorted(cache.locks.items())),
        tuple(_hold(hold) for _, hold in sorted(pool.holds.items())),
        pool.group_open,
        _queued(pool),
        _extras(pool),
    )


def thaw(pool_class: type[JointPool], geometry: Geometry, frozen: Frozen) -> JointPool:
    """A pool in that state."""
    pages, pending, gate, flights, token_ids, state_ids, nodes, locks, holds, group, queued, extras = frozen
    pool = pool_class(geometry)
    arena, cache = pool.pool, pool.cache
    arena.page_of = [dict(table) for table in pages]
    arena.pending = [{page: set(events) for page, events in table} for table in pending]
    arena.gate_open = gate
    arena.flights = {event: (set(reads), set(writes)) for event, reads, writes in flights}
    arena.free_token_ids, arena.free_state_ids = set(token_ids), set(state_ids)
    cache.nodes = {k: Node(list(ids), has_swa, state, rank) for k, ids, has_swa, state, rank in nodes}
    cache.locks = {name: Lock(name=name, key=k, window_released=released) for name, k, released in locks}
    cache.clock = max((rank for *_, rank in nodes), default=0)
    pool.holds = {hold[0]: _thawed_hold(hold) for hold in holds}
    pool.group_open, pool.queued = group, _thawed_hold(queued)
    for owner, name, value in extras:
        setattr({"joint": pool, "pool": arena, "cache": cache}[owner], name, _thawed(value))
    return pool


def image(frozen: Frozen) -> bytes:
    """The state in bytes, equal for equal states: what is stored."""
    return marshal.dumps(frozen, 2)  # later formats note which objects are the same one


def frozen_of(stored: bytes) -> Frozen:
    """Back from bytes."""
    state: Frozen = marshal.loads(stored)
    return state


def _hold(hold: Hold) -> Frozen:
    """The order of token ids counts; SWA pages are told by them, in whatever order they came."""
    return hold.name, hold.ids, tuple(sorted(hold.swa_ids, key=_place(hold))), hold.state_ids


def _queued(pool: JointPool) -> Frozen:
    """What waits in the group in the order of its pages: it is freed all at once."""
    page_of: dict[str, dict[VirtualId, int]] = {"full": {}, "swa": {}, "state": {}}
    for member, table in zip(pool.pool.geometry.members, pool.pool.page_of, strict=True):
        page_of[member.role] |= table
    ids_of = {"full": pool.queued.ids, "swa": pool.queued.swa_ids, "state": pool.queued.state_ids}
    in_order = (tuple(sorted(ids, key=_by_page(page_of[role]))) for role, ids in ids_of.items())
    return "", *in_order


def _by_page(page_of: dict[VirtualId, int]) -> Callable[[VirtualId], tuple[int, int]]:
    return lambda identifier: (page_of.get(identifier, -1), identifier)


def _place(hold: Hold) -> Callable[[int], int]:
    place: dict[int, int] = {identifier: number for number, identifier in enumerate(hold.ids)}
    return lambda identifier: place.get(identifier, len(place) + identifier)


def _thawed_hold(frozen: Frozen) -> Hold:
    name, ids, swa_ids, state_ids = frozen
    return Hold(name=name, ids=ids, swa_ids=swa_ids, state_ids=state_ids)


def _extras(pool: JointPool) -> Frozen:
    """(whose, name, value) of each attribute that the reference does not have."""
    owners = (("joint", pool, JOINT), ("pool", pool.pool, POOL), ("cache", pool.cache, CACHE))
    return tuple(
        (owner, name, _frozen(value))
        for owner, thing, known in owners
        for name, value in sorted(vars(thing).items())
        if name not in known and name not in PASSING
    )


def _frozen(value: Any) -> Any:
    """A container with its kind in front, in a fixed order; anything else as it is."""
    match value:
        case dict():
            return "dict", tuple(sorted((_frozen(k), _frozen(v)) for k, v in value.items()))
        case set() | frozenset():
            return "set", tuple(sorted(_frozen(item) for item in value))
        case list():
            return "list", tuple(_frozen(item) for item in value)
        case tuple():
            return "tuple", tuple(_frozen(item) for item in value)
        case int() | str() | None:
            return value
    raise TypeError(f"a pool keeps a {type(value).__name__} that is no part of the model's state; freeze it here")


def _thawed(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    kind, items = value
    if kind == "dict":
        return {_thawed(k): _thawed(v) for k, v in items}
    made = [_thawed(item) for item in items]
    return {"set": set, "list": list, "tuple": tuple}[kind](made)
