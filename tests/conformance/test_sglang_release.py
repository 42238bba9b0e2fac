"""Released sglang under the adapter: the seed's figures, known departures, and observation that can be relied on.

Each release is installed where it is missing, and runs in child processes, as for users.
"""

import random
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest

from poolproof_conformance.adapter import UnsupportedGeometryError
from poolproof_conformance.child import ChildAdapter, TargetFailureError
from poolproof_conformance.targets import KNOWN_RELEASES, install_release
from poolproof_spec import operation as op
from poolproof_spec.geometry import Geometry, layout
from poolproof_spec.outcome import Answer, AnyOutcome, Crashed, Done, Granted, Refused, Rejected, Unsupported
from poolproof_spec.state import PoolState

OLD, NEW = KNOWN_RELEASES
BY_DESIGN = {"reasons", "no_wait", "refusals", "policy_order", "recency", "state_writes"}
CORES, MODES = ("rust", "python"), ("eager", "lazy")
SEED_TWO = layout("swa2", 6400, FULL=32, SWA=32)
SEED_THREE = layout("tri", 6784, FULL=32, SWA=32, STATE=48)
Open = Callable[[str, str, str], ChildAdapter]


@pytest.fixture(scope="module")
def opened() -> Iterator[Open]:
    """(release, core, mode) to its child process; each is started once."""
    children: list[ChildAdapter] = []

    @cache
    def start(release: str, core: str, mode: str) -> ChildAdapter:
        root = install_release(release)
        module = "poolproof_conformance.sglang.child"
        command = (sys.executable, "-m", module, "--root", str(root), "--core", core, "--mode", mode)
        children.append(ChildAdapter(command))
        return children[-1]

    yield start
    for child in children:
        child.close()


def play(target: ChildAdapter, geometry: Geometry, *operations: op.AnyOperation) -> tuple[PoolState, AnyOutcome]:
    """The state before the last operation, and its outcome."""
    target.build(geometry)
    for operation in operations[:-1]:
        outcome = target.apply(operation)
        assert isinstance(outcome, Done | Granted), outcome
    before = target.observe()
    return before, target.apply(operations[-1])


def lost_tokens(before: PoolState, after: PoolState) -> int:
    kept = {i for entry in after.entries for i in entry.ids}
    return len({i for entry in before.entries for i in entry.ids} - kept)


def seed_three(demand: int) -> tuple[op.AnyOperation, ...]:
    keys = ((1,), (2,), tuple(range(10, 104)))
    states = op.AllocStates(name="held", count=5)
    return (states, *(op.Insert(key=k, state=True) for k in keys), op.Alloc(name="r", tokens=demand))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(("release", "lost"), [(OLD, 5), (NEW, 3)])
def test_the_seed_two_pools(release: str, lost: int, core: str, mode: str, opened: Open) -> None:
    target = opened(release, core, mode)
    prefixes = [op.Insert(key=(1000 + i,)) for i in range(96)]
    before, outcome = play(target, SEED_TWO, *prefixes, op.Alloc(name="r", tokens=6))
    assert isinstance(outcome, Granted)
    assert [step.key for step in outcome.steps] == [(1000 + i,) for i in range(lost)]
    assert len(outcome.pages) == 12
    assert lost_tokens(before, target.observe()) == lost


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(
    ("release", "demand", "kind", "lost"),
    [(OLD, 4, Rejected, 0), (NEW, 4, Granted, 1), (OLD, 200, Rejected, 96), (NEW, 200, Rejected, 0)],
)
def test_the_seed_three_pools(
    release: str, demand: int, kind: type[AnyOutcome], lost: int, core: str, mode: str, opened: Open
) -> None:
    target = opened(release, core, mode)
    before, outcome = play(target, SEED_THREE, *seed_three(demand))
    assert isinstance(outcome, kind)
    assert lost_tokens(before, target.observe()) == lost


def test_says_who_it_is(opened: Open) -> None:
    for core, name in (("rust", "RustUnifiedTreeCore"), ("python", "UnifiedTreeCore")):
        description = opened(NEW, core, "eager").describe()
        assert description.target == NEW
        assert description.details == {"tree_core": name, "mode": "eager"}
        assert set(description.cannot) == BY_DESIGN | {"in_flight", "gates"}
    assert set(opened(NEW, "rust", "lazy").describe().cannot) == BY_DESIGN


GEOMETRIES = [
    SEED_TWO,
    layout("swa2", 1000, page_tokens=2, window_tokens=3, FULL=192, SWA=64),
    layout("mamba2", 1152, FULL=96, STATE=176),
    layout("mamba2", 288, page_tokens=2, FULL=64, STATE=48),
    SEED_THREE,
    layout("tri", 2000, page_tokens=2, window_tokens=4, FULL=128, SWA=64, STATE=80),
]


@pytest.mark.parametrize("release", KNOWN_RELEASES)
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: f"{len(g.members)}x{g.total_bytes}")
def test_builds_exactly_the_geometry_and_starts_empty(geometry: Geometry, release: str, opened: Open) -> None:
    target = opened(release, "rust", "lazy")
    target.build(geometry)
    state = target.observe()
    assert [set(member.free_pages or ()) for member in state.members] == [set(m.usable_pages) for m in geometry.members]
    assert state.free_token_ids == tuple(geometry.id_range("full"))
    assert state.free_state_ids == tuple(geometry.id_range("state"))
    assert msgspec.structs.replace(state, members=(), free_token_ids=(), free_state_ids=()) == PoolState(
        geometry=geometry, members=()
    )


@pytest.mark.parametrize(
    ("geometry", "why"),
    [
        (layout("swa2", 640, FULL=48, SWA=32), "FULL: page_bytes 48 is no multiple of 32"),
        (layout("mamba2", 640, FULL=32, STATE=40), "STATE: page_bytes 40 is no multiple of 16"),
        (layout("tri", 176, FULL=32, SWA=32, STATE=48), "refuses to build it"),
        (msgspec.structs.replace(SEED_TWO, members=SEED_TWO.members[1:]), "sglang has the layouts"),
    ],
)
def test_says_why_a_geometry_cannot_be_had(geometry: Geometry, why: str, opened: Open) -> None:
    with pytest.raises(UnsupportedGeometryError, match=why):
        opened(NEW, "rust", "eager").build(geometry)


def test_a_folder_that_holds_no_release(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "poolproof_conformance.sglang.child", "--root", str(tmp_path))
    with ChildAdapter(command) as child, pytest.raises(TargetFailureError, match="holds no sglang/srt/mem_cache"):
        child.describe()


SMALL = layout("tri", 1200, FULL=32, SWA=32, STATE=48, window_tokens=2)


@pytest.mark.parametrize("core", CORES)
def test_reads_the_tree_with_its_locks(core: str, opened: Open) -> None:
    target = opened(NEW, core, "lazy")
    long = op.Insert(key=(1, 2, 3, 4), state=True)
    play(target, SMALL, long, op.Insert(key=(1, 2, 5), state=True), op.LockPrefix(name="x", key=(1, 2, 3, 4)))
    entries = {entry.key: entry for entry in target.observe().entries}
    assert set(entries) == {(1, 2), (1, 2, 3, 4), (1, 2, 5)}
    locks = {key: (e.full_locks, e.swa_locks, e.state_locks) for key, e in entries.items()}
    assert locks == {(1, 2): (1, 0, 0), (1, 2, 3, 4): (1, 1, 1), (1, 2, 5): (0, 0, 0)}
    assert [e.state_id is not None for e in entries.values()] == [False, True, True]
    assert entries[1, 2].last_use < entries[1, 2, 3, 4].last_use
    target.apply(op.UnlockWindow(name="x"))
    assert [(e.full_locks, e.swa_locks, e.state_locks) for e in target.observe().entries][1] == (1, 0, 0)
    assert target.observe().locks[0].window_released


@pytest.mark.parametrize("core", CORES)
def test_tells_the_steps_in_their_order(core: str, opened: Open) -> None:
    """A locked FULL path may still give up its SWA pages: leaves go first, then a tombstone."""
    target = opened(NEW, core, "lazy")
    geometry = layout("swa2", 640, FULL=32, SWA=32)
    locked = (op.Insert(key=tuple(range(1, 9))), op.LockPrefix(name="x", key=tuple(range(1, 9))))
    _, outcome = play(target, geometry, *locked, op.Insert(key=(20,)), op.Alloc(name="r", tokens=3))
    assert isinstance(outcome, Granted)
    assert [(step.kind, len(step.key)) for step in outcome.steps] == [("leaf", 1), ("tombstone", 7)]
    assert outcome.walks == 1
    tombstoned = next(entry for entry in target.observe().entries if len(entry.key) == 7)
    assert tombstoned.swa_ids == ()
    assert len(tombstoned.ids) == 7


def test_payloads_follow_the_pages_that_move(opened: Open) -> None:
    for mode in MODES:
        target = opened(NEW, "rust", mode)
        target.build(layout("swa2", 640, FULL=32, SWA=32))
        for name in "abc":
            outcome = target.apply(op.Alloc(name=name, tokens=2))
            assert isinstance(outcome, Granted)
            for stamp, (member, identifier) in enumerate(outcome.pages, start=ord(name) * 100):
                target.write(member, identifier, stamp)
        before = target.observe()
        target.apply(op.Free(name="a"))
        target.apply(op.Compact())
        after = target.observe()
        assert {p for p in before.payloads if p[:2] in {q[:2] for q in after.payloads}} == set(after.payloads)
        assert len(after.payloads) == 8
        assert before.members != after.members


def test_a_page_that_a_forward_still_reads_is_pending_until_it_ends(opened: Open) -> None:
    target = opened(NEW, "rust", "lazy")
    holds = [op.Alloc(name=name, tokens=2) for name in "abc"]
    launch = op.Launch(event="e", writes=("b",))
    play(target, layout("swa2", 640, FULL=32, SWA=32), *holds, launch, op.Free(name="a"))
    target.apply(op.Compact())
    state = target.observe()
    assert {event for member in state.members for _, event in member.pending} == {"e"}
    assert state.flights[0].event == "e"
    written = {identifier for _, identifier in state.flights[0].writes}
    assert written == set(state.holds[0].ids)
    target.apply(op.Fire(event="e"))
    after = target.observe()
    assert after.flights == ()
    assert all(not member.pending for member in after.members)
    for member, now in zip(after.geometry.members, after.members, strict=True):
        assert set(now.free_pages or ()) == set(member.usable_pages) - now.live_pages


def test_a_demand_tells_which_event_it_waited_for(opened: Open) -> None:
    """FULL needs a page more than it has holes, so SWA must close its own, under a forward that still reads there."""
    target = opened(NEW, "rust", "lazy")
    fill = (op.Alloc(name="a", tokens=3), op.Alloc(name="b", tokens=3))
    demand = op.ExtendTail(name="r", prefix_len=0, seq_len=4, tail=0)
    geometry = layout("swa2", 640, FULL=64, SWA=32)
    _, outcome = play(target, geometry, *fill, op.Launch(event="e"), op.Free(name="a"), demand)
    assert isinstance(outcome, Granted)
    assert outcome.waited == ("e",)
    assert dict(outcome.compactions or ())["SWA"] == 1
    assert target.observe().flights == ()


def test_a_group_keeps_what_was_freed_until_it_ends(opened: Open) -> None:
    target = opened(NEW, "rust", "eager")
    play(target, SMALL, op.Alloc(name="a", tokens=2), op.GroupBegin(), op.Free(name="a"))
    state = target.observe()
    assert state.group_open
    assert state.holds == ()
    assert state.queued.ids == state.queued.swa_ids == tuple(sorted(state.member("FULL").live_ids))
    target.apply(op.GroupEnd())
    assert target.observe().member("FULL").bindings == ()


def test_bad_calls_are_refused_and_what_the_engine_lacks_is_said(opened: Open) -> None:
    target = opened(NEW, "rust", "eager")
    target.build(SMALL)
    before = target.observe()
    for refused in (op.Free(name="x"), op.Unlock(name="x"), op.FreeWindow(name="x"), op.Fire(event="x")):
        assert isinstance(target.apply(refused), Refused)
    for lacking in (op.Gate(open=False), op.Launch(event="e"), op.Insert(key=(1,))):
        assert isinstance(target.apply(lacking), Unsupported)
    assert target.observe() == before


def test_what_the_engine_raises_is_a_crash(opened: Open) -> None:
    target = opened(NEW, "rust", "lazy")
    _, outcome = play(target, SMALL, op.GroupBegin(), op.GroupBegin())
    assert isinstance(outcome, Crashed)
    assert "AssertionError: free groups cannot be nested" in outcome.reason


def test_capacity_is_tried_for_real_and_changes_nothing(opened: Open) -> None:
    target = opened(NEW, "rust", "lazy")
    before, outcome = play(target, SEED_TWO, op.Insert(key=(1, 2)), op.Capacity())
    assert outcome == Answer(token_pages=97, exact_granted=True, one_more_granted=False)
    after = target.observe()
    assert (after.entries, after.free_token_ids) == (before.entries, before.free_token_ids)
    assert [m.bindings for m in after.members] == [m.bindings for m in before.members]
    assert target.apply(op.Query()) == Answer(token_pages=97)
    assert target.observe() == after


def random_operation(rng: random.Random, state: PoolState, states: bool, number: int) -> op.AnyOperation:
    """Any operation; most of them make sense in the state."""
    t, a, x = state.geometry.page_tokens, rng.choice("abc"), rng.choice("xy")
    key = tuple(rng.choice((1, 2, 3)) for _ in range(rng.randint(1, 5)))
    flight = state.flights[0].event if state.flights else "none"
    kinds: list[tuple[int, Callable[[], op.AnyOperation]]] = [
        (8, lambda: op.Insert(key=key, state=states)),
        (3, lambda: op.Match(key=key)),
        (3, lambda: op.LockPrefix(name=x, key=key)),
        (1, lambda: op.Unlock(name=x)),
        (1, lambda: op.UnlockWindow(name=x)),
        (4, lambda: op.Alloc(name=a, tokens=rng.randint(1, 6) * t)),
        (1, lambda: op.Extend(name=a, prefix_lens=(1, 2), seq_lens=(rng.randint(2, 6), rng.randint(3, 5)))),
        (1, lambda: op.Decode(name=a, seq_lens=(rng.randint(2, 9), rng.randint(2, 9)))),
        (1, lambda: op.ExtendTail(name=a, prefix_len=1, seq_len=rng.randint(2, 7), tail=rng.randint(0, 1))),
        (2, lambda: op.AllocStates(name=a, count=rng.randint(1, 3))),
        (1, lambda: op.Recover(name=a)),
        (3, lambda: op.Free(name=a)),
        (1, lambda: op.FreeWindow(name=a)),
        (1, lambda: op.GroupEnd() if state.group_open else op.GroupBegin()),
        (1, lambda: op.Gate(open=rng.random() < 0.6)),
        (2, lambda: op.Launch(event=f"e{number}", writes=tuple(h.name for h in state.holds))),
        (1, lambda: op.Fire(event=flight)),
        (2, op.Compact),
        (1, op.Query),
        (1, op.Capacity),
    ]
    return rng.choices([make for _, make in kinds], [weight for weight, _ in kinds])[0]()


def random_geometry(rng: random.Random) -> Geometry:
    name, t = rng.choice(("swa2", "mamba2", "tri")), rng.choice((1, 1, 2))
    sizes = {"FULL": 32 * t * rng.randint(1, 3), "SWA": 32 * t * rng.randint(1, 2), "STATE": rng.choice((48, 176))}
    wanted = {"swa2": ("SWA", "FULL"), "mamba2": ("STATE", "FULL"), "tri": ("STATE", "SWA", "FULL")}[name]
    return layout(
        name,
        16 * rng.randint(50, 110),
        page_tokens=t,
        window_tokens=rng.randint(1, 4),
        **{member: sizes[member] for member in wanted},
    )


HISTORIES, LENGTH = 40, 25


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("release", KNOWN_RELEASES)
def test_both_tree_cores_tell_the_same_of_random_histories(release: str, mode: str, opened: Open) -> None:
    """The Rust core's recency and locks come from a ledger, the Python core's from its nodes: they must agree."""
    rng = random.Random(f"{release} {mode}")
    rust, python = opened(release, "rust", mode), opened(release, "python", mode)
    seen = dict.fromkeys(("steps", "waited", "locks", "payloads"), 0)
    for _ in range(HISTORIES):
        geometry = random_geometry(rng)
        states = geometry.has_role("state") and geometry.page_tokens == 1
        for target in (rust, python):
            target.build(geometry)
        for number in range(LENGTH):
            operation = random_operation(rng, rust.observe(), states, number)
            outcome = rust.apply(operation)
            assert outcome == python.apply(operation), operation
            for member, identifier in getattr(outcome, "pages", ()):
                for target in (rust, python):
                    target.write(member, identifier, number + 1)
            state = rust.observe()
            assert state == python.observe(), operation
            assert not isinstance(outcome, Crashed), outcome
            assert all(stamp > 0 for *_, stamp in state.payloads), operation
            seen["steps"] += len(getattr(outcome, "steps", ()))
            seen["waited"] += len(getattr(outcome, "waited", ()))
            seen["locks"] += sum(entry.swa_locks + entry.state_locks for entry in state.entries)
            seen["payloads"] += len(state.payloads)
    assert all(count or (what == "waited" and mode == "eager") for what, count in seen.items()), seen
