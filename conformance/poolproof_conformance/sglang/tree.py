"""The engine's prefix tree as nodes in page keys, read without touching it.

PythonTree reads the nodes themselves: locks and access times are the engine's own. The Rust core shows neither, and
has no listing of its nodes; rust_tree.py says how its tree is read instead.
"""

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from poolproof_conformance.sglang.engine import Engine
from poolproof_conformance.sglang.factory import Built
from poolproof_spec.units import PageKey, VirtualId

Key = tuple[PageKey, ...]


class Node(NamedTuple):
    """One node of the prefix tree, in pages."""

    handle: int
    """The engine's own id of it."""
    key: Key
    """Page keys from the root to its end."""
    ids: tuple[VirtualId, ...]
    """Ids of its FULL pages, one for each page key of its own."""
    has_swa: bool
    state_id: VirtualId | None
    full_locks: int
    swa_locks: int
    state_locks: int
    last_use: float
    """The core's clock at the last use; only the order counts."""

    @property
    def start(self) -> int:
        """Pages above the node."""
        return len(self.key) - len(self.ids)


class Tree:
    """What both cores offer. The hooks tell a reader that keeps its own books what is about to happen, or happened."""

    def __init__(self, engine: Engine, built: Built, page_tokens: int, window_tokens: int) -> None:
        self.engine = engine
        self.core: Any = built.cache.tree_core
        self.page_tokens = page_tokens
        self.window_tokens = window_tokens
        self.kinds: Any = engine.components

    def nodes(self) -> list[Node]:
        """Every node, in no particular order."""
        raise NotImplementedError

    def radix_key(self, key: Sequence[PageKey]) -> Any:
        """The engine's key of page keys: page key k stands for the tokens k * t .. k * t + t - 1."""
        tokens = array("q", (page * self.page_tokens + i for page in key for i in range(self.page_tokens)))
        return self.engine.radix_key(tokens, None)

    def pages(self, tokens: Any) -> tuple[VirtualId, ...]:
        """Page ids of a tensor of whole pages' token ids."""
        return tuple(VirtualId(token // self.page_tokens) for token in tokens[:: self.page_tokens].tolist())

    def will_insert(self, key: Key) -> None:
        """A prefix is about to be inserted."""

    def inserted(self, key: Key) -> None:
        """It was."""

    def will_match(self, key: Key) -> None:
        """A prefix is about to be looked up."""

    def matched(self, key: Key, pages: int) -> None:
        """Its first `pages` pages were found."""

    def locked(self, name: str, key: Key) -> None:
        """The node that ends `key` was locked under a handle."""

    def window_released(self, name: str) -> None:
        """The window and state part of a lock was given back."""

    def unlocked(self, name: str) -> None:
        """A lock was given back."""


class PythonTree(Tree):
    """The Python core: its nodes are there to be read."""

    def nodes(self) -> list[Node]:
        """Every node, from the core's own table of nodes."""
        prefixes: dict[int, Key] = {self.core.root_node.id: ()}
        return [self._node(node, prefixes) for node in self._below(self.core.root_node)]

    def _below(self, root: Any) -> Iterator[Any]:
        stack = [root]
        while stack:
            children = list(stack.pop().children.values())
            yield from children
            stack.extend(children)

    def _node(self, node: Any, prefixes: dict[int, Key]) -> Node:
        tokens = node.key.raw_token_ids()[:: self.page_tokens]
        own = tuple(PageKey(token // self.page_tokens) for token in tokens)
        key = prefixes[node.id] = prefixes[node.parent.id] + own
        full, swa, state = (node.component_data[kind] for kind in (self.kinds.FULL, self.kinds.SWA, self.kinds.MAMBA))
        return Node(
            handle=node.id,
            key=key,
            ids=() if full.value is None else self.pages(full.value),
            has_swa=swa.value is not None,
            state_id=None if state.value is None else VirtualId(int(state.value[0])),
            full_locks=full.lock_ref,
            swa_locks=swa.lock_ref,
            state_locks=state.lock_ref,
            last_use=float(node.last_access_time),
        )
