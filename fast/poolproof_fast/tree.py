"""The prefix tree over arrays: finding the nodes that a key runs through, cutting a node in two, adding, removing."""

import numpy as np

from poolproof_fast.nodes import ROOT, SCALAR_BELOW, Column, Int32s, Nodes, run_indices
from poolproof_fast.page_runs import PageRuns
from poolproof_fast.recency import Recency


class Tree:
    """Nodes, their pages, their children and their recency; no rule of the cache is decided here.

    No Python object that the garbage collector tracks belongs to a single node: the children of all nodes are in one
    dict of plain ints.
    """

    def __init__(self, capacity: int) -> None:
        self.nodes = Nodes(capacity)
        self.pages = PageRuns(self.nodes, capacity)
        self.recency = Recency(self.nodes, capacity)
        self.children: dict[int, int] = {}
        """(first page key of the child << 32 | slot of its parent) to slot of the child."""

    def descend(self, key: Column) -> tuple[list[int], int]:
        """(nodes that `key` runs through, root side first; pages they share with it); the last perhaps not wholly."""
        children, length, pages = self.children, self.nodes.length, self.pages
        path: list[int] = []
        node, depth, end = ROOT, 0, len(key)
        while depth < end:
            child = children.get(key[depth] << 32 | node)
            if child is None:
                break
            path.append(child)
            node, own = child, length[child]
            shared = own if own == 1 else pages.shared(child, key, depth)
            depth += shared
            if shared < own:
                break
        return path, depth

    def cut(self, node: int, own: int) -> int:
        """Make the first `own` pages of a node (fewer than all) a node above it; the slot of that, without locks.

        The lower part keeps its slot, and with it children, state and locks.
        """
        nodes, keys, children = self.nodes, self.pages.keys, self.children
        parent, start, rest = nodes.parent[node], nodes.start[node], nodes.length[node] - own
        upper = nodes.add(parent, start, own, nodes.depth[node] - rest, nodes.has_swa[node])
        nodes.parent[node], nodes.start[node], nodes.length[node] = upper, start + own, rest
        children[keys[start] << 32 | parent] = upper
        children[keys[start + own] << 32 | upper] = node
        self.recency.hang(upper, node)
        return upper

    def add(self, parent: int, start: int, length: int, has_swa: bool) -> int:
        """A new node below `parent` for a stored run of pages; its slot. It is in no order yet: touch it."""
        node = self.nodes.add(parent, start, length, self.nodes.depth[parent] + length, has_swa)
        self.children[self.pages.keys[start] << 32 | parent] = node
        return node

    def remove(self, node: int) -> None:
        """Remove a node without children."""
        nodes, pages = self.nodes, self.pages
        del self.children[pages.keys[nodes.start[node]] << 32 | nodes.parent[node]]
        pages.garbage += nodes.length[node]
        self.recency.remove(node)
        nodes.free(node)

    def remove_all(self, removed: Int32s) -> None:
        """Remove many nodes in policy order; whoever has children comes after them."""
        nodes, pages, children = self.nodes, self.pages, self.children
        keys = pages.keys_view[nodes.start_view[removed]].tolist()
        for key, parent in zip(keys, nodes.parent_view[removed].tolist(), strict=True):
            del children[key << 32 | parent]
        pages.garbage += int(nodes.length_view[removed].sum())
        self.recency.remove_all(removed)
        nodes.free_all(removed)

    def path_to(self, node: int) -> list[int]:
        """The nodes from the root's child down to `node`."""
        path, parent = [], self.nodes.parent
        while node:
            path.append(node)
            node = parent[node]
        path.reverse()
        return path

    def page_indices(self, path: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Where in the page store the pages of these nodes are."""
        slots = np.fromiter(path, np.int32, len(path))
        return run_indices(self.nodes.start_view[slots], self.nodes.length_view[slots])

    def ids_along(self, path: list[int]) -> Int32s:
        """FULL ids of these nodes, one node after the other."""
        if len(path) >= SCALAR_BELOW:
            return self.pages.ids_view[self.page_indices(path)]
        ids, start, length = self.pages.ids_view, self.nodes.start, self.nodes.length
        runs = [ids[start[node] : start[node] + length[node]] for node in path]
        return np.concatenate(runs) if runs else np.empty(0, dtype=np.int32)

    def key_of(self, node: int) -> tuple[int, ...]:
        """Page keys from the root to the end of a node."""
        return tuple(self.pages.keys_view[self.page_indices(self.path_to(node))].tolist())
