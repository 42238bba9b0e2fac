"""Wrong prefix caches: splits that lose something, locks that hold too little, prefixes that are not there."""

from collections.abc import Iterator

from msgspec.structs import replace

from poolproof_reference.joint_pool import JointPool
from poolproof_reference.prefix_cache import PrefixCache
from poolproof_spec.outcome import Step
from poolproof_spec.state import Entry, Lock
from poolproof_spec.steps import Key


class SplitDropsStateCache(PrefixCache):
    """Splits pages only."""

    def split(self, key: Key, length: int) -> None:
        """Neither half gets the state."""
        super().split(key, length)
        self.nodes[key].state_id = None


class SplitLosesState(JointPool):
    """A split node's state belongs to nobody afterwards."""

    cache_class = SplitDropsStateCache


class SplitLiftsStateCache(PrefixCache):
    """Takes the state along with the upper half."""

    def split(self, key: Key, length: int) -> None:
        """The state is then said to belong to a shorter prefix than it does."""
        super().split(key, length)
        upper, lower = self.nodes[key[:length]], self.nodes[key]
        upper.state_id, lower.state_id = lower.state_id, None


class SplitLiftsState(JointPool):
    """A split hands the state of the longer prefix to the shorter one."""

    cache_class = SplitLiftsStateCache


class SplitTurnsIdsCache(PrefixCache):
    """Deals the ids of a node out from the wrong end."""

    def split(self, key: Key, length: int) -> None:
        """The upper half gets the last ids, the lower half the first."""
        self.nodes[key].ids.reverse()
        super().split(key, length)


class SplitTurnsIds(JointPool):
    """A split leaves prefixes with each other's pages."""

    cache_class = SplitTurnsIdsCache


class SharedWindowCache(PrefixCache):
    """Counts window locks by node, without whose they are."""

    def unlock(self, name: str, window_only: bool = False) -> None:
        """The early release of one is the release of all on that prefix."""
        locked = self.locks.get(name)
        super().unlock(name, window_only)
        for other in [lock for lock in self.locks.values() if window_only and locked and lock.key == locked.key]:
            self.locks[other.name] = Lock(name=other.name, key=other.key, window_released=True)


class UnlocksOthersWindow(JointPool):
    """Releasing one's own window early releases everybody's."""

    cache_class = SharedWindowCache


class ShortLocksCache(PrefixCache):
    """Locks the last node of a prefix, none of its ancestors."""

    def entries(self) -> Iterator[Entry]:
        """Counts of the handles that end at a node."""
        for entry in super().entries():
            at_end = [lock for lock in self.locks.values() if lock.key == entry.key]
            windows = sum(not lock.window_released for lock in at_end)
            yield replace(entry, full_locks=len(at_end), swa_locks=min(entry.swa_locks, windows))


class LocksOneNode(JointPool):
    """The ancestors of a locked prefix are unlocked, its window too."""

    cache_class = ShortLocksCache


class HollowMatchCache(PrefixCache):
    """Takes FULL pages for all that a prefix needs."""

    def match(self, key: Key) -> Key:
        """Also what has lost its window or its state."""
        path = self.path(key)
        self.touch(path)
        return path[-1] if path else ()


class MatchesTombstoned(JointPool):
    """A tombstoned prefix, or one without its state, is found as if it could be used."""

    cache_class = HollowMatchCache


class UntouchedMatchCache(PrefixCache):
    """Looks up and leaves no trace."""

    def match(self, key: Key) -> Key:
        """Recency stays."""
        ages = {node_key: node.last_use for node_key, node in self.nodes.items()}
        usable = super().match(key)
        for node_key, node in self.nodes.items():
            node.last_use = ages.get(node_key, node.last_use)
        return usable


class ForgetsUse(JointPool):
    """What is used stays as old as it was."""

    cache_class = UntouchedMatchCache


class ShufflingCache(PrefixCache):
    """Ages its oldest leaf anew with each eviction."""

    def evict(self, step: Step) -> None:
        """The walk puts back what it looked at as the newest."""
        super().evict(step)
        if self.nodes:
            self.touch([min(self.nodes, key=lambda key: (self.nodes[key].last_use, -len(key), key))])


class TouchesOnGrant(JointPool):
    """An eviction makes the oldest of what stays the newest."""

    cache_class = ShufflingCache
