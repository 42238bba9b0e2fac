"""Subjects at tiny sizes: each does the work that is timed, and a subject that does not is found out."""

import sys
from itertools import count
from pathlib import Path

import pytest

from poolproof_conformance.bench.fast_subject import FastSubject
from poolproof_conformance.bench.runs import Bench
from poolproof_conformance.bench.session import Named, Session
from poolproof_conformance.bench.subject import (
    CannotError,
    Subject,
    WrongAnswerError,
    float_geometry,
    hole_indices,
    pair_geometry,
)
from poolproof_conformance.bench.works import WORKS, work_named
from poolproof_conformance.targets import installed_root

TINY = {
    "alloc-free": 4,
    "alloc-free-pages": 200,
    "reserve-room": 200,
    "evict-1": 200,
    "refuse": 200,
    "float-move": 200,
    "memory": 200,
}
"""Work to a size at which it takes milliseconds. `evict-1000` and `evict-victims` are `evict-1` with other numbers."""


class Counting(Subject):
    """A pool that only counts. `wrong` says what it gets wrong."""

    def __init__(self, wrong: str = "") -> None:
        self.wrong = wrong
        self.pages = self.entries = self.held = self.moved = 0

    def versions(self) -> dict[str, str]:
        return {"release": "counting 1"}

    def build(self, pages: int) -> None:
        self.pages, self.entries, self.held = pages, 0, 0

    def fill(self, entries: int) -> None:
        self.entries += entries - (self.wrong == "fills too little")

    def request(self, pages: int, keep: bool = True) -> int:
        return pages

    def take(self, request: int) -> int:
        self.held += request
        return request

    def reserve(self, request: int) -> int | None:
        if self.held + request > self.pages:
            if self.wrong == "evicts before it refuses":
                self.entries = 0
            return request if self.wrong == "grants what cannot be" else None
        if self.wrong == "refuses":
            return None
        free = self.pages - self.held - self.entries
        self.entries -= max(0, request - free)
        if self.wrong == "evicts without need":
            self.entries -= 1
        return self.take(request)

    def give(self, taken: int) -> None:
        self.held -= taken

    def restore(self, entries: int) -> None:
        self.fill(entries)

    def cached_entries(self) -> int:
        return self.entries

    def build_float(self, pages: int) -> None:
        self.moved = pages // 20

    def move_float(self) -> None:
        if self.wrong == "does not move":
            self.moved = 0

    def moved_pages(self) -> int:
        return self.moved


@pytest.mark.parametrize("work", TINY)
def test_a_right_subject_gets_a_figure(work: str) -> None:
    bench = Bench(Counting(), clock=count(0, 3_000).__next__)
    bench.prepare(work, TINY[work])
    if work != "memory":
        assert bench.run() > 0


def test_the_figure_is_the_time_of_the_timed_part_by_the_operations() -> None:
    ticks = iter((1_000, 8_001_000))
    bench = Bench(Counting(), clock=ticks.__next__)
    bench.prepare("alloc-free", 1)
    assert bench.run() == 8_000 / work_named("alloc-free").operations_at(1)


@pytest.mark.parametrize(
    ("wrong", "work"),
    [
        ("fills too little", "evict-1"),
        ("refuses", "evict-1"),
        ("grants what cannot be", "refuse"),
        ("evicts before it refuses", "refuse"),
        ("evicts without need", "reserve-room"),
        ("does not move", "float-move"),
    ],
)
def test_a_subject_that_does_something_else_has_no_figure(wrong: str, work: str) -> None:
    def measured() -> float:
        bench = Bench(Counting(wrong))
        bench.prepare(work, TINY[work])
        return bench.run()

    with pytest.raises(WrongAnswerError):
        measured()


def test_states_are_filled_once_for_cells_that_share_them() -> None:
    fills: list[int] = []

    class Filling(Counting):
        def fill(self, entries: int) -> None:
            fills.append(entries)
            super().fill(entries)

    bench = Bench(Filling())
    for work in ("evict-1", "refuse", "evict-1"):
        bench.prepare(work, 100)
    assert fills == [100]


@pytest.mark.parametrize("tables_apart", [False, True])
def test_fast_does_every_work(tables_apart: bool) -> None:
    bench = Bench(FastSubject(tables_apart=tables_apart))
    for work, size in TINY.items():
        bench.prepare(work, size)
        least = -1e6 if work == "memory" else 0  # so small a pool may fit in what the process has, or free some
        assert bench.run() > least, work
    assert bench.subject.versions()["tables"] == ("apart" if tables_apart else "shared")


def child_of(product: str, root: Path) -> Named:
    module = "poolproof_conformance.bench.child"
    return Named(product, (sys.executable, "-m", module, "--subject", product, "--root", str(root)))


@pytest.mark.parametrize("release", ["sglang==0.5.23", "vllm==0.33.0"])
def test_an_installed_release_does_every_work_that_it_has(release: str) -> None:
    root = installed_root(release)
    if root is None:
        pytest.skip(f"{release} is not installed")
    product = release.partition("=")[0]
    with Session(child_of(product, root)) as session:
        versions = session.describe()
        assert versions["release"] == release
        assert versions.get("tree_core") == ("RustUnifiedTreeCore" if product == "sglang" else None)
        for work, size in TINY.items():
            if work == "memory":
                continue  # it takes a process of its own, and is the same code for all subjects
            reason = session.prepare(work, size)
            assert (reason is None) == (product == "sglang" or work != "float-move")
            if reason is None:
                assert session.run() > 0, work
        assert session.prepare("float-move", 1_000_000)  # not measured: of SGLang it would take a minute


def test_arenas_hold_what_they_are_said_to_hold() -> None:
    pair = pair_geometry(100)
    assert pair.total_bytes == sum(100 * m.page_bytes for m in pair.members) + 32
    tri = float_geometry(100)
    assert [len(m.usable_pages) for m in tri.members if m.role != "state"] == [200, 200]
    assert tri.total_bytes - 200 * 32 == 64
    assert len(hole_indices(100)) == len(set(hole_indices(100).tolist())) == 10


def test_every_work_can_be_named() -> None:
    assert [work_named(work.name) for work in WORKS] == list(WORKS)
    with pytest.raises(KeyError, match="alloc-free"):
        work_named("alloc")
    assert issubclass(CannotError, Exception)
