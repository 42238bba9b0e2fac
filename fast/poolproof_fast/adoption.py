"""Taking over the pages of a finished request: nothing is allocated, what is cached already is handed back."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from poolproof_fast.errors import RefusedError
from poolproof_fast.nodes import Column, Int32s

if TYPE_CHECKING:
    from poolproof_fast.prefix_cache import PrefixCache


class AdoptError(RefusedError):
    """The pages of a request do not join what is cached of its key; nothing was changed."""


class Adopted(NamedTuple):
    """What an adoption leaves for the caller to free."""

    duplicates_full: Int32s
    """Token ids whose FULL pages are not needed, by position in the key."""
    duplicates_swa: Int32s
    """Those of them that have an SWA page too."""
    duplicate_state: int
    """A state that is not needed; 0 for none."""


def adopt(cache: "PrefixCache", key: Column, ids: Int32s, swa_ids_from: int, state_id: int) -> Adopted:
    """Cache `key` with a request's own pages; what is not needed of them.

    `ids` are the ids of the last pages of the key; those at a position of at least `swa_ids_from`, counted from the
    start of the key, have SWA pages too. `state_id` is the state at the end of the key, 0 for none.

    Positions that are cached already are handed back, except where the cached page is tombstoned, not locked, and the
    request's own has an SWA page: there the two change places. (The ids of a locked node are in somebody's hands.)
    New positions become nodes: tombstoned below `swa_ids_from`, and the last window a node of its own. The whole path
    is touched, as by an insert.

    Raises AdoptError unless all pages above the request's own are cached.
    """
    own_from = len(key) - len(ids)
    _, matched = cache.tree.descend(key)
    if own_from < 0 or not key or matched < own_from:
        raise AdoptError(
            f"{len(ids)} pages for the end of a key of {len(key)}: the {own_from} before them must be cached, "
            f"{matched} are"
        )
    swa_from = max(swa_ids_from, own_from) if cache.caches_swa else len(key)
    path = cache.path(key)
    full, swa = _exchange(cache, path, ids, own_from, swa_from)
    if matched < len(key):
        cache.append(path, key, ids[matched - own_from :], _parts(cache, len(key), matched, swa_from))
    duplicate_state = 0
    if state_id and cache.caches_states and not cache.state_of(path[-1]):
        cache.set_state(path[-1], state_id)
    else:
        duplicate_state = state_id
    cache.tree.recency.touch(path)
    return Adopted(_joined(full), _joined(swa), duplicate_state)


def _exchange(
    cache: "PrefixCache", path: list[int], ids: Int32s, own_from: int, swa_from: int
) -> tuple[list[Int32s], list[Int32s]]:
    """Restore tombstones of the path with the request's pages; (FULL ids, SWA ids) that are not needed."""
    nodes, full, swa = cache.tree.nodes, [], []
    for index, node in reversed(list(enumerate(path))):
        end = nodes.depth[node]
        if end <= own_from:
            break
        begin = end - nodes.length[node]
        request_from = max(begin, own_from)
        if end > swa_from and not nodes.has_swa[node] and not nodes.full_locks[node]:
            if begin < swa_from:
                path.insert(index, cache.split(node, swa_from - begin))
            full.append(_change_places(cache, node, ids[max(begin, swa_from) - own_from : end - own_from]))
            full.append(ids[request_from - own_from : max(request_from, swa_from) - own_from])
        else:
            full.append(ids[request_from - own_from : end - own_from])
            swa.append(ids[max(begin, swa_from) - own_from : max(end, swa_from) - own_from])
    return full, swa


def _change_places(cache: "PrefixCache", node: int, ids: Int32s) -> Int32s:
    """Give a tombstoned node other ids, which have SWA pages; the ids that it had."""
    nodes = cache.tree.nodes
    stored = cache.tree.pages.ids_view[nodes.start[node] : nodes.start[node] + nodes.length[node]]
    given_up = stored.copy()
    stored[:] = ids
    cache.restore(node)
    return given_up


def _parts(cache: "PrefixCache", end: int, begin: int, swa_from: int) -> list[tuple[int, bool]]:
    """The nodes that new positions [begin, end) become: (where each ends, whether it has SWA pages)."""
    if not cache.caches_swa:
        return [(end, False)]
    swa_from = min(max(swa_from, begin), end)
    window_from = max(end - cache.window_pages, begin)
    return [(cut, cut > swa_from) for cut in sorted({swa_from, window_from, end})]


def _joined(runs: list[Int32s]) -> Int32s:
    """Runs that were found from the end of the key, in the order of the key."""
    return np.concatenate(runs[::-1]) if runs else np.empty(0, dtype=np.int32)
