"""The recency log against a plain list that is kept in order by hand."""

import numpy as np
import pytest

from poolproof_fast.nodes import Nodes
from poolproof_fast.recency import Recency


class Forest:
    """Random touches, splits and evictions on a log, and on a list of the nodes, oldest first."""

    def __init__(self, seed: int, capacity: int) -> None:
        self.nodes = Nodes(capacity=256)
        self.recency = Recency(self.nodes, capacity)
        self.random = np.random.default_rng(seed)
        self.order: list[int] = []
        self.parent: dict[int, int] = {}

    def any_node(self) -> int:
        return int(self.random.choice(self.order))

    def path_to(self, node: int) -> list[int]:
        return [*self.path_to(self.parent[node]), node] if node else []

    def touch(self, path: list[int]) -> None:
        self.recency.touch(path)
        self.order = [node for node in self.order if node not in path] + path[::-1]

    def add(self) -> None:
        above = self.any_node() if self.order and self.random.random() < 0.8 else 0
        node = self.nodes.add(above, 0, 1, 1, 0)
        self.parent[node] = above
        self.touch(self.path_to(node))

    def split(self) -> None:
        lower = self.any_node()
        upper = self.nodes.add(self.parent[lower], 0, 1, 1, 0)
        self.parent[upper], self.parent[lower] = self.parent[lower], upper
        self.nodes.full_locks[upper] = self.nodes.full_locks[lower]
        self.recency.hang(upper, lower)
        self.order.insert(self.order.index(lower) + 1, upper)

    def evict(self, together: bool) -> None:
        gone = [node for node in self.order if not self.nodes.full_locks[node]][: self.random.integers(1, 6)]
        if together and gone:
            self.recency.remove_all(np.array(gone, dtype=np.int32))
            self.nodes.free_all(np.array(gone, dtype=np.int32))
        for node in gone:
            if not together:
                self.recency.remove(node)
                self.nodes.free(node)
            self.order.remove(node)
            del self.parent[node]

    def set_locks(self) -> None:
        """Lock one node or none, and with it what is above it; what is locked is touched."""
        locked = self.path_to(self.any_node()) if self.random.random() < 0.6 else []
        self.touch(locked)
        for node in self.order:
            was, self.nodes.full_locks[node] = self.nodes.full_locks[node], int(node in locked)
            if was and node not in locked:
                self.recency.lower(node)

    def check(self) -> None:
        unlocked = [node for node in self.order if not self.nodes.full_locks[node]]
        first = self.recency.advance()
        assert (first == self.recency.used) == (not unlocked)
        if unlocked:
            assert self.recency.log[first] == unlocked[0]
        heads = self.recency.log_view[: self.recency.used][self.recency.unlocked(0, self.recency.used)]
        assert self.recency.with_hanging(heads).tolist() == unlocked
        ticks = [self.nodes.last_use[node] for node in self.order]
        assert ticks == sorted(ticks)


@pytest.mark.parametrize("capacity", [1, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_the_order_is_that_of_a_plain_list(seed: int, capacity: int) -> None:
    forest = Forest(seed, capacity)
    for step in range(250):
        if not forest.order or forest.random.random() < 0.4:
            forest.add()
        elif len(forest.order) > 60:
            forest.evict(together=step % 2 == 0)
        elif (kind := forest.random.random()) < 0.3:
            forest.touch(forest.path_to(forest.any_node()))
        elif kind < 0.6:
            forest.split()
        elif kind < 0.8:
            forest.set_locks()
        else:
            forest.evict(together=step % 2 == 0)
        forest.check()


def test_a_long_path_is_touched_like_a_short_one() -> None:
    forest = Forest(0, capacity=4)
    for _ in range(100):
        node = forest.nodes.add(0, 0, 1, 1, 0)
        forest.parent[node] = forest.order[0] if forest.order else 0
        forest.touch(forest.path_to(node))
        if len(forest.order) % 7 == 0:
            forest.split()
        forest.check()


def test_many_locked_nodes_at_the_old_end_are_passed() -> None:
    nodes = Nodes(capacity=2000)
    recency = Recency(nodes, 2000)
    slots = [nodes.add(0, 0, 1, 1, 0) for _ in range(1000)]
    for slot in slots:
        recency.touch([slot])
    nodes.full_locks_view[slots[:900]] = 1
    assert recency.log[recency.advance()] == slots[900]
    nodes.full_locks_view[slots[450:]] = 1
    assert recency.advance() == recency.used
    nodes.full_locks[slots[20]] = 0
    recency.lower(slots[20])
    assert recency.log[recency.advance()] == slots[20]


def test_a_log_stays_as_large_as_its_nodes_need() -> None:
    nodes = Nodes(capacity=16)
    recency = Recency(nodes, 1)
    slots = [nodes.add(0, 0, 1, 1, 0) for _ in range(10)]
    for turn in range(5000):
        recency.touch([slots[turn % 10]])
    assert len(recency.log) <= 4 * 11
