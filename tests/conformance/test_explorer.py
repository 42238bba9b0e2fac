"""The plain engine: exact counts, violations, symmetry, limits; and that a frozen pool thaws to the same pool."""

import pytest

from poolproof_conformance.explorer.configuration import Configuration
from poolproof_conformance.explorer.configurations import FAMILY, LARGE, configuration_named
from poolproof_conformance.explorer.counterexample import confirmed, counterexample, violations
from poolproof_conformance.explorer.limits import Limits
from poolproof_conformance.explorer.policies import policy_named, policy_names
from poolproof_conformance.explorer.reference_engine import ReferenceEngine
from poolproof_conformance.explorer.renaming import Representative, named, renamings
from poolproof_conformance.explorer.snapshot import freeze, frozen_of, image, thaw
from poolproof_conformance.explorer.stepping import Stepper
from poolproof_conformance.faulty.registry import FAULTY
from poolproof_conformance.policy_pools import policy_pool
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.run import run_history
from poolproof_reference.joint_pool import JointPool
from poolproof_spec import operation as op

from .explorer_counts import COUNTS, UP_TO_NAMES

QUICK = ("swa2-nested", "swa2-window", "swa2-pages", "mamba2-spare", "four-floats")
QUICK_UP_TO_NAMES = ("swa2-window", "swa2-pages", "mamba2-spare", "four-floats", "swa2-gate")


def explored(
    name: str, policy: str = "reference", *, symmetry: bool = False, limits: Limits | None = None
) -> ReferenceEngine:
    engine = ReferenceEngine(
        configuration_named(name), policy_named(policy), symmetry=symmetry, limits=limits or Limits()
    )
    engine.result = engine.run()  # type: ignore[attr-defined]
    return engine


def counts(engine: ReferenceEngine) -> tuple[int, int, int]:
    return engine.counts.distinct, engine.counts.transitions, engine.counts.depth


@pytest.mark.parametrize("name", QUICK)
def test_exact_counts(name: str) -> None:
    engine = explored(name)
    assert counts(engine) == COUNTS[name]
    assert engine.result.verdict == "holds"  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", QUICK_UP_TO_NAMES)
def test_exact_counts_up_to_names(name: str) -> None:
    assert counts(explored(name, symmetry=True)) == UP_TO_NAMES[name]


def test_every_configuration_has_its_counts() -> None:
    assert {configuration.name for configuration in FAMILY} == COUNTS.keys()
    assert len({configuration.name for configuration in (*FAMILY, *LARGE)}) == len(FAMILY) + len(LARGE)


def test_a_wrong_pool_is_shown_by_a_shortest_history_that_replays(tmp_path: object) -> None:
    configuration, policy = configuration_named("swa2-nested"), policy_named("newest-first")
    engine = explored("swa2-nested", "newest-first")
    found = engine.found["policy-order"]
    assert len(found.operations) == 3
    run = confirmed(configuration, policy, found)
    assert run is not None
    trace = counterexample(configuration, policy, found, run)
    assert trace.expected.targets[0].violates == ("policy-order",)
    assert run_history(ReferenceAdapter(), trace.geometry, trace.operations).verdict == "holds"
    assert engine.result.verdict == "violated"  # type: ignore[attr-defined]


def test_nothing_shorter_shows_it() -> None:
    assert not explored("swa2-nested", "newest-first", limits=Limits(depth=2)).found


def test_a_released_policy_is_judged_by_what_it_declares() -> None:
    engine = explored("swa2-gate", "quota", symmetry=True)
    assert "complete" in engine.found
    assert "honest-reason" not in engine.result.checked  # type: ignore[attr-defined]


def test_what_is_not_confirmed_is_not_shown() -> None:
    configuration = configuration_named("swa2-nested")
    found = list(explored("swa2-nested", "newest-first").found.values())
    shown, others = violations(configuration, policy_named("reference"), found, None)
    assert not shown
    assert others == tuple(found)


@pytest.mark.parametrize("limits", [Limits(depth=3), Limits(states=20), Limits(memory_bytes=10_000)])
def test_a_limit_leaves_it_unknown(limits: Limits) -> None:
    engine = explored("swa2-nested", limits=limits)
    assert engine.result.verdict == "unknown"  # type: ignore[attr-defined]
    assert "stopped at" in engine.result.reason  # type: ignore[attr-defined]
    assert engine.counts.distinct < COUNTS["swa2-nested"][0]


def test_nothing_executed_is_unknown() -> None:
    base = configuration_named("swa2-nested")
    nothing = Configuration(name="none", about="", geometry=base.geometry, operations=(op.Unlock(name="x"),))
    result = ReferenceEngine(nothing, policy_named("reference")).run()
    assert (result.verdict, result.transitions) == ("unknown", 0)


def test_each_rule_is_put_a_question_somewhere() -> None:
    """A breadth-first search to these depths reaches every witness; nothing holds vacuously over the family."""
    depths = {"swa2-group": 5, "swa2-gate": 7, "swa2-chain": 5, "mamba2-pending": 7, "swa2-locks": 4, "tri-states": 5}
    reached: set[str] = set()
    for name, depth in depths.items():
        engine = explored(name, symmetry=True, limits=Limits(depth=depth))
        reached |= {*engine.result.witnesses_reached}  # type: ignore[attr-defined]
    assert {*engine.result.checked} - reached == set()  # type: ignore[attr-defined]


SYMMETRIC = (
    ("swa2-gate", 6, ("stops-at-own-shortfall", "frees-tombstoned-twice", "over-promises", "evicts-locked")),
    ("swa2-group", 4, ("frees-own-quota", "never-settles", "victims-into-group", "gives-to-another", "leaks-page")),
    (
        "mamba2-split",
        4,
        ("split-lifts-state", "split-turns-ids", "locks-one-node", "matches-tombstoned", "forgets-use"),
    ),
)


@pytest.mark.parametrize(("name", "depth", "policies"), SYMMETRIC, ids=[name for name, _, _ in SYMMETRIC])
def test_symmetry_loses_no_violation(name: str, depth: int, policies: tuple[str, ...]) -> None:
    for policy in policies:
        plain = explored(name, policy, limits=Limits(depth=depth))
        reduced = explored(name, policy, symmetry=True, limits=Limits(depth=depth))
        lengths = [{rule: len(found.operations) for rule, found in e.found.items()} for e in (plain, reduced)]
        assert lengths[0] == lengths[1], policy


def test_renamings_are_those_that_keep_the_alphabet() -> None:
    def count(name: str) -> int:
        return len(renamings(configuration_named(name)))

    assert (count("swa2-nested"), count("swa2-gate"), count("swa2-handles")) == (1, 2, 2)
    assert count("mamba2-split") == 1  # AB and AC are not locked alike


def test_representatives_are_those_of_all_renamings() -> None:
    configuration = configuration_named("swa2-gate")
    representative = Representative(configuration)
    pool = JointPool(configuration.geometry)
    for operation in (op.Insert(key=(2,)), op.Alloc(name="a", tokens=1), op.Insert(key=(1,))):  # type: ignore[arg-type]
        pool.apply(operation)
    frozen = freeze(pool)
    images = {representative.of(named(frozen, renaming)) for renaming in representative.renamings}
    assert images == {representative.of(frozen)}


def test_a_frozen_pool_thaws_to_one_that_behaves_alike() -> None:
    for name in ("swa2-locks", "swa2-group", "mamba2-split", "swa2-event"):
        engine = explored(name, limits=Limits(states=60))
        stepper = Stepper(policy_named("reference"), engine.configuration.geometry, engine.configuration.bad_calls)
        for stored in engine._stored.states[::7]:
            frozen = frozen_of(stored)
            pool = thaw(JointPool, engine.configuration.geometry, frozen)
            assert image(freeze(pool)) == stored
            before = stepper.before(frozen)
            for operation in engine.configuration.operations:
                if stepper.applies(before, operation):
                    once, again = (stepper.step(frozen, before, operation) for _ in range(2))
                    assert once == again


def test_what_a_derived_pool_keeps_is_part_of_its_state() -> None:
    pool = policy_pool("quota")(configuration_named("swa2-nested").geometry)
    extras = freeze(pool)[-1]
    assert [name for _, name, _ in extras] == ["spans"]
    again = thaw(policy_pool("quota"), pool.pool.geometry, freeze(pool))
    assert again.pool.spans == pool.pool.spans  # type: ignore[attr-defined]


def test_names_of_policies_are_unique() -> None:
    names = policy_names()
    assert len(names) == len(set(names))
    assert {wrong.name for wrong in FAULTY} < {*names}
