"""Test the tester on the fast pool: each one wrong on purpose is caught by the rule that names its fault."""

from functools import cache

import pytest

from poolproof_conformance.conform import draw_histories
from poolproof_conformance.fast_adapter import FastAdapter
from poolproof_conformance.faulty.fast_histories import FAST_HISTORIES
from poolproof_conformance.faulty.fast_registry import CLEAN_PAGES, FAULTY_FAST, SAME_VICTIMS, FaultyFast, parts_of
from poolproof_conformance.faulty.histories import SWA2
from poolproof_conformance.faulty.hunt import findings_on, hunt_on
from poolproof_conformance.generator import History
from poolproof_fast.pool import FastPool
from poolproof_reference.reserve import victims
from poolproof_spec.catalogue import PROPERTIES
from poolproof_spec.demand import demand_of
from poolproof_spec.outcome import Granted
from poolproof_spec.steps import after_group

BY_NAME = {faulty.name: faulty for faulty in FAULTY_FAST}
BY_RULE = [wrong for wrong in FAULTY_FAST if wrong.caught_by[0] not in (SAME_VICTIMS, CLEAN_PAGES)]


@cache
def corpus() -> tuple[History, ...]:
    """The histories that every wrong pool is held against, drawn once; the same each time."""
    found: list[History] = []
    draw_histories(found.append, traces=500, seed_number=0)
    return tuple(found)


def adapter_of(wrong: FaultyFast) -> FastAdapter:
    return FastAdapter(make_pool=wrong.make_pool)


@pytest.mark.parametrize("name", [wrong.name for wrong in BY_RULE if wrong.name not in FAST_HISTORIES])
def test_random_search_finds_the_fault(name: str) -> None:
    wrong = BY_NAME[name]
    rule = wrong.caught_by[0]
    assert hunt_on(lambda: adapter_of(wrong), rule, corpus()) is not None, f"{rule} does not find it: {wrong.fault}"


@pytest.mark.parametrize("name", [wrong.name for wrong in BY_RULE if wrong.name in FAST_HISTORIES])
def test_history_by_hand_finds_the_fault(name: str) -> None:
    wrong = BY_NAME[name]
    assert wrong.caught_by[0] in findings_on(adapter_of(wrong), FAST_HISTORIES[name]), wrong.fault
    assert findings_on(FastAdapter(), FAST_HISTORIES[name]) == {}, "the right pool goes through it unharmed"


def other_victims(adapter: FastAdapter, history: History) -> list[tuple[object, ...]]:
    """(steps taken, the reference's in the same state) of each grant in which they differ."""
    geometry, operations = history
    adapter.build(geometry)
    found: list[tuple[object, ...]] = []
    for operation in operations:
        before = adapter.observe()
        outcome, demand = adapter.apply(operation), demand_of(before, operation)
        if demand is not None and isinstance(outcome, Granted):
            expected = victims(after_group(before), demand)
            found += [(outcome.steps, expected)] if expected != list(outcome.steps) else []
    return found


def test_other_victims_are_seen_where_every_rule_holds() -> None:
    (wrong,) = [wrong for wrong in FAULTY_FAST if SAME_VICTIMS in wrong.caught_by]
    history = FAST_HISTORIES[wrong.name]
    assert findings_on(adapter_of(wrong), history) == {}
    assert other_victims(adapter_of(wrong), history)
    assert other_victims(FastAdapter(), history) == []


def foreign_bytes(pool: FastPool) -> int:
    """Bytes of SWA that are read in pages of FULL which nobody has written."""
    given = pool.alloc(8)
    swa, full = pool.store.members
    for page in swa.page_of_np[given.ids].tolist():  # type: ignore[union-attr]
        pool.store.arena.write_page(0, page, b"\7" * 32)
    pool.free(given.ids)  # type: ignore[union-attr]
    pages = full.page_of_np[pool.reserve(full=17).ids]  # type: ignore[union-attr]
    return sum(len(pool.store.arena.read_page(1, page).strip(b"\0")) for page in pages.tolist())


def test_pages_of_others_are_handed_out_clean_but_by_the_one_that_forgets() -> None:
    (wrong,) = [wrong for wrong in FAULTY_FAST if CLEAN_PAGES in wrong.caught_by]
    assert foreign_bytes(FastPool(SWA2)) == 0
    assert foreign_bytes(wrong.make_pool(SWA2)) > 0


def test_every_wrong_part_takes_its_place() -> None:
    for wrong in FAULTY_FAST:
        assert wrong.wrong in {type(part) for part in parts_of(wrong.make_pool(SWA2))}, wrong.name


def test_names_are_unique_and_rules_exist() -> None:
    assert len(BY_NAME) == len(FAULTY_FAST)
    rules = {rule for wrong in BY_RULE for rule in wrong.caught_by}
    assert rules <= {rule.name for rule in PROPERTIES}
    assert FAST_HISTORIES.keys() <= BY_NAME.keys()
    assert len({wrong.wrong for wrong in FAULTY_FAST}) == len(FAULTY_FAST)
