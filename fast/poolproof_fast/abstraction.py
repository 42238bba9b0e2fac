"""From a fast pool to the model state that it stands for: what the contract is judged on, and debug mode checks.

    state = abstraction(pool)

Slow and plain: it reads every table and, where payloads are asked for, every live page.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from poolproof_fast.flights import Flight
from poolproof_fast.ids import HELD
from poolproof_fast.pages import Ids, MemberPages
from poolproof_fast.pool import FastPool
from poolproof_fast.prefix_cache import Handle
from poolproof_spec.payload import read_stamp
from poolproof_spec.state import Flight as SpecFlight
from poolproof_spec.state import Hold, Lock, MemberState, PoolState
from poolproof_spec.units import PageId, PageKey, VirtualId

Requests = Mapping[str, tuple[Iterable[int], Iterable[int]]]
"""Token ids and state ids that each running request holds, in the order in which it got them."""


def abstraction(
    pool: FastPool,
    requests: Requests | None = None,
    locks: Mapping[str, Handle] | None = None,
    flight_names: Mapping[int, str] | None = None,
    *,
    with_payloads: bool = False,
) -> PoolState:
    """The model state. The pool knows no names: without `requests` all that is held is one request, called `held`.

    `flight_names` are by the flight's number; without them it is the number.
    """
    store = pool.store
    if requests is None:
        requests = {"held": (store.tokens.ids_of(HELD).tolist(), store.states.ids_of(HELD).tolist())}
    queued = (
        [int(i) for token_ids, _ in pool.queued for i in token_ids],
        [int(i) for _, state_ids in pool.queued for i in state_ids],
    )
    names = flight_names or {}
    return PoolState(
        geometry=pool.geometry,
        members=tuple(_member_state(pool, member, names) for member in store.members),
        entries=tuple(pool.cache.entries()),
        holds=tuple(_hold(pool, name, *requests[name]) for name in sorted(requests)),
        locks=tuple(_lock(pool, name, locks[name]) for name in sorted(locks)) if locks else (),
        flights=tuple(_flight(pool, flight, names) for flight in store.flights.unfired),
        free_token_ids=_sorted(store.tokens.free_ids()),
        free_state_ids=_sorted(store.states.free_ids()),
        group_open=pool.group_open,
        queued=_hold(pool, "", *queued),
        payloads=tuple(sorted(_payloads(pool))) if with_payloads else (),
    )


def _member_state(pool: FastPool, member: MemberPages, names: Mapping[int, str]) -> MemberState:
    ids = _live_ids(member)
    pages = member.page_of_np[ids]
    pending = (
        (PageId(page), _name(flight, names))
        for flight in pool.store.flights.unfired
        for index, waiting in flight.pending
        if index == member.index
        for page in waiting.tolist()
    )
    return MemberState(
        bindings=tuple((VirtualId(i), PageId(page)) for i, page in zip(ids.tolist(), pages.tolist(), strict=True)),
        pending=tuple(sorted(pending)),
        gate_open=pool.store.gate_open,
        free_pages=tuple(PageId(page) for page in np.flatnonzero(member.vacant_np).tolist()),
    )


def _live_ids(member: MemberPages) -> Ids:
    return np.flatnonzero(member.page_of_np).astype(np.int32)


def _hold(pool: FastPool, name: str, token_ids: Iterable[int], state_ids: Iterable[int]) -> Hold:
    swa = next((member for member in pool.store.members if member.role == "swa"), None)
    ids = tuple(VirtualId(int(i)) for i in token_ids)
    return Hold(
        name=name,
        ids=ids,
        swa_ids=tuple(i for i in ids if swa is not None and swa.page_of[i]),
        state_ids=tuple(VirtualId(int(i)) for i in state_ids),
    )


def _lock(pool: FastPool, name: str, handle: Handle) -> Lock:
    key = tuple(PageKey(page_key) for page_key in pool.cache.key_of(handle.node))
    return Lock(name=name, key=key, window_released=handle.window_released)


def _flight(pool: FastPool, flight: Flight, names: Mapping[int, str]) -> SpecFlight:
    reads, writes = [], []
    for member in pool.store.members:
        ids = _live_ids(member)
        reads += [(member.name, VirtualId(i)) for i in ids[flight.reads(member, ids)].tolist()]
        writes += [(member.name, VirtualId(i)) for i in flight.written(member).tolist()]
    return SpecFlight(event=_name(flight, names), reads=tuple(sorted(reads)), writes=tuple(sorted(writes)))


def _name(flight: Flight, names: Mapping[int, str]) -> str:
    return names.get(flight.number, str(flight.number))


def _payloads(pool: FastPool) -> Iterable[tuple[str, VirtualId, int]]:
    for member in pool.store.members:
        for identifier in _live_ids(member).tolist():
            content = pool.store.arena.read_page(member.index, member.page_of[identifier])
            yield member.name, VirtualId(identifier), read_stamp(content)


def _sorted(ids: Ids) -> tuple[VirtualId, ...]:
    return tuple(VirtualId(i) for i in np.sort(ids).tolist())
