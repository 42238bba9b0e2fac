"""Page runs that come, go and are moved, against a plain dict."""

from array import array

import numpy as np

from poolproof_fast.nodes import ROOT, Nodes
from poolproof_fast.page_runs import PageRuns


def test_runs_keep_their_pages_while_others_come_and_go() -> None:
    random, nodes = np.random.default_rng(3), Nodes(capacity=4)
    pages = PageRuns(nodes, capacity=1)
    live: dict[int, tuple[list[int], list[int]]] = {}
    rewritten = 0
    for number in range(500):
        if live and random.random() < 0.48:
            slot = int(random.choice(list(live)))
            pages.garbage += len(live.pop(slot)[0])
            nodes.position[slot] = -1
            nodes.free(slot)
        size, used = int(random.integers(1, 5)), pages.used
        keys, ids = random.integers(2**62, size=size), random.integers(1, 99, size=size, dtype=np.int32)
        start = pages.append(array("q", keys.tolist()), ids)
        rewritten += pages.used < used + size
        slot = nodes.add(ROOT, start, size, size, 0)
        nodes.position[slot] = number
        live[slot] = keys.tolist(), ids.tolist()
        for slot, (keys_of, ids_of) in live.items():
            run = slice(nodes.start[slot], nodes.start[slot] + nodes.length[slot])
            assert pages.keys[run].tolist() == keys_of and pages.ids[run].tolist() == ids_of
        assert pages.used - pages.garbage == sum(len(ids) for _, ids in live.values())
    assert rewritten > 3


def test_shared_pages_end_where_run_and_key_part() -> None:
    random, nodes = np.random.default_rng(4), Nodes(capacity=2)
    pages = PageRuns(nodes, capacity=8)
    run = random.integers(2, size=40)
    slot = nodes.add(ROOT, pages.append(array("q", run.tolist()), run.astype(np.int32)), 40, 40, 0)
    for _ in range(200):
        key = [9, *run.tolist()[: random.integers(1, 41)], *random.integers(2, size=5).tolist()]
        plain = 0
        while plain < min(40, len(key) - 1) and key[1 + plain] == run[plain]:
            plain += 1
        assert pages.shared(slot, array("q", key), 1) == plain
