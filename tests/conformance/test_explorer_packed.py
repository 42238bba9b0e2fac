"""The packed engine: the same counts, the same states and the same steps as the plain one, and its own limits."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from poolproof_conformance.explorer.configuration import Configuration, allocs, group, locks
from poolproof_conformance.explorer.configurations import configuration_named
from poolproof_conformance.explorer.limits import Limits
from poolproof_conformance.explorer.packed import stored as stored_module
from poolproof_conformance.explorer.packed.encoding import Encoder
from poolproof_conformance.explorer.packed.engine import PackedEngine
from poolproof_conformance.explorer.packed.fields import Model, PackedError
from poolproof_conformance.explorer.packed.lanes import Chunk, Lanes, NumPyBackend
from poolproof_conformance.explorer.packed.running import run_packed
from poolproof_conformance.explorer.packed.stored import CheckpointError, Stored
from poolproof_conformance.explorer.packed.wellformed import malformed
from poolproof_conformance.explorer.policies import policy_named
from poolproof_conformance.explorer.reference_engine import ReferenceEngine
from poolproof_conformance.explorer.snapshot import frozen_of
from poolproof_conformance.explorer.stepping import Stepper
from poolproof_spec import operation as op
from poolproof_spec.geometry import layout

from .explorer_counts import COUNTS, OUTSIDE, UP_TO_NAMES


def counts(name: str, *, symmetry: bool = False, device: str = "numpy") -> tuple[int, int, int]:
    result = run_packed(configuration_named(name), "reference", symmetry=symmetry, device=device)
    assert result.verdict == "holds"
    return result.distinct, result.transitions, result.depth


def engine_of(name: str, symmetry: bool = False) -> PackedEngine:
    model, backend = Model(configuration_named(name), symmetry), NumPyBackend()
    return PackedEngine(model, Stored(model, backend), backend=backend)


@pytest.mark.parametrize("name", [name for name in COUNTS if name not in OUTSIDE])
def test_exact_counts(name: str) -> None:
    assert counts(name) == COUNTS[name]


@pytest.mark.parametrize("name", [name for name in UP_TO_NAMES if name not in OUTSIDE])
def test_exact_counts_up_to_names(name: str) -> None:
    assert counts(name, symmetry=True) == UP_TO_NAMES[name]


@pytest.mark.parametrize(
    ("name", "limit"), [("swa2-locks", 250), ("swa2-event", 250), ("tri-all", 250), ("mamba2-split", 250)]
)
def test_each_step_is_the_references_step(name: str, limit: int) -> None:
    """(c) of the architecture: packed(reference's step) equals packed step, operation by operation, id by id."""
    configuration = configuration_named(name)
    plain = ReferenceEngine(configuration, policy_named("reference"), limits=Limits(states=limit))
    plain.run()
    engine, stepper = engine_of(name), Stepper(policy_named("reference"), configuration.geometry)
    encoder, compared = Encoder(engine.model), 0
    for stored in plain._stored.states[::5]:
        frozen = frozen_of(stored)
        before, state = stepper.before(frozen), encoder.packed(frozen)
        lanes = engine.backend.join([np.array([word]) for word in state])
        for operation in configuration.operations:
            rows, states = engine.step(lanes, operation)
            after = state
            if stepper.applies(before, operation):
                stepped = stepper.step(frozen, before, operation).after
                assert stepped is not None
                after = encoder.packed(stepped)
                compared += 1
            words = (
                [tuple(int(w[0]) for w in engine.backend.split(states[:1], engine.model.words))] if len(rows) else []
            )
            assert (words or [state]) == [after], operation
    assert compared > 100


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_torch_gives_the_same_counts() -> None:
    assert counts("swa2-handles", symmetry=True, device="cpu") == UP_TO_NAMES["swa2-handles"]
    assert counts("mamba2-spare", symmetry=True, device="cpu") == UP_TO_NAMES["mamba2-spare"]
    with pytest.raises(PackedError, match="torch sorts"):
        run_packed(configuration_named("tri-states"), "reference", symmetry=True, device="cpu")


def test_wrong_policies_are_found_and_shown_in_the_references_terms() -> None:
    spared = run_packed(configuration_named("swa2-window"), "skips-spare-pass")
    assert [(v.property, v.operations) for v in spared.violations] == [("irredundant", 3)]
    locked = run_packed(configuration_named("swa2-chain"), "evicts-locked", symmetry=True)
    assert ("locks-kept", 3) in [(v.property, v.operations) for v in locked.violations]
    assert locked.verdict == "violated"


def test_a_broken_rule_that_the_pool_does_not_show_is_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that is itself wrong must not blame the pool."""
    monkeypatch.setitem(sys.modules[run_packed.__module__].POLICIES, "reference", (True, False))  # type: ignore[attr-defined]
    result = run_packed(configuration_named("swa2-window"), "reference")
    assert (result.verdict, result.violations) == ("unknown", ())
    assert "does not show it" in result.reason


def test_malformed_states_are_seen() -> None:
    engine = engine_of("swa2-nested")
    model, low = engine.model, engine.model.fields["page.0.0"]
    high, naming = model.fields["page.1.0"], model.fields["id.0"]

    def rules(**values: int) -> set[str]:
        words = [np.zeros(1, dtype=np.int64) for _ in range(model.words)]
        for name, value in values.items():
            field = model.fields[name.replace("_", ".")]
            words[field.word] += value << field.shift
        lanes = Lanes(Chunk(model, engine.backend, engine.backend.join(words), engine.derived.functions))
        return {rule for rule, mask in malformed(engine.derived, lanes) if mask.any()}

    assert low.bits == high.bits == naming.bits == 3
    assert rules(page_0_0=1, page_1_0=6) == set()
    assert rules(page_0_0=7, page_1_0=6) >= {"pages-in-range"}
    assert rules(page_0_0=4, page_1_0=4) == {"extents-ordered"}
    assert rules(page_0_0=1) == {"swa-within-full"}
    assert rules(page_1_0=6, page_1_1=6, id_1=1) == {"pages-and-ids-partition"}
    assert rules(page_1_0=6, page_1_1=5) == {"pages-and-ids-partition"}  # one id twice


def outside() -> Iterator[tuple[str, Configuration]]:
    base = configuration_named("swa2-nested")

    def with_operations(*operations: op.AnyOperation) -> Configuration:
        return replace(base, operations=operations)

    yield "group_begin", with_operations(*group())
    yield "bad calls", replace(base, bad_calls=True)
    yield "demand of nothing", with_operations(*allocs("a", 0))
    yield "2 events", with_operations(op.Launch(event="e"), op.Launch(event="f"))
    yield "more than 14 pages", replace(base, geometry=layout("swa2", 640, SWA=32, FULL=32))
    yield "positions", with_operations(op.Insert(key=(1, 2, 3, 4, 5, 6)))  # type: ignore[arg-type]
    wide = layout("swa2", 480, SWA=32, FULL=32)
    yield (
        "can be sorted",
        replace(base, geometry=wide, operations=(*locks("x", base.operations[0].key), *base.operations)),
    )  # type: ignore[union-attr]


@pytest.mark.parametrize(("what", "configuration"), list(outside()), ids=[what for what, _ in outside()])
def test_what_is_outside_the_family_is_an_error(what: str, configuration: Configuration) -> None:
    with pytest.raises(PackedError, match=what) as error:
        Model(configuration, False)
    assert "--engine reference" in error.value.fix


def test_a_memory_limit_stops_it_or_sends_it_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_module, "LEAST_ROOM", 0)
    configuration, limits = configuration_named("swa2-chain"), Limits(memory_bytes=300_000)
    stopped = run_packed(configuration, "reference", limits=limits)
    assert (stopped.verdict, stopped.distinct < COUNTS["swa2-chain"][0]) == ("unknown", True)
    spilled = run_packed(configuration, "reference", limits=limits, checkpoint=tmp_path / "run")
    assert (spilled.distinct, spilled.transitions, spilled.depth) == COUNTS["swa2-chain"]
    assert [*(tmp_path / "run").glob("seen-*.npy")]


KILLED = """
import os, signal, sys
from pathlib import Path
from poolproof_conformance.explorer.configurations import configuration_named
from poolproof_conformance.explorer.packed.running import run_packed

def die(counts):
    if counts.depth == 6:
        os.kill(os.getpid(), signal.SIGKILL)

run_packed(configuration_named("mamba2-split"), "reference", checkpoint=Path(sys.argv[1]), on_progress=die)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_killed_and_resumed_it_comes_to_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(folder)], env=os.environ, check=False)
    assert killed.returncode == -signal.SIGKILL
    configuration = configuration_named("mamba2-split")
    for _ in range(2):  # once from the middle, once from the end
        result = run_packed(configuration, "reference", checkpoint=folder, resume=True)
        assert (result.distinct, result.transitions, result.depth) == COUNTS["mamba2-split"]
        assert result.verdict == "holds"


def test_checkpoints_of_other_runs_are_refused(tmp_path: Path) -> None:
    folder, configuration = tmp_path / "run", configuration_named("swa2-window")
    with pytest.raises(CheckpointError, match="no checkpoint"):
        run_packed(configuration, "reference", checkpoint=folder, resume=True)
    run_packed(configuration, "reference", checkpoint=folder)
    with pytest.raises(CheckpointError, match="already"):
        run_packed(configuration, "reference", checkpoint=folder)
    with pytest.raises(CheckpointError, match="another run"):
        run_packed(configuration, "reference", checkpoint=folder, resume=True, symmetry=True)
    (folder / "level-0003.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(CheckpointError, match="level-0003"):
        run_packed(configuration, "reference", checkpoint=folder, resume=True)


def test_what_it_judges_it_was_asked() -> None:
    result = run_packed(configuration_named("swa2-chain"), "reference", symmetry=True)
    assert {*result.witnesses_reached} | {*result.witnesses_unreached} == {*result.checked}
    assert {"complete", "preserving", "locks-kept", "swa-within-full"} <= {*result.witnesses_reached}
