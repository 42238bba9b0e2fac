"""Names of targets: each known one resolves, each wrong one says what is known and what to type."""

from pathlib import Path

import pytest
import torch

from poolproof_conformance import target_names
from poolproof_conformance.errors import TargetNameError, TargetNotInstalledError
from poolproof_conformance.fast_adapter import FastAdapter
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.target_names import resolve_target

TOY = Path(__file__).parent / "children" / "toy.py"


def test_reference_runs_in_this_process() -> None:
    target = resolve_target("reference", "rust", "lazy")
    assert target.title == "reference"
    with target.opened() as adapter:
        assert isinstance(adapter, ReferenceAdapter)


@pytest.mark.parametrize(
    ("name", "variant"), [("fast", "cpu"), ("fast:cpu", "cpu"), ("fast:interpreter", "interpreter")]
)
def test_the_fast_pool_runs_in_this_process(name: str, variant: str) -> None:
    target = resolve_target(name)
    assert (target.title, target.fast) == (name, variant)
    with target.opened() as adapter:
        assert isinstance(adapter, FastAdapter)


def test_what_the_fast_pool_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(TargetNotInstalledError, match="no CUDA device"):
        resolve_target("fast:cuda")
    monkeypatch.setattr(target_names, "find_spec", lambda _package: None)
    with pytest.raises(TargetNotInstalledError, match="needs torch and triton") as caught:
        resolve_target("fast:interpreter")
    assert "poolproof[fast]" in caught.value.fix


def test_release_runs_in_a_child(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(target_names, "installed_root", lambda _name: tmp_path)
    target = resolve_target("sglang==0.5.23", "python", "lazy")
    assert target.title == "sglang==0.5.23 (python core, lazy)"
    assert target.command[1:] == (
        *("-m", "poolproof_conformance.sglang.child"),
        *("--root", str(tmp_path), "--core", "python", "--mode", "lazy"),
    )


def test_own_adapter_is_run_by_its_path(tmp_path: Path) -> None:
    with resolve_target(str(TOY)).opened() as adapter:
        assert adapter.describe().target == "toy"
    program = tmp_path / "my adapter"
    program.write_text("#!/bin/sh\nexit 0\n")
    with pytest.raises(TargetNameError, match="not executable"):
        resolve_target(str(program))
    program.chmod(0o755)
    assert resolve_target(str(program)).command == (str(program),)


@pytest.mark.parametrize(
    ("name", "found", "fix"),
    [
        ("refrence", "did you mean reference", "poolproof targets list"),
        ("tensorrt", "known: reference, fast, sglang==", "poolproof targets list"),
        ("sglang", "a release has a version", "use sglang=="),
        ("sglang==", "a release has a version", "use sglang=="),
        ("fast:tpu", "there are fast, fast:cpu, fast:interpreter, fast:cuda", "use fast"),
        ("./none.py", "no such file", "docs/adapter-protocol.md"),
        ("/", "is a folder", "docs/adapter-protocol.md"),
    ],
)
def test_wrong_name(name: str, found: str, fix: str) -> None:
    with pytest.raises(TargetNameError, match=found) as caught:
        resolve_target(name)
    assert fix in caught.value.fix


def test_release_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_names, "installed_root", lambda _name: None)
    with pytest.raises(TargetNotInstalledError) as caught:
        resolve_target("sglang==0.5.23")
    assert caught.value.fix == "poolproof targets install sglang==0.5.23"
