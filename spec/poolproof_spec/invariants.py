"""[W1-W6]: what holds in every state, between any two operations (docs/spec.md#well-formedness).

Each function returns None where the rule holds, else one line that says what was found.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from poolproof_spec.geometry import Role
from poolproof_spec.state import PoolState
from poolproof_spec.transition import owners
from poolproof_spec.units import VirtualId


def pages_in_range(state: PoolState) -> str | None:
    """[W1] Every live or pending page p satisfies first_page <= p < page_count."""
    for member, now in zip(state.geometry.members, state.members, strict=True):
        strays = [page for page in now.live_pages | now.pending_pages if page not in member.usable_pages]
        if strays:
            return f"{member.name}: pages {sorted(strays)} outside [{member.first_page}, {member.page_count})"
    return None


def occupied_extents(state: PoolState) -> list[tuple[int, int, str]]:
    """(start byte, end byte, name) of each non-empty member: from its lowest to its highest live or pending page."""
    extents = []
    for member, now in zip(state.geometry.members, state.members, strict=True):
        pages = now.live_pages | now.pending_pages
        if pages:
            extents.append((min(pages) * member.page_bytes, (max(pages) + 1) * member.page_bytes, member.name))
    return extents


def extents_ordered(state: PoolState) -> str | None:
    """[W2] Non-empty members lie in chain order and share no byte."""
    for low, high in pairwise(occupied_extents(state)):
        if low[1] > high[0]:
            return f"{low[2]} ends at byte {low[1]}, {high[2]} begins at byte {high[0]}"
    return None


def pages_and_ids_partition(state: PoolState) -> str | None:
    """[W3] Live, pending and free pages partition the usable ones; free and bound ids partition the id space."""
    for member, now in zip(state.geometry.members, state.members, strict=True):
        live, pending = now.live_pages, now.pending_pages
        if len(live) < len(now.bindings):
            return f"{member.name}: one page is bound to two ids"
        if len(now.live_ids) < len(now.bindings):
            return f"{member.name}: one id is bound to two pages"
        if live & pending:
            return f"{member.name}: pages {sorted(live & pending)} are both live and pending"
        if now.free_pages is not None:
            odd = _difference(now.free_pages, set(member.usable_pages) - live - pending)
            if odd:
                return f"{member.name}: the list of free pages is wrong about {odd}"
    return _ids_partition(state, "full", state.free_token_ids) or _ids_partition(state, "state", state.free_state_ids)


def _ids_partition(state: PoolState, role: Role, free: tuple[VirtualId, ...]) -> str | None:
    for index in state.geometry.with_role(role):
        bound = state.members[index].live_ids
        odd = _difference(free, set(state.geometry.id_range(role)) - bound)
        if odd:
            return f"{state.geometry.members[index].name} ids: free and bound do not make the id space, see {odd}"
    return None


def _difference(listed: Iterable[int], expected: Iterable[int]) -> list[int]:
    """What is listed and not expected, twice, or the other way round."""
    listed, expected = sorted(listed), sorted(expected)
    if listed == expected:
        return []
    found, right = Counter(listed), Counter(expected)
    return sorted((found - right) | (right - found))


def swa_within_full(state: PoolState) -> str | None:
    """[W4] An id bound in SWA is bound in FULL too."""
    full = {identifier for i in state.geometry.with_role("full") for identifier in state.members[i].live_ids}
    for index in state.geometry.with_role("swa"):
        orphans = state.members[index].live_ids - full
        if orphans:
            return f"{state.geometry.members[index].name}: ids {sorted(orphans)} have no FULL page"
    return None


def owned_once(state: PoolState) -> str | None:
    """[W5] Each live page has exactly one owner: a cached node, a running request, or the open group."""
    everything = owners(state)
    owned: dict[Role, Counter[VirtualId]] = {
        "full": Counter(identifier for owner in everything for identifier in owner.ids),
        "swa": Counter(identifier for owner in everything for identifier in owner.swa_ids),
        "state": Counter(identifier for owner in everything for identifier in owner.state_ids),
    }
    for member, now in zip(state.geometry.members, state.members, strict=True):
        live = Counter(now.live_ids)
        if live - owned[member.role]:
            return f"{member.name}: ids {sorted(live - owned[member.role])} are live and nobody's (leak)"
        if owned[member.role] - live:
            return f"{member.name}: ids {sorted(owned[member.role] - live)} are owned twice, or owned and not live"
    return None


def payloads_kept(state: PoolState) -> str | None:
    """[W6] A live page holds what was last written to its id, whatever moved."""
    for found, expected in zip(state.payloads, state.written, strict=False):
        if found != expected:
            return f"{found[0]}: id {found[1]} reads {found[2]}, written was {expected[2]} to id {expected[1]}"
    if len(state.payloads) != len(state.written):
        return f"{len(state.payloads)} pages can be read, {len(state.written)} were written"
    return None
