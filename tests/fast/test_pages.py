"""One member's pages against a plain model, in all three kinds; and where the next pages are taken."""

from array import array
from typing import NamedTuple

import numpy as np
import pytest

from poolproof_fast.pages import FIRST_CHUNK_PAGES, MemberPages
from poolproof_spec.geometry import Kind, Member
from poolproof_spec.units import ByteCount, PageCount, PageId

KINDS: list[Kind] = ["up", "down", "float"]
FIRST_PAGE, PAGES = 2, 40


def member_of(kind: Kind, page_count: int = PAGES) -> MemberPages:
    member = Member(
        name="M",
        role="full",
        page_bytes=ByteCount(1),
        first_page=PageId(FIRST_PAGE),
        page_count=PageCount(page_count),
        kind=kind,
    )
    tables = array("i", bytes(4 * page_count)), array("i", bytes(4 * page_count))
    views = np.frombuffer(tables[0], np.int32), np.frombuffer(tables[1], np.int32)
    return MemberPages(0, member, tables, views)


class Model(NamedTuple):
    """What a member holds, in sets."""

    page_of: dict[int, int]
    pending: dict[int, int]
    """Page to the events that it waits for."""

    def taken(self) -> set[int]:
        return {*self.page_of.values(), *self.pending}

    def vacant(self) -> list[int]:
        return [page for page in range(FIRST_PAGE, PAGES) if page not in self.taken()]

    def room(self, kind: Kind) -> list[int]:
        """Where the next pages come from, the first one first; of a float: holes, then what lies around."""
        vacant, taken = self.vacant(), self.taken()
        if kind != "float":
            return vacant if kind == "up" else vacant[::-1]
        low, high = min(taken), max(taken)
        return [page for page in vacant if low < page < high]


def agree(member: MemberPages, model: Model) -> None:
    taken = model.taken()
    assert np.flatnonzero(member.vacant_np).tolist() == model.vacant()
    assert np.flatnonzero(member.bound_np).tolist() == sorted(model.page_of.values())
    assert {i: page for i, page in enumerate(member.page_of) if page} == model.page_of
    assert {page: i for page, i in enumerate(member.id_at) if i} == {page: i for i, page in model.page_of.items()}
    assert (member.taken, member.live, member.pending) == (len(taken), len(model.page_of), len(model.pending))
    if taken:
        assert (member.low, member.high) == (min(taken), max(taken) + 1)
    else:
        assert (member.low, member.high) == (PAGES, 0)


def some(generator: np.random.Generator, items: list[int], most: int = 9) -> np.ndarray:
    count = int(generator.integers(1, min(most, len(items)) + 1))
    return generator.choice(items, count, replace=False).astype(np.int32)


def take(member: MemberPages, model: Model, generator: np.random.Generator) -> None:
    """New pages, one or many."""
    free = [i for i in range(1, PAGES) if i not in model.page_of]
    ids = some(generator, free, most=min(9, len(model.vacant())))
    start, end = FIRST_PAGE, PAGES
    one = len(ids) == 1
    expected = model.room(member.kind)[: len(ids)] if model.taken() or member.kind != "float" else []
    pages = [member.next_page(start, end)] if one else member.next_pages(len(ids), start, end).tolist()
    assert len(set(pages)) == len(ids) and set(pages) <= set(model.vacant())
    assert pages[: len(expected)] == expected, member.kind
    if len(expected) < len(ids):
        joined = model.taken() | set(pages)
        assert len(joined) == max(joined) - min(joined) + 1, "holes first, then no new ones"
    if one:
        member.bind(pages[0], int(ids[0]), 7)
    else:
        member.bind_many(np.array(pages, np.int32), ids, 7)
    model.page_of.update(zip(ids.tolist(), pages, strict=True))
    assert [member.born[i] for i in ids.tolist()] == [7] * len(ids)


def give(member: MemberPages, model: Model, generator: np.random.Generator) -> None:
    """Frees, one or many."""
    ids = some(generator, list(model.page_of))
    pages = [member.release(int(ids[0]))] if len(ids) == 1 else member.release_many(ids).tolist()
    assert pages == [model.page_of.pop(i) for i in ids.tolist()]


def move(member: MemberPages, model: Model, generator: np.random.Generator) -> None:
    """A move that leaves everything pending, some of it on two events."""
    ids = some(generator, list(model.page_of), most=min(5, len(model.vacant())))
    sources = member.page_of_np[ids]
    destinations = generator.choice(model.vacant(), len(ids), replace=False).astype(np.int32)
    assert member.rebind(sources, destinations).tolist() == ids.tolist()
    member.add_waits(sources)
    member.add_waits(sources[::2])
    waits = {page: 2 if position % 2 == 0 else 1 for position, page in enumerate(sources.tolist())}
    model.pending.update(waits)
    model.page_of.update(zip(ids.tolist(), destinations.tolist(), strict=True))


def fire(member: MemberPages, model: Model, generator: np.random.Generator) -> None:
    """One event less for some pending pages."""
    pages = some(generator, list(model.pending))
    for page in pages.tolist():
        model.pending[page] -= 1
    free = [page for page in pages.tolist() if not model.pending[page]]
    for page in free:
        del model.pending[page]
    assert member.end_waits(pages).tolist() == free


@pytest.mark.parametrize("kind", KINDS)
def test_a_random_life_against_the_model(kind: Kind) -> None:
    for seed in range(4):
        generator, member, model = np.random.default_rng(seed), member_of(kind), Model({}, {})
        done: set[str] = set()
        for _ in range(500):
            choice = generator.random()
            if choice < 0.45 and model.vacant() and len(model.page_of) < PAGES - 1:
                take(member, model, generator)
            elif choice < 0.8 and model.page_of:
                give(member, model, generator)
            elif choice < 0.9 and model.page_of and model.vacant():
                move(member, model, generator)
                done.add("moved")
            elif model.pending:
                fire(member, model, generator)
                done.add("fired")
            agree(member, model)
        assert done == {"moved", "fired"}


@pytest.mark.parametrize("kind", KINDS)
def test_many_pages_far_away_are_found_in_order(kind: Kind) -> None:
    pages = 10 * FIRST_CHUNK_PAGES
    member = member_of(kind, pages)
    first = member.next_pages(3 * FIRST_CHUNK_PAGES, FIRST_PAGE, pages)
    member.bind_many(first, np.arange(1, 1 + len(first), dtype=np.int32), 0)
    member.release_many(np.arange(1, 1 + len(first), 3, dtype=np.int32))
    vacant = np.flatnonzero(member.vacant_np)
    found = member.next_pages(2000, FIRST_PAGE, pages)
    if kind == "float":
        inside = vacant[(vacant > member.low) & (vacant < member.high)]
        assert len(inside) < 2000
        assert found[: len(inside)].tolist() == inside.tolist()
        assert sorted(found[len(inside) :].tolist()) == [
            *range(min(found), member.low),
            *range(member.high, max(found) + 1),
        ]
    else:
        assert found.tolist() == (vacant[:2000] if kind == "up" else vacant[::-1][:2000]).tolist()


def test_a_float_stays_in_its_window() -> None:
    member = member_of("float")
    assert member.next_page(10, 20) == 15
    assert member.next_pages(10, 10, 20).tolist() == list(range(10, 20))
    member.bind_many(np.array([11, 12, 13], np.int32), np.array([1, 2, 3], np.int32), 0)
    assert member.next_page(10, 20) == 14, "where there is more room"
    assert member.next_page(5, 15) == 10
    assert sorted(member.next_pages(7, 10, 20).tolist()) == [10, *range(14, 20)]
    assert sorted(member.next_pages(7, 5, 15).tolist()) == [*range(5, 11), 14]
    member.bind(10, 4, 0)
    assert member.next_page(10, 20) == 14
