"""What a run with a fixed seed finds on released SGLang, and what the committed traces foretell of it."""

from collections.abc import Iterator
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path

import pytest

from poolproof_conformance.adapter import Adapter
from poolproof_conformance.campaign import Campaign, run_campaign
from poolproof_conformance.replay import Replay, replay
from poolproof_conformance.target_names import Target, resolve_target
from poolproof_conformance.targets import install_release
from poolproof_conformance.trace_format import Mode, Trace, TreeCore
from poolproof_conformance.traces import read_trace
from poolproof_spec.geometry import LAYOUTS

RELEASE = "sglang==0.5.23"
SOUGHT = {
    "first-sufficient": "it evicts more than is needed",
    "complete": "it rejects a feasible demand",
    "preserving": "it discards prefixes for a demand that it rejects",
}
CORES: tuple[TreeCore, ...] = ("rust", "python")
KNOWN = sorted(Path(str(files("poolproof_conformance") / "known_traces")).glob("*.json"))


@pytest.fixture(scope="module")
def opened() -> Iterator[dict[tuple[TreeCore, Mode], tuple[Target, Adapter]]]:
    """A child process for each way to run the release."""
    install_release(RELEASE)
    with ExitStack() as stack:
        targets = {}
        for core in CORES:
            for mode in ("eager", "lazy"):
                target = resolve_target(RELEASE, core, mode)
                targets[core, mode] = (target, stack.enter_context(target.opened()))
        yield targets


@pytest.fixture(scope="module")
def campaign(
    opened: dict[tuple[TreeCore, Mode], tuple[Target, Adapter]], tmp_path_factory: pytest.TempPathFactory
) -> Campaign:
    target, adapter = opened["rust", "eager"]
    folder = tmp_path_factory.mktemp("traces")
    return run_campaign(target, adapter, traces=200, seed=1, layouts=tuple(LAYOUTS), folder=folder)


@pytest.mark.parametrize("name", SOUGHT)
def test_a_run_with_a_fixed_seed_finds_it_and_the_trace_replays(
    name: str, campaign: Campaign, opened: dict[tuple[TreeCore, Mode], tuple[Target, Adapter]]
) -> None:
    failure = next(failure for failure in campaign.failures if failure.property == name)
    assert failure.operations <= 8
    trace = read_trace(Path(failure.trace_file))
    target, adapter = opened["rust", "eager"]
    again = replay(adapter, trace, target.name, target.tree_core, target.mode)
    assert name in again.violated
    assert again.as_expected, again.differences
    right = replay_on_reference(trace)
    assert right.verdict == "holds", right.violated


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("path", KNOWN, ids=lambda path: path.stem)
def test_known_trace_shows_the_stated_behaviour(
    path: Path, core: TreeCore, opened: dict[tuple[TreeCore, Mode], tuple[Target, Adapter]]
) -> None:
    trace = read_trace(path)
    target, adapter = opened[core, trace.mode or "eager"]
    result = replay(adapter, trace, target.name, target.tree_core, target.mode)
    assert result.verdict != "unknown", result.reason
    assert result.as_expected, result.differences


def replay_on_reference(trace: Trace) -> Replay:
    with resolve_target("reference").opened() as adapter:
        return replay(adapter, trace, "reference", None, None)
