"""The order of the jobs, the exhaustive stage and the random one: the same for everybody."""

from itertools import islice, pairwise

import pytest
from msgspec.structs import replace

from poolproof_conformance.campaigns.jobs import EXHAUSTIVE, RANDOM, Job
from poolproof_conformance.campaigns.plan import Plan
from poolproof_conformance.campaigns.random_histories import HISTORIES_A_JOB, draw
from poolproof_conformance.campaigns.rows import Cell
from poolproof_conformance.campaigns.scope import LONGEST, exhaustive_histories, is_question, makes_sense, scopes
from poolproof_conformance.campaigns.work import Workshop
from poolproof_conformance.generator import History
from poolproof_spec import operation as op
from poolproof_spec.geometry import LAYOUTS, geometry_problems, layout_name

CELLS = tuple(Cell(target="reference", core=None, mode=None, layout=name) for name in ("swa2", "tri"))
PARTS = {"swa2": 2, "tri": 3}


def plan(**changes: object) -> Plan:
    return replace(Plan(cells=CELLS, seed=1, budget_s=1.0), **changes)


def places(a_plan: Plan, count: int) -> list[tuple[str, int, int]]:
    jobs: list[Job] = list(islice(a_plan.jobs(PARTS.__getitem__), count))
    return [(job.cell.layout, job.stage, job.number) for job in jobs]


def test_exhaustive_parts_come_first_each_in_every_cell() -> None:
    assert places(plan(), 9) == [
        ("swa2", EXHAUSTIVE, 0),
        ("tri", EXHAUSTIVE, 0),
        ("swa2", EXHAUSTIVE, 1),
        ("tri", EXHAUSTIVE, 1),
        ("tri", EXHAUSTIVE, 2),
        ("swa2", RANDOM, 0),
        ("tri", RANDOM, 0),
        ("swa2", RANDOM, 1),
        ("tri", RANDOM, 1),
    ]


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_shards_share_the_jobs_out(shards: int) -> None:
    parts = [places(plan(shard=(index, shards), most_jobs=9), 99) for index in range(1, shards + 1)]
    assert sorted(place for part in parts for place in part) == sorted(places(plan(), 9))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_no_cells_no_jobs() -> None:
    assert list(Plan(cells=(), seed=1, budget_s=1.0).jobs(PARTS.__getitem__)) == []


@pytest.mark.parametrize("name", LAYOUTS)
def test_small_histories_are_sound_distinct_and_shortest_first(name: str) -> None:
    found = exhaustive_histories(name)
    assert len(set(found)) > 0.9 * len(found) > 2000, "two scopes may share a few"
    lengths = [len(operations) for _, operations in found]
    assert all(before <= after for before, after in pairwise(lengths))
    assert set(lengths) == set(range(1, LONGEST + 1))
    assert all(is_question(operations[-1]) and makes_sense(operations) for _, operations in found)
    for scope in scopes(name):
        assert layout_name(scope.geometry) == name
        assert geometry_problems(scope.geometry) == []


def test_every_question_comes_after_every_insert() -> None:
    for scope in scopes("tri"):
        found = {operations for geometry, operations in exhaustive_histories("tri") if geometry == scope.geometry}
        inserts = [setup for setup in scope.setups if isinstance(setup, op.Insert)]
        asked = [question for question in scope.questions if not isinstance(question, op.Recover)]
        assert inserts
        assert {(insert, question) for insert in inserts for question in asked} <= found


A, CLOSE, BEGIN = op.Alloc(name="a", tokens=1), op.Gate(open=False), op.GroupBegin()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("operations", "sense"),
    [
        ((A, op.Free(name="a"), A), True),
        ((op.Free(name="a"), A), False),
        ((op.Recover(name="a"),), False),
        ((CLOSE, A), True),
        ((op.Gate(open=True), A), False),
        ((CLOSE, CLOSE, A), False),
        ((BEGIN, op.Capacity()), False),
        ((op.LockPrefix(name="x", key=(1,)), A), False),  # type: ignore[arg-type]
        ((op.Insert(key=(1,)), op.LockPrefix(name="x", key=(1, 2)), A), True),  # type: ignore[arg-type]
        ((op.Launch(event="e"), op.Fire(event="e"), A), True),
        ((op.Fire(event="e"), A), False),
    ],
)
def test_what_makes_sense(operations: tuple[op.AnyOperation, ...], sense: bool) -> None:
    assert makes_sense(operations) is sense


def drawn(layout: str, number: int, seed: int = 1) -> list[History]:
    found: list[History] = []
    draw(found.append, layout=layout, seed_number=seed, number=number)
    return found


def test_random_histories_are_the_same_again_and_grow() -> None:
    early, late = drawn("tri", 0), drawn("tri", 9)
    assert early == drawn("tri", 0)
    assert early != drawn("tri", 0, seed=2)
    assert len(early) == len(late) == HISTORIES_A_JOB
    assert all(layout_name(geometry) == "tri" for geometry, _ in early)
    assert max(len(operations) for _, operations in early) < max(len(operations) for _, operations in late)


def test_a_random_job_is_run_and_judged_the_same_again() -> None:
    job = Job(cell=CELLS[0], stage=RANDOM, number=0, seed=1, history_limit_s=30.0)
    results = [replace(shop.run(job), seconds=0.0) for shop in (Workshop(), Workshop())]
    assert results[0] == results[1]
    assert results[0].histories == HISTORIES_A_JOB
    assert results[0].operations > 2 * HISTORIES_A_JOB
    assert results[0].sightings == ()
    assert results[0].doubts == {}
    assert results[0].witnessed["first-sufficient"] > 0
