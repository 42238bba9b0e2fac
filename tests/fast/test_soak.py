"""A short soak; and that each kind of fault in a pool ends it."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.fast import soak

from poolproof_fast.flights import Flight, Flights
from poolproof_fast.hygiene import Hygiene
from poolproof_fast.ids import IdSpace
from poolproof_fast.locks import Handle, Locks
from poolproof_fast.pages import Ids, MemberPages, Pages
from poolproof_fast.pool import FastPool
from poolproof_fast.store import Store
from poolproof_fast.tables import Tables

Break = Callable[[pytest.MonkeyPatch], None]


def test_a_short_soak_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = tmp_path / "soak.json"
    assert soak.main(["--minutes", str(20 / 60), "--entries", "2000", "--seed", "5", "--json", str(figures)]) == 0
    found = json.loads(figures.read_text())
    happened = Counter[str]()
    for counts in found["counts"].values():
        happened.update(counts)
    for what in ("steps evicted", "events waited for", "batches moved", "impossible", "decode refused", "gate"):
        assert happened[what] > 0, what
    assert sum(what.startswith("bad call") for what in happened) > 10
    assert found["rounds_checked"] > 0 and min(found["least_entries"].values()) >= 2000
    assert "entries: swa2" in capsys.readouterr().out


def hands_pending_pages_out(patch: pytest.MonkeyPatch) -> None:
    def leave_behind(self: Flights, member: MemberPages, ids: Ids, sources: Pages) -> None:
        member.vacate_many(sources)

    patch.setattr(Flights, "leave_behind", leave_behind)


def moves_what_is_written(patch: pytest.MonkeyPatch) -> None:
    def written(self: Flight, member: MemberPages) -> Ids:
        return np.empty(0, np.int32)

    patch.setattr(Flight, "written", written)


def fills_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Hygiene, "dirty", lambda self, index, pages: pages[:0])
    patch.setattr(Hygiene, "dirty_one", lambda self, index, page: False)


def forgets_the_tables_of_moves(patch: pytest.MonkeyPatch) -> None:
    move = Store.move

    def moved(self: Store, index: int, sources: Pages, destinations: Pages) -> None:
        with patch.context() as inner:
            inner.setattr(Tables, "touch", lambda self, index, ids, pages: None)
            move(self, index, sources, destinations)

    patch.setattr(Store, "move", moved)


def copies_one_page_less(patch: pytest.MonkeyPatch) -> None:
    move = Store.move

    def moved(self: Store, index: int, sources: Pages, destinations: Pages) -> None:
        copy = self.arena.copy
        with patch.context() as inner:
            inner.setattr(self.arena, "copy", lambda index, a, b: copy(index, a[1:], b[1:]))
            move(self, index, sources, destinations)

    patch.setattr(Store, "move", moved)


def frees_without_looking(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(IdSpace, "check_held", lambda self, ids: None)


def loses_a_page(patch: pytest.MonkeyPatch) -> None:
    free = FastPool._free

    def freed(self: FastPool, token_ids: Ids, state_ids: Ids) -> None:
        free(self, token_ids[:-1] if len(token_ids) > 2 else token_ids, state_ids)

    patch.setattr(FastPool, "_free", freed)


def forgets_a_lock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Locks, "unlock", lambda self, handle: self.handles.remove(handle))


def keeps_a_window_locked(patch: pytest.MonkeyPatch) -> None:
    def unlock_window(self: Locks, handle: Handle) -> None:
        handle.window_released = True

    patch.setattr(Locks, "unlock_window", unlock_window)


def moves_behind_a_gate(patch: pytest.MonkeyPatch) -> None:
    compact = Store.compact

    def opened(self: Store) -> None:
        was, self.gate_open = self.gate_open, True
        compact(self)
        self.gate_open = was

    patch.setattr(Store, "compact", opened)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (hands_pending_pages_out, r"\[P7\] a page changed while a forward read it"),
        (moves_what_is_written, r"\[P7\] a page moved while a forward wrote it"),
        (fills_nothing, "another member's bytes"),
        (forgets_the_tables_of_moves, r"differ from the host's|\[P7\]|\[W6\]"),
        (copies_one_page_less, r"\[P7\]|\[W6\]"),
        (frees_without_looking, "expected a RefusedError|out of bounds|has changed|is counted|are counted"),
        (loses_a_page, r"\[W5\]"),
        (forgets_a_lock, "full_locks are not those of the locks held"),
        (keeps_a_window_locked, "evictable pages|_locks are not those of the locks held"),
        (moves_behind_a_gate, r"\[P7\] .* behind a shut gate"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "-",
)
def test_a_broken_pool_is_found_out(fault: Break, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    run = soak.Soak(entries=1000, seed=3, say=lambda line: None)
    with pytest.raises((AssertionError, IndexError), match=said):
        run.run(20)
