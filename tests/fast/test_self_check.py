"""Debug mode: what a broken integration does is seen at the next operation; the right pool goes through."""

from collections.abc import Callable

import numpy as np
import pytest

from poolproof_conformance.conform import draw_histories
from poolproof_conformance.fast_adapter import FastAdapter
from poolproof_conformance.generator import History
from poolproof_conformance.run import applies
from poolproof_fast.pool import FastPool
from poolproof_fast.self_check import BrokenPoolError
from poolproof_spec.geometry import layout

TRI = layout("tri", 1200, STATE=48, SWA=32, FULL=32)


def pool_with_everything() -> FastPool:
    """Tables apart; a request, a cached prefix with a state, and pages that wait for a forward."""
    pool = FastPool(TRI, tables_apart=True, debug=True)
    pool.insert([1, 2, 3], with_state=True)
    ids = [pool.alloc(1).ids for _ in range(3)]  # type: ignore[union-attr]
    pool.launch()
    pool.free(ids[1])
    pool.compact()
    assert sum(member.pending for member in pool.store.members) == 2
    return pool


def corrupt_device_page(pool: FastPool) -> None:
    pool.store.tables.device_page_of(2)[1] += 1


def corrupt_device_id(pool: FastPool) -> None:
    pool.store.tables.device_id_at(1)[int(pool.store.members[1].low)] = 0


def corrupt_host_page(pool: FastPool) -> None:
    member = pool.store.members[1]
    member.page_of_np[np.flatnonzero(member.page_of_np)[0]] = member.page_count - 1


def write_pending(pool: FastPool) -> None:
    index, pages = pool.store.flights.unfired[0].pending[0]
    pool.store.arena.fill(index, pages, 3)


def leak_page(pool: FastPool) -> None:
    pool.store.bind(0, pool.store.states.take(1), pool.store.room(0, pool.store.members[0].page_count))
    pool.store.states.owner_np[:] = 0


def lose_free_id(pool: FastPool) -> None:
    pool.store.tokens.top -= 1


def orphan_swa(pool: FastPool) -> None:
    full = pool.store.members[2]
    pool.store.release(2, np.flatnonzero(full.page_of_np)[:1].astype(np.int32))


def hide_vacant_page(pool: FastPool) -> None:
    pool.store.members[2].vacant_np[np.flatnonzero(pool.store.members[2].vacant_np)[0]] = 0


FAULTS: list[tuple[Callable[[FastPool], None], str]] = [
    (corrupt_device_page, "device tables of member 2 differ from the host's"),
    (corrupt_device_id, "device tables of member 1 differ from the host's"),
    (corrupt_host_page, "extents_ordered"),
    (write_pending, "was written while a reader in flight may read it"),
    (leak_page, "owned_once|pages_and_ids_partition"),
    (lose_free_id, "pages_and_ids_partition"),
    (orphan_swa, "swa_within_full|pages_and_ids_partition"),
    (hide_vacant_page, "pages_and_ids_partition: FULL: the list of free pages"),
]


@pytest.mark.parametrize(("fault", "message"), [pytest.param(*case, id=case[0].__name__) for case in FAULTS])
def test_a_fault_is_told_at_the_next_operation(fault: Callable[[FastPool], None], message: str) -> None:
    pool = pool_with_everything()
    pool.alloc(0)
    fault(pool)
    with pytest.raises(BrokenPoolError, match=message):
        pool.alloc(0)


def test_device_tables_may_be_behind_within_a_step() -> None:
    pool = pool_with_everything()
    with pool.step():
        pool.alloc(2)
        pool.alloc_states(1)
    pool.alloc(0)


def test_a_pending_page_may_be_written_once_its_reader_is_done() -> None:
    pool = pool_with_everything()
    ((index, pages), *_) = pool.store.flights.unfired[0].pending
    pool.fire(pool.store.flights.unfired[0])
    pool.store.arena.fill(index, pages, 3)
    pool.alloc(0)


def test_freed_pages_are_poisoned() -> None:
    pool = FastPool(TRI, debug=True)
    ids = pool.alloc(1).ids  # type: ignore[union-attr]
    pages = [int(member.page_of_np[ids[0]]) for member in pool.store.members[1:]]
    pool.free(ids)
    assert [pool.store.arena.read_page(1 + i, page) for i, page in enumerate(pages)] == [b"\xff" * 32] * 2


def test_the_right_pool_goes_through_random_histories_unharmed() -> None:
    count = 0

    def run(history: History) -> None:
        nonlocal count
        adapter = FastAdapter(make_pool=lambda geometry: FastPool(geometry, tables_apart=True, debug=True))
        adapter.build(history[0])
        for operation in history[1]:
            if applies(adapter.observe(), operation, adapter.describe()):
                adapter.apply(operation)
                count += 1

    draw_histories(run, traces=60, seed_number=77)
    assert count > 500
