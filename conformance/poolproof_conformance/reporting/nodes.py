"""The prefix tree around one operation: each node with its pages, locks, recency, and what became of it."""

from collections.abc import Iterator, Mapping

import msgspec

from poolproof_conformance.reporting.owners import key_words
from poolproof_spec.state import Entry, PoolState
from poolproof_spec.steps import Key, age, tree_of
from poolproof_spec.transition import cached_pages

MOST_ROWS = 30
"""Nodes up to which all are shown; of more, those to which something happens and the oldest."""
OLDEST = 5
KEPT = ""
"""The fate of a node to which nothing happened."""


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One node, before and after an operation."""

    letter: str
    branch: str
    """Lines that show where it hangs: '└ '."""
    key: str
    """Page keys from the root."""
    full_pages: int
    swa_pages: int
    has_state: bool
    full_locks: int
    swa_locks: int
    state_locks: int
    recency: int
    """1 is the least recently used; 0 for a node that the operation made."""
    fate: str
    """What the target did with it: evicted, tombstoned, state given up, new, split off; empty where kept."""
    model_fate: str | None
    """What the model would have done with it; None where the model has no answer."""


def node_rows(
    before: PoolState, after: PoolState, modelled: PoolState | None, letters: Mapping[Key, str]
) -> tuple[NodeRow, ...]:
    """Every node of the states before and after, parents above their children."""
    old, new = tree_of(before), tree_of(after)
    both = {**new, **old}
    ranks = {entry.key: number for number, entry in enumerate(sorted(before.entries, key=age), 1)}
    rows = [
        _row(both[key], branch, ranks.get(key, 0), letters.get(key, "?"), before, after, modelled)
        for key, branch in _branches(both)
    ]
    return tuple(row for row in rows if len(rows) <= MOST_ROWS or row.fate or row.model_fate or row.recency <= OLDEST)


def _branches(tree: Mapping[Key, Entry]) -> Iterator[tuple[Key, str]]:
    """(key, lines before it), depth first. A node hangs below the longest key that it extends."""
    above = {key: max((k for k in tree if k != key and key[: len(k)] == k), key=len, default=()) for key in tree}

    def below(parent: Key, lines: str) -> Iterator[tuple[Key, str]]:
        children = sorted(key for key, up in above.items() if up == parent)
        for child in children:
            last = child == children[-1]
            yield child, lines + ("└ " if last else "├ ")
            yield from below(child, lines + ("  " if last else "│ "))

    for top in sorted(key for key, up in above.items() if not up):
        yield top, ""
        yield from below(top, "")


def _row(
    entry: Entry,
    branch: str,
    rank: int,
    letter: str,
    before: PoolState,
    after: PoolState,
    modelled: PoolState | None,
) -> NodeRow:
    return NodeRow(
        letter=letter,
        branch=branch,
        key=key_words(entry.key),
        full_pages=len(entry.ids),
        swa_pages=len(entry.swa_ids),
        has_state=entry.state_id is not None,
        full_locks=entry.full_locks,
        swa_locks=entry.swa_locks,
        state_locks=entry.state_locks,
        recency=rank,
        fate=_fate(entry.key, before, after),
        model_fate=None if modelled is None else _fate(entry.key, before, modelled),
    )


def _fate(key: Key, before: PoolState, after: PoolState) -> str:
    old, new = tree_of(before).get(key), tree_of(after).get(key)
    was, still = key in cached_pages(before), key in cached_pages(after)
    if old is None and new is None:
        return KEPT
    if old is None:
        return "split off" if was else "new"
    if new is None:
        return KEPT if still else "evicted"
    if old.swa_ids and not new.swa_ids:
        return "tombstoned"
    if not old.swa_ids and new.swa_ids:
        return "window restored"
    if old.state_id is not None and new.state_id is None:
        return "state given up"
    return KEPT
