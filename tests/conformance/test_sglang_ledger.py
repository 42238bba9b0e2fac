"""The book that is kept for the Rust core, by itself; test_sglang_release.py holds it against the Python core."""

from poolproof_conformance.sglang.ledger import Ledger


def ordered(ledger: Ledger) -> list[tuple[int, ...]]:
    return sorted(ledger.stamps, key=lambda key: ledger.stamps[key])


def inserted(ledger: Ledger, before: list[tuple[int, ...]], matched: int, after: list[tuple[int, ...]]) -> None:
    ledger.visit(before, matched, whole=True)
    ledger.end_insert(after, after[-1], matched)


def test_an_insert_touches_what_it_visits_and_adds_its_leaf_last() -> None:
    ledger = Ledger(window_pages=0, stamps_states=False)
    inserted(ledger, [], 0, [(1, 2)])
    inserted(ledger, [], 0, [(3,)])
    inserted(ledger, [(1, 2)], 2, [(1, 2), (1, 2, 4)])
    assert ordered(ledger) == [(3,), (1, 2), (1, 2, 4)]


def test_a_split_stamps_the_lower_half_later() -> None:
    ledger = Ledger(window_pages=0, stamps_states=False)
    inserted(ledger, [], 0, [(1, 2)])
    inserted(ledger, [(1, 2)], 1, [(1,), (1, 3)])
    assert ordered(ledger) == [(1,), (1, 2), (1, 3)]


def test_a_match_touches_only_the_path_to_what_it_found() -> None:
    ledger = Ledger(window_pages=0, stamps_states=False)
    for key in ((1,), (2,)):
        inserted(ledger, [], 0, [key])
    ledger.visit([(1,)], 1, whole=False)
    assert ordered(ledger) == [(1,), (2,)]
    ledger.touch((1,))
    assert ordered(ledger) == [(2,), (1,)]


def test_a_lock_counts_on_the_path_the_window_and_the_end() -> None:
    ledger = Ledger(window_pages=2, stamps_states=True)
    ledger.lock("x", (1, 2, 3, 4), [(1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)])
    assert ledger.counts((1,)) == (1, 0, 0)
    assert ledger.counts((1, 2, 3)) == (1, 1, 0)
    assert ledger.counts((1, 2, 3, 4)) == (1, 1, 1)
    assert ledger.counts((1, 5)) == (0, 0, 0)
    ledger.locks["x"].window_held = False
    assert ledger.counts((1, 2, 3, 4)) == (1, 0, 0)


def test_a_window_ends_at_a_node_boundary_and_a_split_keeps_it() -> None:
    ledger = Ledger(window_pages=1, stamps_states=False)
    ledger.lock("x", (1, 2, 3), [(1,), (1, 2, 3)])
    assert ledger.counts((1,)) == (1, 0, 0)
    assert ledger.counts((1, 2)) == (1, 1, 0)


def test_what_is_gone_is_forgotten() -> None:
    ledger = Ledger(window_pages=0, stamps_states=False)
    for key in ((1,), (2,)):
        inserted(ledger, [], 0, [key])
    ledger.keep_only({(2,)})
    assert ordered(ledger) == [(2,)]
