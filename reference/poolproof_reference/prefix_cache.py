"""The prefix cache: a page-keyed tree, recency, tombstones, and locks derived from the handles that hold them."""

from collections.abc import Iterable, Iterator

from poolproof_reference.errors import NameInUseError, UnknownNameError
from poolproof_spec.geometry import Geometry
from poolproof_spec.outcome import Step
from poolproof_spec.state import Entry, Lock
from poolproof_spec.steps import Key
from poolproof_spec.units import VirtualId, pages_for_tokens


class Node:
    """One node: its own pages, and its state at the end."""

    def __init__(self, ids: list[VirtualId], has_swa: bool, state_id: VirtualId | None, last_use: int) -> None:
        self.ids, self.has_swa, self.state_id, self.last_use = ids, has_swa, state_id, last_use


class PrefixCache:
    """Keys are tuples of page keys. A node is found by the whole key from the root to its end."""

    def __init__(self, geometry: Geometry) -> None:
        self.caches_swa = geometry.has_role("swa")
        self.caches_states = geometry.has_role("state") and geometry.page_tokens == 1
        self.window_pages = pages_for_tokens(geometry.window_tokens, geometry.page_tokens)
        self.nodes: dict[Key, Node] = {}
        self.locks: dict[str, Lock] = {}
        self.clock = 0

    def entries(self) -> Iterator[Entry]:
        """The tree as seen from outside, sorted by key."""
        for key, node in sorted(self.nodes.items()):
            above = [lock for lock in self.locks.values() if lock.key[: len(key)] == key]
            window = [x for x in above if not x.window_released and len(key) > len(x.key) - self.window_pages]
            at_end = [x for x in above if not x.window_released and x.key == key]
            yield Entry(
                key=key,
                ids=tuple(node.ids),
                swa_ids=tuple(node.ids) if node.has_swa else (),
                state_id=node.state_id,
                full_locks=len(above),
                swa_locks=len(window) if self.caches_swa else 0,
                state_locks=len(at_end) if self.caches_states else 0,
                last_use=node.last_use,
            )

    def walk(self, key: Key) -> list[tuple[Key, int]]:
        """(node, pages of its own that `key` shares), root side first; of the last perhaps not all."""
        found: list[tuple[Key, int]] = []
        reached = 0
        for node_key in sorted((k for k in self.nodes if k[:1] == key[:1]), key=len):
            start = len(node_key) - len(self.nodes[node_key].ids)
            if start == reached and node_key[:start] == key[:start]:
                shared = sum(1 for _ in _while_equal(node_key[start:], key[start:]))
                if shared:
                    found.append((node_key, shared))
                    reached += shared
        return found

    def path(self, key: Key) -> list[Key]:
        """The nodes that `key` runs through, root side first; the last is split where the two part."""
        found = []
        for node_key, shared in self.walk(key):
            end = len(node_key) - len(self.nodes[node_key].ids) + shared
            if end < len(node_key):
                self.split(node_key, end)
            found.append(node_key[:end])
        return found

    def split(self, key: Key, length: int) -> None:
        """Cut a node in two, the upper one ending after `length` pages; the state stays at the lower one's end."""
        node, own = self.nodes[key], length - (len(key) - len(self.nodes[key].ids))
        self.nodes[key[:length]] = Node(node.ids[:own], node.has_swa, None, node.last_use)
        node.ids = node.ids[own:]

    def touch(self, path: Iterable[Key]) -> None:
        """Make the nodes the most recently used."""
        self.clock += 1
        for key in path:
            self.nodes[key].last_use = self.clock

    def match(self, key: Key) -> Key:
        """The longest usable prefix: FULL all the way, SWA over the last window, a state where states are cached."""
        usable: Key = ()
        covered = 0
        path = self.path(key)
        for node_key in path:
            node = self.nodes[node_key]
            covered = covered + len(node.ids) if node.has_swa else 0
            has_window = not self.caches_swa or covered >= min(self.window_pages, len(node_key))
            if has_window and (node.state_id is not None or not self.caches_states):
                usable = node_key
        self.touch(node_key for node_key in path if len(node_key) <= len(usable))
        return usable

    def missing(self, key: Key, with_state: bool) -> tuple[int, int, bool]:
        """(FULL pages, SWA pages, whether a state) that caching `key` needs: tombstones on its path are restored."""
        walked = self.walk(key)
        new_pages = len(key) - sum(shared for _, shared in walked)
        tombstoned = sum(shared for k, shared in walked if self.caches_swa and not self.nodes[k].has_swa)
        has_state = key in self.nodes and self.nodes[key].state_id is not None
        return new_pages, new_pages * self.caches_swa + tombstoned, with_state and not has_state

    def insert(self, key: Key, ids: list[VirtualId], state_id: VirtualId | None) -> None:
        """Add the missing pages (`ids`), the last window of them as a node of its own; restore what was tombstoned."""
        path = self.path(key)
        for node_key in path:
            self.nodes[node_key].has_swa = self.caches_swa
        new_pages = len(ids)
        cuts = [new_pages - self.window_pages] if self.caches_swa and new_pages > self.window_pages else []
        for start, end in zip([0, *cuts], [*cuts, new_pages], strict=True):
            if end > start:
                node_key = key[: len(key) - new_pages + end]
                self.nodes[node_key] = Node(ids[start:end], self.caches_swa, None, 0)
                path.append(node_key)
        if state_id is not None:
            self.nodes[key].state_id = state_id
        self.touch(path)

    def evict(self, step: Step) -> None:
        """Take a step; its legality was decided by the caller."""
        node = self.nodes[step.key]
        if step.kind == "leaf":
            del self.nodes[step.key]
        elif step.kind == "tombstone":
            node.has_swa, node.state_id = False, None
        else:
            node.state_id = None

    def lock(self, name: str, key: Key) -> Key:
        """Match and lock; a match of nothing locks nothing. Raises NameInUseError."""
        if name in self.locks:
            raise NameInUseError(f"a lock named {name!r} exists; unlock it, or use another name")
        usable = self.match(key)
        if usable:
            self.locks[name] = Lock(name=name, key=usable)
        return usable

    def unlock(self, name: str, window_only: bool = False) -> None:
        """Give a lock back, or its SWA and state part alone. Raises UnknownNameError."""
        if name not in self.locks:
            raise UnknownNameError(f"no lock named {name!r}; held are {sorted(self.locks)}")
        if window_only:
            self.locks[name] = Lock(name=name, key=self.locks[name].key, window_released=True)
        else:
            del self.locks[name]


def _while_equal(left: Key, right: Key) -> Iterator[int]:
    for one, other in zip(left, right, strict=False):
        if one != other:
            return
        yield one
