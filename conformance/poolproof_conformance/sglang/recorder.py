"""Which eviction steps the engine took, in order, and how often it walked and compacted: seen from its own calls.

The cache drives both tree cores by the same calls (`_evict_components` in unified_radix_cache.py of 0.5.23): it starts
a walk over one component, asks for the next node, and has a leaf evicted whole; an internal node loses its component in
the asking, and the tensors that then come back to be freed say which node it was. These calls are listened to on the
core's instance. A walk is counted for each component by itself, FULL, SWA, states: the phases of one eviction. A
compaction is one pass of a member's own mover that copied a page.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from poolproof_conformance.sglang.factory import Built
from poolproof_conformance.sglang.tree import Key, Node, Tree
from poolproof_spec.outcome import Step
from poolproof_spec.units import VirtualId

_PASSES = ("_flush", "_compact_pending", "make_room", "compact_holes")
"""A member's movers: lazy compaction, eager compaction, and the float's two."""
_COPIES = ("move_physical_pages", "move_kv_cache")
"""The pool's page copy, by its name in this release or the one before; the first that it has."""


class Recorder:
    """Steps, walks and compactions since the last `start`."""

    def __init__(self, built: Built, tree: Tree, names: Sequence[str]) -> None:
        self.steps: list[Step] = []
        self._walks: Counter[int] = Counter()
        self._passes = dict.fromkeys(names, 0)
        self._copies = 0
        self._depth = 0
        self._by_handle: dict[int, Key] = {}
        self._by_id: dict[VirtualId, Key] = {}
        self._by_state: dict[VirtualId, Key] = {}
        self._tree = tree
        self._listen_to_core(built.cache.tree_core)
        for name, member in zip(names, built.members, strict=True):
            self._listen_to_member(name, member)

    def start(self, nodes: Iterable[Node]) -> None:
        """Forget what was recorded; `nodes` are the tree as it is now."""
        self.steps = []
        self._walks.clear()
        self._passes = dict.fromkeys(self._passes, 0)
        known = list(nodes)
        self._by_handle = {node.handle: node.key for node in known}
        self._by_id = {identifier: node.key for node in known for identifier in node.ids}
        self._by_state = {node.state_id: node.key for node in known if node.state_id is not None}

    @property
    def walks(self) -> int:
        """Most walks over the same component."""
        return max(self._walks.values(), default=0)

    @property
    def compactions(self) -> tuple[tuple[str, int], ...]:
        """(member, passes that copied a page)."""
        return tuple(self._passes.items())

    def _listen_to_core(self, core: Any) -> None:
        start, following, leaf = core.evict_device_start, core.evict_device_next_node, core.evict_device_leaf

        def evict_device_start(component: int, *arguments: Any) -> Any:
            self._walks[int(component)] += 1
            return start(component, *arguments)

        def evict_device_next_node(*arguments: Any) -> Any:
            result = following(*arguments)
            if result.node_id is None and result.device_frees:
                self._record_internal(result.device_frees)
            return result

        def evict_device_leaf(handle: int, *arguments: Any) -> Any:
            self.steps.append(Step(kind="leaf", key=self._by_handle[handle]))
            return leaf(handle, *arguments)

        core.evict_device_start = evict_device_start
        core.evict_device_next_node = evict_device_next_node
        core.evict_device_leaf = evict_device_leaf

    def _record_internal(self, frees: dict[Any, list[Any]]) -> None:
        kinds = self._tree.kinds
        if frees.get(kinds.SWA):
            (value,) = frees[kinds.SWA]
            self.steps.append(Step(kind="tombstone", key=self._by_id[self._tree.pages(value)[0]]))
        else:
            (value,) = frees[kinds.MAMBA]
            self.steps.append(Step(kind="state", key=self._by_state[VirtualId(int(value[0]))]))

    def _listen_to_member(self, name: str, member: Any) -> None:
        pool = member._kvcache
        copy_name = next(copy for copy in _COPIES if hasattr(pool, copy))
        copy = getattr(pool, copy_name)

        def counted(*arguments: Any, **keywords: Any) -> Any:
            self._copies += 1
            return copy(*arguments, **keywords)

        setattr(pool, copy_name, counted)
        for mover in _PASSES:
            if hasattr(member, mover):
                setattr(member, mover, self._pass(name, getattr(member, mover)))

    def _pass(self, name: str, mover: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **keywords: Any) -> Any:
            before = self._copies
            self._depth += 1
            try:
                return mover(*arguments, **keywords)
            finally:
                self._depth -= 1
                if not self._depth and self._copies > before:
                    self._passes[name] += 1

        return run
