"""Taking eviction steps on the tree, and what they free."""

from typing import TYPE_CHECKING

import numpy as np

from poolproof_fast.nodes import Int32s, Int64s, run_indices
from poolproof_fast.victims import LEAF, STATE, TOMBSTONE, Victims

if TYPE_CHECKING:
    from poolproof_fast.tree import Tree

NO_IDS: Int32s = np.empty(0, dtype=np.int32)
FEW = 4
"""Up to so many steps are taken one by one."""


def take_steps(tree: "Tree", victims: Victims) -> list[int]:
    """Take legal steps, in policy order; the pages (FULL, SWA, state) that they free."""
    if len(victims) <= FEW:
        return _take_few(tree, victims)
    nodes, kind, node = tree.nodes, victims.kind, victims.node.astype(np.int32)
    leaves = node[kind == LEAF]
    if len(leaves):
        tree.remove_all(leaves)
    stripped = node[kind == TOMBSTONE]
    nodes.has_swa_view[stripped] = 0
    nodes.state_id_view[stripped] = 0
    nodes.state_id_view[node[kind == STATE]] = 0
    freed: list[int] = victims.table[2:5].sum(axis=1).tolist()
    return freed


def _take_few(tree: "Tree", victims: Victims) -> list[int]:
    freed, nodes = [0, 0, 0], tree.nodes
    for kind, node, full, swa, state, _ in victims.rows():
        if kind == LEAF:
            tree.remove(node)
        else:
            nodes.state_id[node] = 0
            if kind == TOMBSTONE:
                nodes.has_swa[node] = 0
        freed[0] += full
        freed[1] += swa
        freed[2] += state
    return freed


def freed_ids(tree: "Tree", victims: Victims) -> tuple[Int32s, Int32s, Int32s]:
    """(FULL ids, SWA ids, state ids) that the steps give up, in step order."""
    nodes, ids = tree.nodes, tree.pages.ids_view
    if len(victims) == 1:
        _, node, full, swa, state, _ = victims.rows()[0]
        start = nodes.start[node]
        run = ids[start : start + nodes.length[node]].copy()
        states = np.array([nodes.state_id[node]], dtype=np.int32) if state else NO_IDS
        return run if full else NO_IDS, run if swa else NO_IDS, states
    starts = nodes.start_view[victims.node]
    full_ids = _gathered(ids, starts, victims.full)
    same = victims.swa is victims.full or bool((victims.swa == victims.full).all())
    swa_ids = full_ids if same else _gathered(ids, starts, victims.swa)
    return full_ids, swa_ids, nodes.state_id_view[victims.node[victims.state != 0]]


def _gathered(ids: Int32s, starts: Int32s, lengths: Int64s) -> Int32s:
    """The ids of the runs, one after the other."""
    if (lengths == 1).all():
        return ids[starts]
    return ids[run_indices(starts, lengths)]


def freed_steps(victims: Victims) -> tuple[Int64s, Int64s, Int64s]:
    """For each of `freed_ids`, the index of the step that gives it up."""
    steps = np.arange(len(victims), dtype=np.int64)
    return np.repeat(steps, victims.full), np.repeat(steps, victims.swa), np.repeat(steps, victims.state)
