"""The whole state of the engine's pool as the specification tells it, read without changing anything.

Live pages come from the engine's virtual-to-physical tables, pending pages from its own pending lists, free pages and
ids from its free lists and frontiers, the tree from its tree core, payloads from its raw bytes: each from the place
where the engine itself would look, none from its counters. The ids are the engine's page-level virtual ids.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from poolproof_conformance.sglang.factory import Built
from poolproof_conformance.sglang.payload import Arena
from poolproof_conformance.sglang.running import Handle, InFlight, Request
from poolproof_conformance.sglang.tree import Node
from poolproof_spec.geometry import Geometry, Member
from poolproof_spec.state import Entry, Hold, MemberState, Payload, PoolState
from poolproof_spec.units import PageId, VirtualId


def observe(
    geometry: Geometry,
    built: Built,
    arena: Arena,
    nodes: list[Node],
    requests: Mapping[str, Request],
    handles: Mapping[str, Handle],
    flight: InFlight | None,
    gate_open: bool,
) -> PoolState:
    """The pool, its cache and what the caller keeps."""
    tables = [_bindings(member) for member in built.members]
    states = built.members[0] if built.states is not None else None
    return PoolState(
        geometry=geometry,
        members=tuple(
            MemberState(
                bindings=_pairs(*table), pending=_pending(made), gate_open=gate_open, free_pages=_free_pages(made)
            )
            for made, table in zip(built.members, tables, strict=True)
        ),
        entries=_entries(nodes),
        holds=tuple(requests[name].hold(name) for name in sorted(requests)),
        locks=tuple(handles[name].told(name) for name in sorted(handles)),
        flights=() if flight is None or flight.event.fired else (flight.told(_live(geometry, tables)),),
        free_token_ids=_ids(built.allocator.full_attn_allocator.free_virtual_ids),
        free_state_ids=() if states is None else _ids(states.free_virtual_ids),
        group_open=built.allocator.free_group is not None,
        queued=_queued(geometry, built),
        payloads=_payloads(geometry, arena, tables),
    )


def _bindings(made: Any) -> tuple[Any, Any]:
    """(ids, pages) of a member, by id: its table without id 0, the sink, and without the sentinel at the end."""
    table = made.virtual_to_physical.numpy()[1 : made.num_virtual_ids]
    ids = np.flatnonzero(table != -1)
    return ids + 1, table[ids]


def _pairs(ids: Any, pages: Any) -> tuple[tuple[VirtualId, PageId], ...]:
    return tuple(zip(ids.tolist(), pages.tolist(), strict=True))


def _ids(tensor: Any) -> tuple[VirtualId, ...]:
    return tuple(sorted(tensor.tolist()))


def _pending(made: Any) -> tuple[tuple[PageId, str], ...]:
    """Vacated pages whose event has not fired; the engine takes back those whose event has at its next flush."""
    waiting = ((event, pages) for event, (pages, _) in made._pending_reuse.items() if not event.fired)
    return tuple(sorted((page, event.name) for event, pages in waiting for page in pages))


def _free_pages(made: Any) -> tuple[PageId, ...]:
    """What the member counts as free: its holes, vacated pages that nobody reads now, and all beyond its frontier."""
    usable = range(made.min_page_index, made.num_pages)
    if made.grow_direction == "up":
        span = range(made.min_page_index, made.watermark_physical)
    elif made.grow_direction == "down":
        span = range(made.watermark_physical + 1, made.num_pages)
    else:
        span = range(made.low_wm_page, made.high_wm_page)
    outside = [*range(usable.start, min(span.start, usable.stop)), *range(max(span.stop, usable.start), usable.stop)]
    vacated = [page for event, (pages, _) in made._pending_reuse.items() if event.fired for page in pages]
    return tuple(sorted(outside + vacated + made._free_phys_pages.tolist()))


def _entries(nodes: list[Node]) -> tuple[Entry, ...]:
    ranks = {time: rank for rank, time in enumerate(sorted({node.last_use for node in nodes}), start=1)}
    return tuple(
        Entry(
            key=node.key,
            ids=node.ids,
            swa_ids=node.ids if node.has_swa else (),
            state_id=node.state_id,
            full_locks=node.full_locks,
            swa_locks=node.swa_locks,
            state_locks=node.state_locks,
            last_use=ranks[node.last_use],
        )
        for node in sorted(nodes, key=lambda node: node.key)
    )


def _live(geometry: Geometry, tables: list[tuple[Any, Any]]) -> set[tuple[str, VirtualId]]:
    return {
        (member.name, identifier)
        for member, (ids, _) in zip(geometry.members, tables, strict=True)
        for identifier in ids.tolist()
    }


def live_pages(geometry: Geometry, built: Built) -> set[tuple[str, VirtualId]]:
    """(member, id) of every live page."""
    return _live(geometry, [_bindings(member) for member in built.members])


def _queued(geometry: Geometry, built: Built) -> Hold:
    """Ids in the open group. Queued with both sides, their SWA pages go too, as far as they have any by then."""
    allocator, t = built.allocator, geometry.page_tokens
    both = _group(allocator.free_group, t) + _group(allocator.free_page_reps_group, t)
    full_only = _group(getattr(allocator, "full_page_reps_group", None), t)
    full_only += _group(getattr(allocator, "full_free_group", None), t)
    swa = getattr(allocator, "swa_attn_allocator", None)
    bound = set() if swa is None else {i for i in both if int(swa.virtual_to_physical[i]) > 0}
    return Hold(name="", ids=tuple(sorted(both + full_only)), swa_ids=tuple(sorted(bound)))


def _group(tensors: list[Any] | None, page_tokens: int) -> list[VirtualId]:
    return sorted({VirtualId(token // page_tokens) for tensor in tensors or () for token in tensor.tolist()})


def _payloads(geometry: Geometry, arena: Arena, tables: list[tuple[Any, Any]]) -> tuple[Payload, ...]:
    found = [
        (member.name, identifier, stamp)
        for member, (ids, pages) in zip(geometry.members, tables, strict=True)
        for identifier, stamp in zip(ids.tolist(), _stamps(arena, member, pages), strict=True)
    ]
    return tuple(sorted(found))


def _stamps(arena: Arena, member: Member, pages: Any) -> list[int]:
    return arena.stamps(member.page_bytes, member.page_count, pages) if len(pages) else []
