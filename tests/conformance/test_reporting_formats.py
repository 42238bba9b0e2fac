"""HTML, JUnit, SARIF and Markdown: complete, well-formed, and safe whatever a name or a message holds."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as xml

import jsonschema
import pytest

from poolproof_conformance.cli.main import run
from poolproof_conformance.faulty.registry import FAULTY
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.reporting.counterexamples import Counterexample, counterexample_of
from poolproof_conformance.reporting.expected import ExpectedList, Judgement, KnownFailure, judge
from poolproof_conformance.reporting.junit import junit_xml
from poolproof_conformance.reporting.matrix import cell_of
from poolproof_conformance.reporting.rows import Cell, Gathered, Kind, Sighting, Variant
from poolproof_conformance.reporting.sarif import sarif_text
from poolproof_conformance.reporting.summary import markdown_text
from poolproof_conformance.reporting.traced import TracedRun
from poolproof_conformance.reporting.web_page import html_page
from poolproof_conformance.run import run_history
from poolproof_conformance.trace_format import Trace
from poolproof_conformance.traces import write_trace
from poolproof_spec.catalogue import PROPERTIES
from poolproof_spec.geometry import layout
from poolproof_spec.operation import Alloc, Insert

ROOT = Path(__file__).parents[2]
HOSTILE = (
    "</script></template><script>alert(1)</script><img src=x onerror=alert(1)>"
    "\"'|`[a](javascript:b)&\x00\x1b[31m\u202e{{7*7}}"
)
SCHEMA = json.loads((Path(__file__).parent / "sarif-essentials.schema.json").read_text())
EAGER = Variant(target="sglang==0.5.23", tree_core="rust", mode="eager")
LAZY = Variant(target="sglang==0.5.23", tree_core="rust", mode="lazy")
OPERATIONS = (Insert(key=(1,)), Insert(key=(2,)), Insert(key=(3,)), Alloc(name="a", tokens=2))


def material(name: str = "made", message: str = "3 evicted, 1 suffice") -> tuple[Gathered, Counterexample]:
    """One kind in one cell, one cell that holds, and the counterexample of the kind."""
    geometry = layout("swa2", 320, FULL=32, SWA=32)
    trace = Trace(
        format=1, name=name, note=name, source=name, explanation=name, geometry=geometry, operations=OPERATIONS
    )
    kind = Kind(
        property="first-sufficient",
        signature=name,
        message=message,
        trace=trace,
        trace_file=f"traces/{name}.json",
        sightings=(Sighting(variant=EAGER, layout="swa2", histories=2),),
    )
    cells = (
        Cell(
            variant=EAGER, layout="swa2", histories=5, operations=50, verdict="violated", unchecked=("recency-exact",)
        ),
        Cell(variant=LAZY, layout="swa2", histories=5, operations=50, verdict="holds"),
    )
    wrong = next(pool.pool_class for pool in FAULTY if pool.name == "empties-the-cache")
    done = run_history(ReferenceAdapter(wrong, name), geometry, OPERATIONS)
    traced = TracedRun(Path(kind.trace_file), trace, EAGER, EAGER.title, done.steps, done.verdict, done.reason)
    example = counterexample_of(traced, (kind,))
    return Gathered(sources=(name,), cells=cells, kinds=(kind,)), example


def judged(gathered: Gathered, *known: KnownFailure) -> Judgement:
    return judge(gathered, ExpectedList(format=1, known=known))


class Page(HTMLParser):
    """Tags and ids of a page, and the tags that are open."""

    VOID = frozenset({"meta", "link", "img", "br", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.unmatched: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()
        elif tag not in ("p", "li"):
            self.unmatched.append(tag)


@pytest.fixture(scope="module")
def hostile_page() -> str:
    gathered, example = material(HOSTILE, HOSTILE)
    known = KnownFailure(property="P2", link=f"javascript:{HOSTILE}", note=HOSTILE)
    return html_page(gathered, judged(gathered, known), [example], docs_url=f"https://example.org/{HOSTILE}")


def test_page_is_one_file_and_asks_for_nothing(hostile_page: str) -> None:
    page = Page(hostile_page)
    assert page.unmatched == []
    assert page.open == []
    for tag, attributes in page.tags:
        assert tag not in ("iframe", "img", "object", "embed", "base", "form") or attributes == {"method": "dialog"}
        assert "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
        assert "src" not in attributes
        if tag == "link":
            assert attributes["href"] == "data:,"
        if tag == "a":
            assert (attributes["href"] or "").startswith(("#", "https://"))
    assert [tag for tag, _ in page.tags].count("script") == 1


def test_policy_allows_the_pages_own_style_and_script_only(hostile_page: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', hostile_page)
    assert policy is not None
    for tag in ("style", "script"):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", hostile_page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src &#39;sha256-{digest}&#39;" in policy[1]
    assert policy[1].startswith("default-src &#39;none&#39;")
    assert "unsafe" not in policy[1]


def test_ids_are_unique_and_every_address_is_there(hostile_page: str) -> None:
    page = Page(hostile_page)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    slugs = {attributes["data-slug"] for tag, attributes in page.tags if tag == "template"}
    for tag, attributes in page.tags:
        address = attributes.get("href") or ""
        if tag == "a" and "/" in address and address.startswith("#"):
            assert address[1:].split("/")[0] in slugs
    labels = {attributes["aria-labelledby"] for _, attributes in page.tags if "aria-labelledby" in attributes}
    assert labels <= set(ids)


def test_every_step_has_strips_that_also_speak() -> None:
    gathered, example = material()
    text = html_page(gathered, judged(gathered), [example])
    template = text[text.index("<template") : text.index("</template>")]
    assert template.count('<article class="step"') == len(OPERATIONS)
    assert template.count('<figure class="strip">') == 2 * len(OPERATIONS) + 1
    assert template.count('role="img" aria-label="') >= template.count('<figure class="strip">')
    assert "FULL: pages [7, 8) live, cached node C (3); pages [8, 9) live, cached node B (2)" in template
    assert template.count("first divergence") == 1
    assert "why not 0: with 0 victims gone" in template


def test_known_new_fixed_and_unknown_are_told_apart_in_words() -> None:
    gathered, example = material()
    known = KnownFailure(property="P1", link="https://example.org/1")
    gone = KnownFailure(property="P2", link="https://example.org/2")
    text = html_page(gathered, judged(gathered, known, gone), [example])
    assert "Nothing new; 1 known kind of failure" in text
    assert "Take them off the list" in text
    assert '<a href="https://example.org/2"' in text
    assert "1 new kind of failure" in html_page(gathered, judged(gathered), [example])


def test_matrix_cells() -> None:
    gathered, _ = material()
    known = KnownFailure(property="P1", link="x")
    assert cell_of(gathered, judged(gathered), EAGER, "first-sufficient").sign == "1 new"
    assert cell_of(gathered, judged(gathered, known), EAGER, "first-sufficient").sign == "1 known"
    assert cell_of(gathered, judged(gathered), LAZY, "first-sufficient").css == "holds"
    assert cell_of(gathered, judged(gathered), EAGER, "recency-exact").css == "unjudged"
    doubtful = Gathered(
        sources=(),
        kinds=(),
        cells=(Cell(variant=LAZY, layout="tri", histories=1, operations=1, verdict="unknown", reason="died"),),
    )
    cell = cell_of(doubtful, judged(doubtful), LAZY, "complete")
    assert (cell.css, cell.words) == ("unknown", "unknown: died")
    idle = Cell(variant=LAZY, layout="tri", histories=1, operations=1, verdict="holds", exercised=("complete",))
    unexercised = Gathered(sources=(), kinds=(), cells=(idle,))
    assert cell_of(unexercised, judged(unexercised), LAZY, "complete").css == "holds"
    assert cell_of(unexercised, judged(unexercised), LAZY, "preserving").css == "unjudged"


def test_junit() -> None:
    gathered, _ = material()
    root = xml.fromstring(junit_xml(gathered, judged(gathered)))
    assert [root.get(name) for name in ("tests", "failures", "errors")] == [str(2 * (len(PROPERTIES) + 1)), "1", "0"]
    (failure,) = root.iter("failure")
    assert "3 evicted, 1 suffice" in (failure.get("message") or "")
    assert "traces/made.json" in (failure.text or "")
    quiet = xml.fromstring(
        junit_xml(gathered, judged(gathered, KnownFailure(property="P1", link="https://example.org/1")))
    )
    assert quiet.get("failures") == "0"
    assert "https://example.org/1" in "".join(element.text or "" for element in quiet.iter("system-out"))


def test_junit_of_doubt_is_one_error_and_no_pass() -> None:
    cell = Cell(variant=LAZY, layout="tri", histories=0, operations=0, verdict="unknown", reason="died")
    gathered = Gathered(sources=(), cells=(cell,), kinds=())
    root = xml.fromstring(junit_xml(gathered, judged(gathered)))
    assert (root.get("errors"), root.get("skipped")) == ("1", str(len(PROPERTIES)))
    holds = Cell(variant=LAZY, layout="tri", histories=1, operations=1, verdict="holds")
    cut = Gathered(sources=(), cells=(holds,), kinds=(), complete=False)
    assert xml.fromstring(junit_xml(cut, judged(cut))).get("errors") == "1"
    empty = Gathered(sources=(), cells=(), kinds=())
    assert xml.fromstring(junit_xml(empty, judged(empty))).get("errors") == "1"


def test_sarif() -> None:
    gathered, _ = material()
    gone = KnownFailure(property="P2", link="https://example.org/2")
    log = json.loads(sarif_text(gathered, judged(gathered, gone)))
    jsonschema.validate(log, SCHEMA)
    (done,) = log["runs"]
    rules = done["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [rule.code for rule in PROPERTIES]
    found, absent = done["results"]
    assert rules[found["ruleIndex"]]["id"] == found["ruleId"] == "P1"
    assert (found["level"], found["baselineState"]) == ("error", "new")
    assert found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "traces/made.json"
    assert absent["baselineState"] == "absent"
    known = KnownFailure(property="P1", link="https://example.org/1")
    (result,) = json.loads(sarif_text(gathered, judged(gathered, known)))["runs"][0]["results"]
    assert (result["level"], result["suppressions"][0]["justification"]) == ("note", "https://example.org/1")


def test_sarif_rules_lead_into_the_specification() -> None:
    gathered, _ = material()
    log = json.loads(sarif_text(gathered, judged(gathered)))
    text = (ROOT / "docs" / "spec.md").read_text()
    anchors = {
        re.sub(r"[^a-z0-9 -]", "", line.lstrip("# ").lower()).strip().replace(" ", "-")
        for line in text.splitlines()
        if line.startswith("#")
    }
    for rule in log["runs"][0]["tool"]["driver"]["rules"]:
        page, anchor = rule["helpUri"].split("#")
        assert page == "docs/spec.md"
        assert anchor in anchors
    log = json.loads(sarif_text(gathered, judged(gathered), "https://example.org/spec.md"))
    assert log["runs"][0]["tool"]["driver"]["rules"][0]["helpUri"].startswith("https://example.org/spec.md#w1")


def test_markdown() -> None:
    gathered, _ = material()
    text = markdown_text(gathered, judged(gathered))
    assert text.startswith("## 1 new kind of failure\n")
    assert "| P1 first-sufficient | **1 new** | ✓ |" in text
    assert "traces/made.json" in text


def test_hostile_text_breaks_no_format() -> None:
    gathered, _ = material(HOSTILE, HOSTILE)
    judgement = judged(gathered, KnownFailure(property="P2", link=HOSTILE))
    root = xml.fromstring(junit_xml(gathered, judgement))
    assert "alert(1)" in xml.tostring(root, encoding="unicode")
    log = json.loads(sarif_text(gathered, judgement))
    jsonschema.validate(log, SCHEMA)
    assert HOSTILE in log["runs"][0]["results"][0]["message"]["text"]
    text = markdown_text(gathered, judgement)
    assert "<script" not in re.sub(r"\\.", "", text)
    assert not re.search(r"(?<!\\)[|`\[]", next(line for line in text.splitlines() if "alert" in line))
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) == 1


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "three.json"
    geometry = layout("swa2", 320, FULL=32, SWA=32)
    write_trace(path, Trace(format=1, name="three", geometry=geometry, operations=OPERATIONS))
    return path


def test_command_writes_every_format(trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {name: tmp_path / f"out.{name}" for name in ("html", "junit", "sarif", "markdown", "json")}
    arguments = [part for name, path in files.items() for part in (f"--{name}", str(path))]
    assert run(["report", str(trace_file), *arguments]) == 0
    assert all(path.stat().st_size for path in files.values())
    assert json.loads(files["json"].read_text())["verdict"] == "holds"
    out = capsys.readouterr().out
    assert "holds: No failure was found" in out
    assert f"wrote {files['html']}" in out


def test_command_exits_1_for_a_new_kind_and_0_for_a_known_one(
    trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toy = str(Path(__file__).parent / "children" / "toy.py")
    expected, summary = tmp_path / "known.yaml", tmp_path / "report.json"
    arguments = ["report", str(trace_file), "--target", toy, "--json", str(summary)]
    assert run(arguments) == 1
    report = json.loads(summary.read_text())
    assert {row["property"]: row["status"] for row in report["kinds"]} == {"complete": "new"}
    expected.write_text("format: 1\nknown:\n  - {property: P2, link: 'https://example.org/1'}\n")
    known = run([*arguments, "--expected", str(expected)])
    report = json.loads(summary.read_text())
    assert [row["status"] for row in report["kinds"]] == ["known"]
    assert known == {"holds": 0, "unknown": 2}[report["verdict"]]
    capsys.readouterr()


def test_command_exits_2_where_something_is_unknown(
    trace_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POOLPROOF_TARGETS", str(tmp_path / "none"))
    page = tmp_path / "report.html"
    assert run(["report", str(trace_file), "--target", "sglang==0.5.23", "--html", str(page)]) == 2
    assert "poolproof targets install sglang==0.5.23" in capsys.readouterr().out
    assert (
        "The states are the reference&#39;s" in page.read_text() or "The states are the reference's" in page.read_text()
    )


def test_interrupt_leaves_the_old_report_as_it_was(
    trace_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.html"
    page.write_text("old")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("poolproof_conformance.reporting.sources.run_traces", interrupted)
    assert run(["report", str(trace_file), "--html", str(page)]) == 130
    assert page.read_text() == "old"
    assert "no report was written" in capsys.readouterr().err


def test_command_refuses_what_is_no_file_of_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.sqlite"
    other.write_bytes(b"SQLite format 3\0" + bytes(100))
    for path in (other, tmp_path / "none.json"):
        assert run(["report", str(path)]) == 2
        assert "  fix: " in capsys.readouterr().err
