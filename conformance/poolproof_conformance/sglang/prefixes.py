"""The cache side: insert, match and lock prefixes, through the engine's unified radix cache.

An insert does what a request of the engine does that ends: it takes the pages that the prefix lacks, hands all of them
to `insert` and leaves it to the engine to free those that turned out to be duplicates. What it lacks follows the
engine's rule for a usable prefix (components/swa.py 357): FULL throughout, and SWA without a gap for a window back or
to the root; pages after a gap are brought anew, and the engine gives their SWA pages to the tombstoned nodes.
"""

from typing import Any

from poolproof_conformance.sglang.demands import Demands
from poolproof_conformance.sglang.engine import Engine
from poolproof_conformance.sglang.factory import Built
from poolproof_conformance.sglang.running import Handle, Request, UnknownNameError, known
from poolproof_conformance.sglang.tree import Key, Node, Tree
from poolproof_spec.units import VirtualId


class UnsupportedPrefixError(Exception):
    """The engine's tree takes no such prefix in this layout; the message says why."""


class Prefixes:
    """The engine's prefix cache, and the lock handles on it."""

    def __init__(self, engine: Engine, built: Built, tree: Tree, demands: Demands) -> None:
        self.engine = engine
        self.built = built
        self.tree = tree
        self.demands = demands
        self.handles: dict[str, Handle] = {}

    def insert(self, nodes: list[Node], key: Key, with_state: bool) -> Request | None:
        """The new pages of the prefix, or None where they do not fit."""
        if with_state and not self.built.states_in_tree:
            raise UnsupportedPrefixError("insert with a state: this layout's tree holds no states")
        if self.built.states_in_tree and not with_state:
            raise UnsupportedPrefixError("insert without a state: a tree with states takes none such")
        ids, usable = self._present(nodes, key)
        brought = self.demands.alloc_without_evicting(len(key) - usable)
        if brought is None:
            return None
        state = self.built.states.alloc(1) if with_state else None
        if with_state and state is None:
            self.demands.give_back(brought)
            return None
        had = {i for node in nodes if node.has_swa for i in node.ids} - set(brought)
        self._hand_over(key, ids[:usable] + brought, usable, state)
        return self._kept(key, set(brought), had, state)

    def _present(self, nodes: list[Node], key: Key) -> tuple[list[VirtualId], int]:
        """(ids of the pages of `key` that are there, how many of them from the root are usable)."""
        ids: list[VirtualId] = []
        usable = 0
        covered = float("inf")
        by_start = {(node.start, node.key[: node.start + 1]): node for node in nodes}
        while len(ids) < len(key) and (node := by_start.get((len(ids), key[: len(ids) + 1]))) is not None:
            own = node.key[node.start :]
            same = _common(own, key[len(ids) :])
            ids += node.ids[:same]
            if self.tree.window_tokens:
                covered = covered + same * self.tree.page_tokens if node.has_swa else 0
            if covered >= self.tree.window_tokens:
                usable = len(ids)
            if same < len(own):
                break
        return ids, usable

    def _hand_over(self, key: Key, ids: list[VirtualId], usable: int, state: Any) -> None:
        self.tree.will_insert(key)
        parameters = self.engine.base.InsertParams(
            key=self.tree.radix_key(key),
            value=self.demands.tokens_of(ids),
            mamba_value=state,
            prev_prefix_len=usable * self.tree.page_tokens,
        )
        result = self.built.cache.insert(parameters)
        if state is not None and result.mamba_exist:
            self.built.states.free(state)
        self.tree.inserted(key)

    def _kept(self, key: Key, brought: set[VirtualId], had: set[VirtualId], state: Any) -> Request:
        """Those of the brought pages, and SWA pages and state, that the tree has now, or that wait in an open group."""
        path = [node for node in self.tree.nodes() if node.key == key[: len(node.key)]]
        new_state = None if state is None else VirtualId(int(state[0]))
        taken = [i for node in path for i in node.ids if i in brought]
        full = self.built.allocator.full_attn_allocator
        waiting = [i for i in sorted(brought.difference(taken)) if int(full.virtual_to_physical[i]) > 0]
        swa_ids = {i for node in path if node.has_swa for i in node.ids if i in brought or i not in had}
        return Request(
            ids=taken + waiting,
            swa_ids=swa_ids | {i for i in waiting if self.demands.swa_is_bound(i)},
            state_ids=[new_state for node in path if new_state is not None and node.state_id == new_state],
        )

    def match(self, key: Key) -> tuple[int, Any]:
        """(pages found, the engine's node for them)."""
        self.tree.will_match(key)
        result = self.built.cache.match_prefix(self.engine.base.MatchPrefixParams(key=self.tree.radix_key(key)))
        pages = int(result.device_prefix_len) // self.tree.page_tokens
        self.tree.matched(key, pages)
        return pages, result.last_device_node

    def lock(self, name: str, key: Key) -> int:
        """Match, then lock what was found; a lock that found nothing is none."""
        if name in self.handles:
            raise UnknownNameError(f"there is a lock {name!r} already")
        pages, node = self.match(key)
        if pages:
            self.handles[name] = Handle(key=key[:pages], lock=self.built.cache.lock(node))
            self.tree.locked(name, key[:pages])
        return pages

    def unlock(self, name: str) -> None:
        """Give a lock back."""
        self.built.cache.unlock(known(self.handles, "lock", name).lock)
        del self.handles[name]
        self.tree.unlocked(name)

    def unlock_window(self, name: str) -> None:
        """Give its window and state part back, once."""
        if not self.tree.window_tokens:
            raise UnsupportedPrefixError("unlock_window: without SWA pages the engine releases nothing early")
        handle = known(self.handles, "lock", name)
        if not handle.window_released:
            self.built.cache.release_swa(handle.lock)
            handle.window_released = True
            self.tree.window_released(name)


def _common(a: Key, b: Key) -> int:
    length = 0
    while length < min(len(a), len(b)) and a[length] == b[length]:
        length += 1
    return length
