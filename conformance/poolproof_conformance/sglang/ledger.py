"""What the Rust core does not show, kept in step with it: how recently each node was used, and which locks it carries.

Recency follows the engine's own rules (unified_tree_core.py of 0.5.23): an insert stamps each node that it visits, in
order from the root (1291); a split stamps both halves, the lower one later (1524); the node that an insert ends at is
stamped again where a state is attached (components/mamba.py 249); a match stamps the path to what it found, deepest
latest (1030). A FULL lock counts on the node and its ancestors; an SWA lock from the node upward until the window is
covered, tombstones included (components/swa.py 876); a state lock on that node alone. The tests hold this book against
the Python core, node by node, and against the order in which the Rust core itself would evict its leaves.
"""

from collections.abc import Iterable

import msgspec

from poolproof_spec.units import PageKey

Key = tuple[PageKey, ...]


class LockedPath(msgspec.Struct):
    """One lock handle."""

    key: Key
    """Path to the node that was locked."""
    window_start: int
    """Pages above the SWA lock's boundary node."""
    window_held: bool = True
    """Its SWA and state part was not given back yet."""


class Ledger:
    """Stamps by node key, and lock handles by name."""

    def __init__(self, window_pages: int, stamps_states: bool) -> None:
        self.window_pages = window_pages
        """Pages that cover the window; 0 without SWA."""
        self.stamps_states = stamps_states
        """An insert ends with a state attached to its node."""
        self.stamps: dict[Key, int] = {}
        self.locks: dict[str, LockedPath] = {}
        self._clock = 0

    def touch(self, key: Key) -> None:
        """Make the node the most recently used one."""
        self._clock += 1
        self.stamps[key] = self._clock

    def visit(self, path: Iterable[Key], matched: int, whole: bool) -> None:
        """A walk over the nodes of `path` that agreed with its key for `matched` pages, before the tree changed.

        An insert stamps every node (`whole`); a match only where it splits one.
        """
        for key in path:
            if len(key) > matched:
                self.touch(key[:matched])
                self.touch(key)
            elif whole:
                self.touch(key)

    def end_insert(self, path: Iterable[Key], key: Key, matched: int) -> None:
        """The insert of `key` is over; `path` is the tree's path to it now."""
        for node in path:
            if len(node) > matched:
                self.touch(node)
        if matched == len(key) and self.stamps_states:
            self.touch(key)

    def lock(self, name: str, key: Key, path: Iterable[Key]) -> None:
        """The node that ends `key` was locked; `path` is the tree's path to it, root first."""
        start, covered = len(key), 0
        for node, above in reversed([*_with_parents(path)]):
            if covered >= self.window_pages:
                break
            covered += len(node) - above
            start = above
        self.locks[name] = LockedPath(key=key, window_start=start)

    def counts(self, key: Key) -> tuple[int, int, int]:
        """(FULL, SWA, state) locks on the node that ends `key`."""
        over = [lock for lock in self.locks.values() if lock.key[: len(key)] == key]
        held = [lock for lock in over if lock.window_held]
        swa = sum(len(key) > lock.window_start for lock in held) if self.window_pages else 0
        return len(over), swa, sum(lock.key == key for lock in held) if self.stamps_states else 0

    def keep_only(self, keys: set[Key]) -> None:
        """Forget the stamps of nodes that are gone."""
        self.stamps = {key: stamp for key, stamp in self.stamps.items() if key in keys}


def _with_parents(path: Iterable[Key]) -> Iterable[tuple[Key, int]]:
    """Each node with the number of pages above it."""
    above = 0
    for node in path:
        yield node, above
        above = len(node)
