"""The Rust core's tree, which lists no nodes: read along the prefixes that were inserted.

Every node lies on the path of some inserted prefix, so the core's read-only lookups along those
(`match_full_device_prefix`, `collect_path_info`, `get_component_device_value`) show every node, with its pages and its
state. That none was missed is checked against the core's own totals (`total_size`), and the locks of the ledger against
its own sums of locked pages; a difference is an ObservationError, never a guess.
"""

from collections.abc import Iterable

from poolproof_conformance.sglang.engine import Engine
from poolproof_conformance.sglang.factory import Built
from poolproof_conformance.sglang.ledger import Ledger
from poolproof_conformance.sglang.tree import Key, Node, Tree
from poolproof_spec.units import VirtualId, ceil_div


class ObservationError(RuntimeError):
    """The engine's own sums contradict what was read of its tree."""


class RustTree(Tree):
    """The Rust core, read along known prefixes, with a ledger for what it does not show."""

    def __init__(self, engine: Engine, built: Built, page_tokens: int, window_tokens: int) -> None:
        super().__init__(engine, built, page_tokens, window_tokens)
        self.has_swa = window_tokens > 0
        self.has_states = built.states_in_tree
        self.ledger = Ledger(ceil_div(window_tokens, page_tokens), built.states_in_tree)
        self._frontier: set[Key] = set()
        """Keys that end at the leaves that were there when the tree was last read, and those inserted since."""
        self._before: tuple[list[Key], int] = ([], 0)

    def nodes(self) -> list[Node]:
        """Every node; forgets prefixes that are gone."""
        found: dict[int, Node] = {}
        for key in self._frontier:
            for handle, start, end in self._path_of(key)[0]:
                if handle not in found:
                    found[handle] = self._node(handle, key[:end], start)
        keys = {node.key for node in found.values()}
        parents = {node.key[: node.start] for node in found.values()}
        self._frontier = keys - parents
        self.ledger.keep_only(keys)
        self._check(found.values())
        return list(found.values())

    def _path_of(self, key: Key) -> tuple[list[tuple[int, int, int]], int]:
        """(handle, pages above, pages at the end) of each node on the path, and the pages of `key` that are there."""
        matched, handle, _ = self.core.match_full_device_prefix(self.radix_key(key))
        if not matched:
            return [], 0
        (infos,) = self.core.collect_path_info([handle])
        t = self.page_tokens
        return [(i.node_id, i.path_start // t, i.path_end // t) for i in infos], matched // t

    def _node(self, handle: int, key: Key, start: int) -> Node:
        full = self.core.get_component_device_value(handle, self.kinds.FULL)
        state = self.core.get_component_device_value(handle, self.kinds.MAMBA) if self.has_states else None
        has_swa = self.has_swa and self.core.get_component_device_value(handle, self.kinds.SWA) is not None
        ids = self.pages(full)
        if len(ids) != len(key) - start:
            raise ObservationError(f"node {key} has {len(ids)} FULL pages for {len(key) - start} page keys")
        full_locks, swa_locks, state_locks = self.ledger.counts(key)
        return Node(
            handle=handle,
            key=key,
            ids=ids,
            has_swa=has_swa,
            state_id=None if state is None else VirtualId(int(state[0])),
            full_locks=full_locks,
            swa_locks=swa_locks,
            state_locks=state_locks,
            last_use=self.ledger.stamps.get(key, 0),
        )

    def _check(self, nodes: Iterable[Node]) -> None:
        full = swa = state = total = 0
        for node in nodes:
            size = len(node.ids) * self.page_tokens
            total += size
            full += size * (node.full_locks > 0)
            swa += size * (node.swa_locks > 0 and node.has_swa)
            state += node.state_locks > 0 and node.state_id is not None
        told = self.core.total_size()[0]
        if told != total:
            raise ObservationError(f"the Rust core holds {told} tokens, {total} were found along the known prefixes")
        sums = [("full", full, self.core.full_protected_size())]
        sums += [("swa", swa, self.core.swa_protected_size())] * self.has_swa
        sums += [("state", state, self.core.mamba_protected_size())] * self.has_states
        for name, found, engine in sums:
            if found != engine:
                raise ObservationError(f"the Rust core counts {engine} locked {name} tokens, the lock handles {found}")

    def _keys_along(self, key: Key) -> tuple[list[Key], int]:
        """Keys of the nodes on the path of `key`, and how many of its pages are there.

        Each ends inside `key` but the last, which may go on past the match: the known prefixes tell how.
        """
        path, matched = self._path_of(key)
        keys = [key[:end] for _, _, end in path if end <= matched]
        if path and path[-1][2] > matched:
            end = path[-1][2]
            keys.append(next(k[:end] for k in self._frontier if len(k) >= end and k[:matched] == key[:matched]))
        return keys, matched

    def will_insert(self, key: Key) -> None:
        """Remember the path as it is."""
        self.nodes()
        self._before = self._keys_along(key)

    def inserted(self, key: Key) -> None:
        """Stamp what the insert visited, split and added."""
        path, matched = self._before
        self.ledger.visit(path, matched, whole=True)
        self._frontier.add(key)
        self.ledger.end_insert(self._keys_along(key)[0], key, matched)

    def will_match(self, key: Key) -> None:
        """Remember the path as it is."""
        self.nodes()
        self._before = self._keys_along(key)

    def matched(self, key: Key, pages: int) -> None:
        """Stamp what the match split, then the path to what it found."""
        path, matched = self._before
        self.ledger.visit(path, matched, whole=False)
        for node in self._keys_along(key[:pages])[0]:
            self.ledger.touch(node)

    def locked(self, name: str, key: Key) -> None:
        """Enter the lock."""
        self.ledger.lock(name, key, self._keys_along(key)[0])

    def window_released(self, name: str) -> None:
        """Its window and state part is off."""
        self.ledger.locks[name].window_held = False

    def unlocked(self, name: str) -> None:
        """The lock is off."""
        del self.ledger.locks[name]
