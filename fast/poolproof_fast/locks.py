"""Locks on cached prefixes, counted on the nodes, and what they keep from being evicted."""

from poolproof_fast.errors import NotLockedError
from poolproof_fast.nodes import Nodes
from poolproof_fast.recency import Recency


class Handle:
    """One lock on a cached prefix. It stays on its node when the node is split, for the lower part keeps the slot."""

    __slots__ = ("node", "window_released")

    def __init__(self, node: int) -> None:
        self.node = node
        self.window_released = False
        """Its SWA and state part was given back early."""


class Locks:
    """The handles, and the nodes that they lock.

    A handle FULL-locks its node and all above it; it SWA-locks those of them that end within its last window, and
    locks the state at its end.
    """

    def __init__(
        self, nodes: Nodes, recency: Recency, evictable: list[int], window_pages: int, caches_states: bool
    ) -> None:
        self.nodes, self.recency, self.evictable = nodes, recency, evictable
        self.window_pages, self.caches_states = window_pages, caches_states
        self.handles: set[Handle] = set()
        self.locked: dict[int, None] = {}
        """Nodes with FULL locks."""

    def evictable_swa(self, node: int) -> int:
        """SWA pages of a node that a legal step of the policy frees: what is not FULL-locked has no locks at all."""
        nodes = self.nodes
        if not nodes.has_swa[node] or nodes.swa_locks[node] or (nodes.state_id[node] and nodes.state_locks[node]):
            return 0
        return nodes.length[node]

    def evictable_state(self, node: int) -> int:
        """1 if the node has a state that a legal step of the policy frees."""
        return int(self.nodes.state_id[node] != 0 and not self.nodes.state_locks[node])

    def lock(self, node: int) -> Handle:
        """Lock the prefix that ends at `node`."""
        handle = Handle(node)
        self.handles.add(handle)
        self._change_window_locks(node, 1)
        full_locks, parent, length = self.nodes.full_locks, self.nodes.parent, self.nodes.length
        while node:
            if not full_locks[node]:
                self.locked[node] = None
                self.evictable[0] -= length[node]
            full_locks[node] += 1
            node = parent[node]
        return handle

    def unlock(self, handle: Handle) -> None:
        """Give a lock back. Raises NotLockedError."""
        self._check(handle)
        self.handles.remove(handle)
        if not handle.window_released:
            self._change_window_locks(handle.node, -1)
        full_locks, parent, length = self.nodes.full_locks, self.nodes.parent, self.nodes.length
        node = handle.node
        while node:
            full_locks[node] -= 1
            if not full_locks[node]:
                del self.locked[node]
                self.evictable[0] += length[node]
                self.recency.lower(node)
            node = parent[node]

    def unlock_window(self, handle: Handle) -> None:
        """Give the SWA and state part of a lock back; no effect the second time. Raises NotLockedError."""
        self._check(handle)
        if not handle.window_released:
            handle.window_released = True
            self._change_window_locks(handle.node, -1)

    def _check(self, handle: Handle) -> None:
        if handle not in self.handles:
            raise NotLockedError("this lock was given back before; unlock once, and its window before that")

    def _change_window_locks(self, end: int, by: int) -> None:
        nodes, evictable = self.nodes, self.evictable
        if self.caches_states:
            swa, state = self.evictable_swa(end), self.evictable_state(end)
            nodes.state_locks[end] += by
            evictable[1] += self.evictable_swa(end) - swa
            evictable[2] += self.evictable_state(end) - state
        node, floor = end, nodes.depth[end] - self.window_pages
        while node and nodes.depth[node] > floor:
            swa = self.evictable_swa(node)
            nodes.swa_locks[node] += by
            evictable[1] += self.evictable_swa(node) - swa
            node = nodes.parent[node]

    def inherit(self, upper: int, lower: int) -> None:
        """`upper` was cut off a locked node: whoever locks the lower part locks it, the window only where it reaches.

        Handles are counted anew here and nowhere else: a locked node is seldom cut.
        """
        nodes = self.nodes
        nodes.full_locks[upper] = nodes.full_locks[lower]
        nodes.swa_locks[upper] = sum(self._reaches(handle, upper) for handle in self.handles)
        self.locked[upper] = None

    def _reaches(self, handle: Handle, node: int) -> bool:
        """Whether the window part of a handle locks a node."""
        depth, parent, reached = self.nodes.depth, self.nodes.parent, handle.node
        if handle.window_released or depth[reached] - self.window_pages >= depth[node]:
            return False
        while depth[reached] > depth[node]:
            reached = parent[reached]
        return reached == node
