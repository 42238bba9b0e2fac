"""The pool's own duties: bad calls change nothing, tables wait within a step, pages come clean, questions only ask."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from poolproof_fast.abstraction import abstraction
from poolproof_fast.adoption import AdoptError
from poolproof_fast.errors import (
    DoubleFreeError,
    EmptyKeyError,
    GroupError,
    NoStatesError,
    NotInFlightError,
    NotLockedError,
    RefusedError,
    SizeError,
    UnknownIdError,
)
from poolproof_fast.flights import Flight
from poolproof_fast.grants import Grant
from poolproof_fast.hygiene import Mode
from poolproof_fast.pages import Ids
from poolproof_fast.pool import FastPool
from poolproof_fast.prefix_cache import Handle
from poolproof_spec.geometry import layout

TRI = layout("tri", 1200, STATE=48, SWA=32, FULL=32)
SWA2 = layout("swa2", 640, SWA=32, FULL=32)


class Busy(NamedTuple):
    """A pool in the middle of everything, with a group open."""

    pool: FastPool
    held: Ids
    states: Ids
    bare: Ids
    """Held, without SWA pages."""
    queued: Ids
    cached: Ids
    fired: Flight
    unlocked: Handle


def granted(answer: object) -> Grant:
    assert isinstance(answer, Grant)
    return answer


def busy() -> Busy:
    pool = FastPool(TRI)
    held, states = granted(pool.alloc(3)).ids, granted(pool.alloc_states(2)).state_ids
    bare = granted(pool.alloc(1)).ids
    pool.free_window(bare)
    cached = granted(pool.insert([1, 2], with_state=True)).ids
    pool.lock([1, 2])
    unlocked = pool.lock([1, 2])
    assert unlocked is not None
    pool.unlock(unlocked)
    fired = pool.launch(writes=held)
    pool.fire(fired)
    pool.launch()
    queued = granted(pool.alloc(1)).ids
    pool.group_begin()
    pool.free(queued)
    return Busy(pool, held, states, bare, queued, cached, fired, unlocked)


BAD_CALLS: list[tuple[str, Callable[[Busy], object], type[RefusedError]]] = [
    ("free a free id", lambda b: b.pool.free([b.pool.store.tokens.free_ids()[0]]), UnknownIdError),
    ("free what is cached", lambda b: b.pool.free(b.cached), UnknownIdError),
    ("free what is queued", lambda b: b.pool.free(b.queued), UnknownIdError),
    ("free a sentinel", lambda b: b.pool.free([-1]), UnknownIdError),
    ("free one of two badly", lambda b: b.pool.free([int(b.held[0]), 0]), UnknownIdError),
    ("free good tokens and bad states", lambda b: b.pool.free(b.held, [-1]), UnknownIdError),
    ("free twice in one call", lambda b: b.pool.free(np.concatenate([b.held, b.held])), DoubleFreeError),
    ("free a state twice", lambda b: b.pool.free([], [int(b.states[0])] * 2), DoubleFreeError),
    ("free a window that is gone", lambda b: b.pool.free_window([*b.held.tolist(), int(b.bare[0])]), UnknownIdError),
    ("free a window that is cached", lambda b: b.pool.free_window(b.cached), UnknownIdError),
    ("recover what is cached", lambda b: b.pool.recover(b.cached), UnknownIdError),
    ("allocate less than nothing", lambda b: b.pool.alloc(-1), SizeError),
    ("allocate absurdly much", lambda b: b.pool.alloc(2**60), SizeError),
    ("allocate negative states", lambda b: b.pool.alloc_states(-1), SizeError),
    ("extend backwards", lambda b: b.pool.extend([2], [1]), SizeError),
    ("extend unpaired", lambda b: b.pool.extend([0, 0], [1]), SizeError),
    ("decode from before the start", lambda b: b.pool.decode([0]), SizeError),
    ("a tail that shrinks", lambda b: b.pool.extend_tail(2, 1, 1), SizeError),
    ("insert nothing", lambda b: b.pool.insert([]), EmptyKeyError),
    ("match nothing", lambda b: b.pool.match([]), EmptyKeyError),
    ("lock nothing", lambda b: b.pool.lock([]), EmptyKeyError),
    ("adopt nothing", lambda b: b.pool.adopt([], []), EmptyKeyError),
    ("adopt what is cached", lambda b: b.pool.adopt([8, 9], b.cached), UnknownIdError),
    ("adopt one page twice", lambda b: b.pool.adopt([8, 9], [int(b.held[0])] * 2), DoubleFreeError),
    ("adopt in the air", lambda b: b.pool.adopt([8, 9, 10, 11], b.held), AdoptError),
    ("adopt a state that is free", lambda b: b.pool.adopt([8, 9, 10], b.held, state_id=99), UnknownIdError),
    ("free what is no id at all", lambda b: b.pool.free([int(b.held[0]), 2**40]), UnknownIdError),
    ("free what would wrap to an id", lambda b: b.pool.free(wide(b.held)), UnknownIdError),
    ("free a fraction", lambda b: b.pool.free([int(b.held[0]) + 0.5]), UnknownIdError),  # type: ignore[list-item]
    ("reserve less than nothing", lambda b: b.pool.reserve(-1, -1), SizeError),
    ("reserve negative states", lambda b: b.pool.reserve(states=-1), SizeError),
    ("reserve more SWA than FULL", lambda b: b.pool.reserve(1, 2), SizeError),
    ("launch a write of a sentinel", lambda b: b.pool.launch(writes=[-1]), UnknownIdError),
    ("launch a write of a free id", lambda b: b.pool.launch(writes=b.pool.store.tokens.free_ids()), UnknownIdError),
    ("launch a write of an unknown state", lambda b: b.pool.launch(state_writes=[99]), UnknownIdError),
    ("unlock twice", lambda b: b.pool.unlock(b.unlocked), NotLockedError),
    ("unlock the window of what is unlocked", lambda b: b.pool.unlock_window(b.unlocked), NotLockedError),
    ("open a group twice", lambda b: b.pool.group_begin(), GroupError),
    ("fire what has fired", lambda b: b.pool.fire(b.fired), NotInFlightError),
]


@pytest.mark.parametrize(("call", "error"), [pytest.param(call, error, id=name) for name, call, error in BAD_CALLS])
def test_a_bad_call_is_refused_and_changes_nothing(call: Callable[[Busy], object], error: type[RefusedError]) -> None:
    everything = busy()
    before, tables = abstraction(everything.pool, with_payloads=True), host_tables(everything.pool)
    with pytest.raises(error):
        call(everything)
    assert abstraction(everything.pool, with_payloads=True) == before
    assert host_tables(everything.pool) == tables


def wide(ids: Ids) -> Any:
    """Numbers of which the lower halves are ids."""
    return ids.astype(np.int64) + 2**32


def host_tables(pool: FastPool) -> list[bytes]:
    members = pool.store.members
    owners = [bytes(pool.store.tokens.owner), bytes(pool.store.states.owner)]
    return owners + [bytes(part) for m in members for part in (m.page_of, m.id_at, m.vacant, m.bound)]


def test_what_a_chain_lacks_is_refused_or_not_demanded() -> None:
    pool = FastPool(SWA2)
    with pytest.raises(NoStatesError):
        pool.insert([1], with_state=True)
    with pytest.raises(GroupError):
        pool.group_end()
    assert granted(pool.alloc_states(5)).state_ids.tolist() == []


def test_a_group_defers_frees_and_a_demand_counts_them() -> None:
    pool = FastPool(SWA2)
    held = granted(pool.alloc(9)).ids
    pool.group_begin()
    pool.free(held[:4])
    assert pool.available_pages() == 0 and pool.store.members[0].live == 9
    assert granted(pool.alloc(4)).evicted == 0
    assert pool.group_open and pool.queued == []
    pool.free(held[4:])
    pool.group_end()
    assert pool.available_pages() == 5 and not pool.group_open


def test_a_group_keeps_what_its_caller_gave_and_not_its_array() -> None:
    pool = FastPool(SWA2)
    held = granted(pool.alloc(2)).ids
    pool.group_begin()
    pool.free(held)
    expected = held.tolist()
    held[:] = 0
    pool.group_end()
    assert set(expected) <= set(pool.store.tokens.free_ids().tolist())


# Device tables


def device_differs(pool: FastPool) -> bool:
    tables = pool.store.tables
    pairs = [(tables.device_page_of(i), tables.page_of_np[i]) for i in range(len(pool.store.members))]
    pairs += [(tables.device_id_at(i), tables.id_at_np[i]) for i in range(len(pool.store.members))]
    return any((device.cpu().numpy() != host).any() for device, host in pairs)


def test_tables_follow_every_call_outside_a_step() -> None:
    pool = FastPool(TRI, tables_apart=True)
    for call in (lambda: pool.alloc(3), lambda: pool.alloc_states(1), lambda: pool.insert([1, 2, 3]), pool.compact):
        call()
        assert not device_differs(pool)


def test_a_step_is_one_flush() -> None:
    pool = FastPool(TRI, tables_apart=True)
    tables = pool.store.tables
    launches, copies = tables.launches, tables.copies
    with pool.step():
        held = granted(pool.alloc(2)).ids
        pool.alloc_states(1)
        pool.free(held[:1])
        assert (tables.launches, tables.copies) == (launches, copies) and device_differs(pool)
    assert (tables.launches, tables.copies) == (launches + 1, copies + 1)
    assert not device_differs(pool)


def test_tables_are_flushed_also_where_a_step_fails_and_within_it_on_demand() -> None:
    pool = FastPool(TRI, tables_apart=True)
    with pytest.raises(SizeError), pool.step():
        pool.alloc(-1 if pool.alloc(2) else 0)
    assert not device_differs(pool)
    with pool.step():
        pool.alloc(2)
        pool.flush_tables()
        assert not device_differs(pool)


@pytest.mark.parametrize("page_tokens", [1, 4])
def test_ids_are_translated_on_the_device(page_tokens: int) -> None:
    pool = FastPool(
        layout("swa2", 640 * page_tokens, SWA=32 * page_tokens, FULL=32 * page_tokens, page_tokens=page_tokens)
    )
    ids = granted(pool.alloc(3 * page_tokens)).ids
    tokens = torch.tensor([int(i) * page_tokens + offset for i in ids for offset in range(page_tokens)])
    for index, member in enumerate(pool.store.members):
        expected = [member.page_of[i] * page_tokens + offset for i in ids.tolist() for offset in range(page_tokens)]
        assert pool.translate(index, tokens).tolist() == expected
    pool.free_window(ids)
    assert all(slot < pool.store.members[0].first_page * page_tokens for slot in pool.translate(0, tokens).tolist())


# Hygiene


def left_behind(mode: Mode) -> set[int]:
    """What FULL reads in new pages that SWA had written to, and that nobody has written to since."""
    pool = FastPool(SWA2, hygiene=mode)
    ids = granted(pool.alloc(9)).ids
    swa, full = pool.store.members
    pool.store.arena.fill(0, swa.page_of_np[ids].copy(), 7)
    pool.free(ids)
    pages = full.page_of_np[granted(pool.reserve(full=19)).ids]
    low = [page for page in pages.tolist() if page < 10]
    assert len(low) == 9
    return {byte for page in low for byte in pool.store.arena.read_page(1, page)}


@pytest.mark.parametrize(("mode", "expected"), [("zero", {0}), ("poison", {0xFF}), ("none", {7})])
def test_a_page_of_another_member_is_handed_out_as_asked(mode: Mode, expected: set[int]) -> None:
    assert left_behind(mode) == expected


def test_what_a_move_left_behind_is_cleaned_too() -> None:
    pool = FastPool(SWA2)
    ids = granted(pool.alloc(1)).ids
    source, destination = pool.store.members[0].page_of_np[ids].copy(), np.array([5], np.int32)
    pool.store.arena.fill(0, source, 7)
    pool.store.move(0, source, destination)
    assert pool.store.arena.read_page(0, 5) == b"\7" * 32
    pool.free(ids)
    assert len(granted(pool.reserve(full=19)).ids) == 19
    assert [pool.store.arena.read_page(1, page) for page in (int(source[0]), 5)] == [bytes(32)] * 2


def test_a_member_gets_its_own_pages_back_as_it_left_them() -> None:
    pool = FastPool(SWA2)
    ids = granted(pool.alloc(1)).ids
    page = int(pool.store.members[0].page_of_np[ids[0]])
    pool.store.arena.fill(0, page, 7)
    pool.free(ids)
    again = granted(pool.alloc(1)).ids
    assert int(pool.store.members[0].page_of_np[again[0]]) == page
    assert pool.store.arena.read_page(0, page) == b"\7" * 32 and pool.store.arena.filled_bytes == 32


# Questions


def test_questions_change_nothing_and_tell_the_truth() -> None:
    everything = busy()
    pool = everything.pool
    before, tables = abstraction(pool, with_payloads=True), host_tables(pool)
    available = pool.available_pages()
    assert pool.fits(available, available) and not pool.fits(available + 1, available + 1)
    assert abstraction(pool, with_payloads=True) == before and host_tables(pool) == tables
    pool.group_end()
    available = pool.available_pages()
    assert granted(pool.reserve(available, available, may_wait=False)).evicted == 0


def test_an_adopted_request_is_cached_and_hits() -> None:
    pool = FastPool(TRI)
    ids, state = granted(pool.alloc(4)).ids, int(granted(pool.alloc_states(1)).state_ids[0])
    assert pool.adopt([1, 2, 3, 4], ids, state_id=state).tolist() == []
    again, other = granted(pool.alloc(4)).ids, int(granted(pool.alloc_states(1)).state_ids[0])
    assert pool.adopt([1, 2, 3, 4], again, state_id=other).tolist() == again.tolist()
    handle = pool.lock([1, 2, 3, 4, 5])
    assert handle is not None and pool.prefix_ids(handle).tolist() == ids.tolist()
    assert pool.prefix_state(handle) == state
    assert pool.store.states.top == pool.store.states.size - 1
    pool.unlock(handle)
    assert not pool.lock([9])


def test_a_step_within_a_step_ends_with_the_outer_one() -> None:
    pool = FastPool(layout("swa2", 6400, SWA=32, FULL=32), tables_apart=True)
    with pool.step():
        with pool.step():
            pool.alloc(1)
        assert pool.in_step
        pool.alloc(1)
        assert pool.store.tables.launches == 0
    assert pool.store.tables.launches == 1


def test_sizes_and_keys_that_are_no_integers_of_64_bits_change_nothing() -> None:
    pool = FastPool(layout("swa2", 6400, SWA=32, FULL=32))
    before = abstraction(pool)
    for bad in (lambda: pool.alloc(1.5), lambda: pool.reserve(1.5, 1), lambda: pool.insert([0.5])):  # type: ignore[arg-type, list-item]
        with pytest.raises(TypeError):
            bad()
    for call in (lambda: pool.decode([1.5] * 100), lambda: pool.insert([2**63]), lambda: pool.match([1, 2**70])):  # type: ignore[list-item]
        with pytest.raises(SizeError):
            call()
    assert abstraction(pool) == before
