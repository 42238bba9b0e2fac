"""`poolproof search`, pools that follow a policy, and the counterexamples that are kept as traces."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from poolproof_conformance.adapter import Adapter
from poolproof_conformance.cli import search as command
from poolproof_conformance.cli.search import search
from poolproof_conformance.errors import PoolproofError, TargetNotInstalledError
from poolproof_conformance.explain import explain_demand
from poolproof_conformance.policy_pools import PolicyAdapter, PolicyPool, policy_pool
from poolproof_conformance.policy_search import run_found
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.replay import replay
from poolproof_conformance.run import run_history
from poolproof_conformance.target_names import resolve_target
from poolproof_conformance.targets import install_release
from poolproof_conformance.traces import read_trace
from poolproof_spec.arithmetic import INTEGERS
from poolproof_spec.outcome import Done, Granted, Rejected
from poolproof_spec.policies_known import POLICIES
from poolproof_spec.smt.concretise import concretise
from poolproof_spec.smt.search import SOUGHT, Found
from poolproof_spec.smt.solver import SolverMissingError

from ..spec.smt.random_scripts import covered

FOLDER = Path(str(files("poolproof_conformance") / "known_traces"))
KEPT = {path.stem: read_trace(path) for path in sorted(FOLDER.glob("search-*.json"))}
EXPECTED_TRACES = [
    "search-component-shortfall-P1",
    "search-component-shortfall-P2",
    "search-component-shortfall-P3",
    "search-quota-P1",
    "search-quota-P2",
    "search-quota-P3",
    "search-whole-cache-P3",
]
RELEASES = ("sglang==0.5.22", "sglang==0.5.23")
HISTORIES = 60
"""Random ones on each release."""


@pytest.fixture(scope="module")
def opened() -> Iterator[dict[str, Adapter]]:
    with ExitStack() as stack:
        for release in RELEASES:
            install_release(release)
        yield {release: stack.enter_context(resolve_target(release).opened()) for release in RELEASES}


def typed(*arguments: object) -> int:
    """The command's exit code."""
    return int(search.main([str(argument) for argument in arguments], standalone_mode=False))


# The traces that are kept


def test_every_counterexample_is_kept() -> None:
    assert list(KEPT) == EXPECTED_TRACES


@pytest.mark.parametrize("name", EXPECTED_TRACES)
def test_a_kept_trace_shows_the_policys_fault_on_its_pool(name: str) -> None:
    trace = KEPT[name]
    policy, _, code = name.removeprefix("search-").rpartition("-")
    result = replay(PolicyAdapter(policy), trace, f"policy:{policy}", None, None)
    assert SOUGHT[code] in result.violated
    assert result.as_expected, result.differences
    assert replay(ReferenceAdapter(), trace, "reference", None, None).as_expected
    assert trace.explanation


@pytest.mark.parametrize("name", EXPECTED_TRACES)
def test_a_kept_trace_shows_what_it_foretells_on_both_releases(name: str, opened: dict[str, Adapter]) -> None:
    trace = KEPT[name]
    policy, _, code = name.removeprefix("search-").rpartition("-")
    for release, adapter in opened.items():
        result = replay(adapter, trace, release, "rust", "eager")
        assert result.as_expected, (release, result.differences)
        if release == POLICIES[policy].release:
            assert SOUGHT[code] in result.violated


# Policies against the releases that have them


@pytest.mark.parametrize("name", [name for name, policy in POLICIES.items() if policy.release])
def test_a_policy_does_what_its_release_does(name: str, opened: dict[str, Adapter]) -> None:
    policy = POLICIES[name]
    assert policy.release is not None
    adapter, compared = opened[policy.release], 0
    for shape, script, now in covered(policy, HISTORIES, seed=11):
        choice = policy.choose(now.view, now.ask, INTEGERS)
        concrete = concretise(shape, script)
        run = run_found(adapter, Found(shape, script, concrete.geometry.total_bytes, concrete))
        assert run.built, run.reason
        *setup, last = run.steps
        assert all(isinstance(step.outcome, Done | Granted) for step in setup)
        assert isinstance(last.outcome, Granted | Rejected)
        if choice.exact:
            assert isinstance(last.outcome, Granted) == bool(choice.granted)
            assert len(last.outcome.steps) == sum(now.legal[: choice.victims])
            compared += 1
    assert compared > HISTORIES // 2


def test_a_policy_pool_is_the_reference_but_for_its_policy() -> None:
    pool_class = policy_pool("quota")
    assert issubclass(pool_class, PolicyPool)
    assert pool_class.policy is POLICIES["quota"]
    assert PolicyAdapter("quota").describe().anchored == ("SWA", "STATE", "FULL")
    assert PolicyAdapter("tight").describe().anchored == ()
    trace = KEPT["search-component-shortfall-P2"]
    run = run_history(PolicyAdapter("tight"), trace.geometry, trace.operations)
    assert run.verdict == "holds"


# The command


def test_what_is_found_exits_1_and_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "row.json"
    code = typed("whole-cache", "--property", "P3", "--layout", "swa2", "--out", tmp_path, "--json", out)
    assert code == 1
    row = json.loads(out.read_text())
    assert row.pop("seconds") >= 0
    assert row == {
        "policy": "whole-cache",
        "property": "preserving",
        "verdict": "REFUTED",
        "operations": 2,
        "arena_bytes": 128,
        "entries": 1,
        "trace_file": str(tmp_path / "search-whole-cache-P3.json"),
        "replayed": {"reference": True, "target": None},
    }
    trace = read_trace(tmp_path / "search-whole-cache-P3.json")
    assert replay(PolicyAdapter("whole-cache"), trace, "policy:whole-cache", None, None).as_expected
    assert explain_demand(run_history(ReferenceAdapter(), *trace_parts(trace)).steps[-1].before, trace.operations[-1])
    text = capsys.readouterr().out
    assert "violated: 2 operations, 1 cached node: rejected, and 1 cached steps were evicted" in text
    assert "0 models that did not reproduce" in text


def trace_parts(trace: Any) -> tuple[Any, Any]:
    return trace.geometry, trace.operations


def test_what_is_not_found_exits_0_and_says_the_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "row.json"
    assert typed("tight", "--property", "P1", "--operations", 2, "--layout", "swa2", "--json", out) == 0
    row = json.loads(out.read_text())
    assert (row["verdict"], row["operations"], row["arena_bytes"], row["trace_file"]) == ("BOUNDED(2)", 2, None, None)
    assert "any arena, any sizes" in capsys.readouterr().out


def test_what_is_open_exits_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("tight", "--property", "P2", "--layout", "tri", "--operations", 2, "--budget", 10) == 2
    assert "UNKNOWN(resource limit of 10 reached)" in capsys.readouterr().out


def test_the_release_that_has_the_policy_is_asked(tmp_path: Path, opened: dict[str, Adapter]) -> None:
    out = tmp_path / "row.json"
    arguments = ("--property", "P2", "--layout", "tri", "--demand", "tokens", "--out", tmp_path, "--json", out)
    assert typed("component-shortfall", *arguments) == 1
    assert json.loads(out.read_text())["replayed"] == {"reference": True, "target": True}
    trace = read_trace(tmp_path / "search-component-shortfall-P2.json")
    assert trace.expected.of("sglang==0.5.22", "rust", "eager").violates == ("complete",)


def test_a_release_that_is_not_installed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> None:
        raise TargetNotInstalledError(f"{name} is not installed", f"poolproof targets install {name}")

    monkeypatch.setattr(command, "resolve_target", missing)
    out = tmp_path / "row.json"
    arguments = ("--property", "P3", "--layout", "mamba2", "--demand", "tokens", "--out", tmp_path, "--json", out)
    assert typed("quota", *arguments) == 1
    assert json.loads(out.read_text())["replayed"] == {"reference": True, "target": None}
    assert "sglang==0.5.23 is not installed: replayed on the reference alone" in capsys.readouterr().err


def test_a_missing_solver_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(names: object) -> None:
        raise SolverMissingError("z3 is not installed", "python -m pip install 'poolproof[smt]'")

    monkeypatch.setattr("poolproof_spec.smt.solver.require_installed", missing)
    with pytest.raises(PoolproofError) as error:
        typed("tight", "--property", "P1")
    assert error.value.fix == "python -m pip install 'poolproof[smt]'"
