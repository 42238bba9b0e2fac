"""[W1]-[W5] of a fast pool over its host arrays: milliseconds for hundreds of thousands of pages.

Written against what the invariants say (`poolproof_spec.invariants`), from the tables and nodes outwards; the
counters and shortcuts that the pool keeps for speed are compared with what the tables say.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from poolproof_fast.ids import CACHED, FREE, HELD, QUEUED, IdSpace
from poolproof_fast.pages import Ids, MemberPages, Pages
from poolproof_fast.pool import FastPool
from poolproof_fast.prefix_cache import Handle


class Owned(NamedTuple):
    """What callers hold, by their own books."""

    full: Ids
    swa: Ids
    states: Ids
    locks: Sequence[Handle] = ()


def check_pool(pool: FastPool, held: Owned) -> None:
    """AssertionError with what was found, where an invariant or a counter is wrong."""
    pending = pending_pages(pool)
    for member, waiting in zip(pool.store.members, pending, strict=True):
        _check_pages(member, waiting)
    _check_extents(pool, pending)
    _check_ids(pool.store.tokens)
    _check_ids(pool.store.states)
    _check_owners(pool, held)
    _check_cache(pool)
    _check_locks(pool, held.locks)


def pending_pages(pool: FastPool) -> list[Pages]:
    """For each member, its pending pages as often as events keep them."""
    found: list[list[Pages]] = [[] for _ in pool.store.members]
    for flight in pool.store.flights.unfired:
        for index, pages in flight.pending:
            found[index].append(pages)
    return [np.concatenate(parts) if parts else np.empty(0, np.int32) for parts in found]


def _check_pages(member: MemberPages, waiting: Pages) -> None:
    """[W1] and the pages of [W3]: live, pending and free pages partition the usable ones."""
    name = member.name
    ids = np.flatnonzero(member.page_of_np)
    live = member.page_of_np[ids]
    assert len(ids) == member.live, f"{name}: {len(ids)} ids are bound, {member.live} are counted"
    waits = np.bincount(waiting, minlength=member.page_count)
    taken = np.concatenate([live, np.flatnonzero(waits)])
    if len(taken):
        assert member.first_page <= taken.min() and taken.max() < member.page_count, f"{name}: [W1] page out of range"
    assert (member.id_at_np[live] == ids).all(), f"{name}: page_of and id_at disagree"
    assert np.count_nonzero(member.id_at_np) == len(ids), f"{name}: id_at names ids that are not bound"
    assert len(np.unique(taken)) == len(taken), f"{name}: [W3] a page is both live and pending"
    assert member.waits is None or (member.waits == waits).all(), f"{name}: events waited for are miscounted"
    state = np.zeros((2, member.page_count), dtype=np.uint8)
    state[0, member.first_page :] = 1
    state[0, taken] = 0
    state[1, live] = 1
    assert (member.vacant_np == state[0]).all(), f"{name}: [W3] vacant pages are not what the tables leave free"
    assert (member.bound_np == state[1]).all(), f"{name}: bound pages are not what the tables bind"
    assert member.taken == len(taken), f"{name}: {len(taken)} pages are taken, {member.taken} are counted"
    extent = (int(taken.min()), int(taken.max()) + 1) if len(taken) else (member.page_count, 0)
    assert (member.low, member.high) == extent, f"{name}: extent {extent}, noted {(member.low, member.high)}"


def _check_extents(pool: FastPool, pending: Sequence[Pages]) -> None:
    """[W2] Non-empty members lie in chain order and share no byte."""
    extents = []
    for member, waiting, of in zip(pool.store.members, pending, pool.geometry.members, strict=True):
        taken = np.concatenate([member.page_of_np[member.page_of_np > 0], waiting])
        if len(taken):
            extents.append((int(taken.min()) * of.page_bytes, (int(taken.max()) + 1) * of.page_bytes, of.name))
    for low, high in pairwise(extents):
        assert low[1] <= high[0], f"[W2] {low[2]} ends at byte {low[1]}, {high[2]} begins at byte {high[0]}"


def _check_ids(space: IdSpace) -> None:
    """The ids of [W3]: each once in the stack of free ids, or owned."""
    free = np.sort(space.free_ids())
    owned_by_nobody = np.flatnonzero(space.owner_np == FREE)
    expected = owned_by_nobody[len(space.owner_np) - space.size :]
    assert np.array_equal(free, expected), f"{space.name} ids: [W3] free ones and owned ones do not make the space"


def _check_owners(pool: FastPool, held: Owned) -> None:
    """[W4], [W5] Each live page has one owner: a cached node, a caller, or the open group."""
    store, cached = pool.store, pool.cache.all_ids()
    swa = next((member for member in store.members if member.role == "swa"), None)
    queued = [np.concatenate([part[i] for part in pool.queued] or [np.empty(0, np.int32)]) for i in (0, 1)]
    queued_swa = queued[0][swa.page_of_np[queued[0]] > 0] if swa else queued[0][:0]
    owners = ((cached[0], held.full, queued[0]), (cached[1], held.swa, queued_swa), (cached[2], held.states, queued[1]))
    for member, role in zip(store.members, store.role_of, strict=True):
        live, owned = np.flatnonzero(member.page_of_np), np.sort(np.concatenate(owners[role]))
        assert np.array_equal(live, owned), f"{member.name}: [W5] {len(live)} pages are live, {len(owned)} are owned"
    for space, role in ((store.tokens, 0), (store.states, 2)):
        for owner, ids in zip((CACHED, HELD, QUEUED), owners[role], strict=True):
            noted = np.flatnonzero(space.owner_np == owner)
            assert np.array_equal(noted, np.sort(ids)), f"{space.name} ids: owner {owner} is noted for others"
    if swa:
        full = next(member for member in store.members if member.role == "full")
        bare = (swa.page_of_np > 0) & (full.page_of_np == 0)
        assert not bare.any(), f"[W4] ids {np.flatnonzero(bare)[:5]} have an SWA page and no FULL page"


def _check_cache(pool: FastPool) -> None:
    """Totals and order of the cache are what its nodes say."""
    cache = pool.cache
    nodes, recency = cache.tree.nodes, cache.tree.recency
    slots = nodes.live_slots()
    length, has_swa = nodes.length_view[slots].astype(np.int64), nodes.has_swa_view[slots] != 0
    has_state = nodes.state_id_view[slots] != 0
    locked, swa_locked = nodes.full_locks_view[slots] > 0, nodes.swa_locks_view[slots] > 0
    state_locked = nodes.state_locks_view[slots] > 0
    strippable = has_swa & ~swa_locked & ~(has_state & state_locked)
    cached = [int(length.sum()), int(length[has_swa].sum()), int(has_state.sum())]
    evictable = [int(length[~locked].sum()), int(length[strippable].sum()), int((has_state & ~state_locked).sum())]
    assert cache.cached == cached, f"cached pages {cache.cached}, the nodes have {cached}"
    assert cache.evictable == evictable, f"evictable pages {cache.evictable}, the nodes have {evictable}"
    assert cache.entry_count == len(slots), f"{cache.entry_count} children, {len(slots)} nodes"
    parents = nodes.parent_view[slots]
    assert (nodes.depth_view[slots] == nodes.depth_view[parents] + length).all(), "depths do not add up"
    below = parents > 0
    assert (nodes.last_use_view[parents] >= nodes.last_use_view[slots])[below].all(), "a node is older than one below"
    assert (nodes.full_locks_view[parents] >= nodes.full_locks_view[slots])[below].all(), "locks do not reach the root"
    ticks = nodes.last_use_view[slots[np.argsort(nodes.position_view[slots], kind="stable")]]
    assert (np.diff(ticks) >= 0).all(), "the recency log is out of order"
    assert nodes.position_view[slots].max(initial=-1) < recency.used, "a node lies beyond the recency log"


def _check_locks(pool: FastPool, handles: Sequence[Handle]) -> None:
    """The counts on the nodes are those of the locks that callers hold."""
    nodes, locks = pool.cache.tree.nodes, pool.cache.locks
    assert locks.handles == set(handles), f"{len(locks.handles)} locks are noted, callers hold {len(handles)}"
    found = {name: np.zeros(nodes.slots_used, np.int32) for name in ("full_locks", "swa_locks", "state_locks")}
    for handle in handles:
        node, floor = handle.node, nodes.depth[handle.node] - pool.cache.window_pages
        found["state_locks"][node] += pool.cache.caches_states and not handle.window_released
        while node:
            found["full_locks"][node] += 1
            found["swa_locks"][node] += nodes.depth[node] > floor and not handle.window_released
            node = nodes.parent[node]
    slots = nodes.live_slots()
    for name, counts in found.items():
        assert (getattr(nodes, f"{name}_view")[slots] == counts[slots]).all(), f"{name} are not those of the locks held"
    full = set(np.flatnonzero(found["full_locks"]).tolist())
    assert set(locks.locked) == full, f"{len(locks.locked)} nodes are noted as locked, {len(full)} are"


def check_empty(pool: FastPool) -> None:
    """Everything was given back: no page, id, lock, flight or node is left."""
    none = np.empty(0, np.int32)
    check_pool(pool, Owned(none, none, none))
    store, cache = pool.store, pool.cache
    for member in store.members:
        assert member.taken == 0, f"{member.name}: {member.taken} pages leaked"
        assert member.vacant_np[member.first_page :].all(), f"{member.name}: not all pages are vacant"
    for space in (store.tokens, store.states):
        assert space.top == space.size, f"{space.name} ids: {space.size - space.top} leaked"
    assert cache.cached == [0, 0, 0] and cache.evictable == [0, 0, 0], "the cache's totals are not zero"
    assert not cache.locks.handles and not cache.locks.locked, "a lock is left"
    assert not store.flights.unfired, "a forward is left in flight"
    assert cache.tree.pages.garbage == cache.tree.pages.used, "stored pages are neither a node's nor garbage"
    slots, free = cache.tree.nodes.first_free, 0
    while slots:
        slots, free = cache.tree.nodes.parent[slots], free + 1
    assert free == cache.tree.nodes.slots_used - 1, "node slots leaked"
