"""The page of findings is what its traces say, and the installed releases still show what the traces foretell."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from poolproof_conformance.adapter import Adapter
from poolproof_conformance.campaigns.causes import cause_of, causes
from poolproof_conformance.campaigns.findings import INDEX, NoFindingsError, collect, newest_first, read_findings
from poolproof_conformance.campaigns.findings_page import findings_page
from poolproof_conformance.campaigns.store import Store
from poolproof_conformance.cli.main import run
from poolproof_conformance.replay import replay
from poolproof_conformance.target_names import Target, resolve_target
from poolproof_conformance.targets import install_release
from poolproof_conformance.trace_format import Mode, TreeCore
from poolproof_conformance.traces import read_trace
from poolproof_spec.catalogue import PROPERTIES
from poolproof_spec.geometry import LAYOUTS, layout_name

ROOT = Path(__file__).parents[2]
FOLDER, PAGE = ROOT / "docs" / "findings", ROOT / "docs" / "findings.md"
FINDINGS = read_findings(FOLDER)
NEWEST = FINDINGS.targets[0].target
SLACK = str(Path(__file__).parent / "children" / "slack.py")
Opened = dict[tuple[str, TreeCore, Mode], tuple[Target, Adapter]]


@pytest.fixture(scope="module")
def opened() -> Iterator[Opened]:
    """A child process for each release and mode that a finding was made with."""
    ways = {
        (known.target, known.tree_core, known.mode)
        for finding in FINDINGS.findings
        for known in read_trace(FOLDER / finding.trace).expected.targets
    }
    with ExitStack() as stack:
        targets = {}
        for name, core, mode in sorted(ways):
            install_release(name)
            target = resolve_target(name, core, mode)  # type: ignore[arg-type]
            targets[name, core, mode] = (target, stack.enter_context(target.opened()))
        yield targets  # type: ignore[misc]


@pytest.mark.parametrize("finding", FINDINGS.findings, ids=lambda finding: Path(finding.trace).stem)
def test_every_trace_shows_on_each_release_what_it_foretells(finding: object, opened: Opened) -> None:
    trace = read_trace(FOLDER / finding.trace)  # type: ignore[attr-defined]
    for known in trace.expected.targets:
        target, adapter = opened[known.target, known.tree_core, known.mode]  # type: ignore[index]
        again = replay(adapter, trace, target.name, target.tree_core, target.mode)
        assert again.verdict != "unknown", again.reason
        assert again.as_expected, again.differences
        shows = finding.property in again.violated  # type: ignore[attr-defined]
        foretold = finding.shown_by.get(known.target, True)  # type: ignore[attr-defined]
        assert shows is foretold, known.target


def test_the_page_is_made_from_its_folder() -> None:
    assert PAGE.read_text() == findings_page(FOLDER, PAGE), "run `poolproof campaign findings`"
    assert {finding.trace for finding in FINDINGS.findings} | {INDEX} == {path.name for path in FOLDER.glob("*")}


def test_at_least_twelve_kinds_over_the_three_layouts_all_short() -> None:
    newest = [finding for finding in FINDINGS.findings if finding.target == NEWEST]
    assert len({(finding.property, finding.signature) for finding in newest}) == len(newest) >= 12
    assert max(finding.operations for finding in newest) <= 8
    layouts = {layout_name(read_trace(FOLDER / finding.trace).geometry) for finding in newest}
    assert layouts == set(LAYOUTS)


def test_every_cause_is_about_known_rules_and_explains_something() -> None:
    names = {rule.name for rule in PROPERTIES} | {"*"}
    used = {cause_of(finding.property, finding.signature) for finding in FINDINGS.findings}
    for cause in causes():
        assert {name for name, _ in cause.kinds} <= names
        assert cause in used, cause.id
    assert cause_of("payloads-kept", "tri | tokens | granted") is None


def test_newest_first() -> None:
    names = ["reference", "sglang==0.5.9", "sglang==0.5.23", "sglang==0.5.22"]
    assert newest_first(names) == ["sglang==0.5.23", "sglang==0.5.22", "sglang==0.5.9", "reference"]


def test_a_campaign_becomes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database, folder, page = tmp_path / "c.sqlite", tmp_path / "found", tmp_path / "found.md"
    arguments = [SLACK, "reference", "--layout", "swa2", "--jobs", "4", "--db", str(database)]
    assert run(["campaign", *arguments]) == 1
    folder.mkdir()
    (folder / "stale.json").write_text("{}")
    assert run(["campaign", "findings", str(database), "--traces", str(folder), "--markdown", str(page)]) == 0
    text = page.read_text()
    index = read_findings(folder)
    assert index.findings
    assert not (folder / "stale.json").exists()
    for finding in index.findings:
        assert finding.target == SLACK
        assert finding.shown_by == {"reference": False}
        assert f"(found/{finding.trace})" in text
    assert "reference does not show it." in text
    assert "so it fits." in text


def test_a_campaign_without_failures_has_no_findings(tmp_path: Path) -> None:
    database = tmp_path / "c.sqlite"
    assert run(["campaign", "reference", "--layout", "swa2", "--jobs", "1", "--db", str(database)]) == 0
    with Store.read(database) as store, pytest.raises(NoFindingsError, match="no kind of failure"):
        collect(store, tmp_path)
    with pytest.raises(NoFindingsError, match="no index of findings"):
        read_findings(tmp_path)
