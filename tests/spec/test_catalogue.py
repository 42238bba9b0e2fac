"""The table: names, sources, and that random histories of the reference exercise every rule."""

import re
from collections import Counter
from pathlib import Path

import pytest

from poolproof_conformance.conform import draw_histories
from poolproof_conformance.generator import History
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.run import run_history
from poolproof_spec.catalogue import CONTRACT, INVARIANTS, PROPERTIES, findings, property_named
from poolproof_spec.outcome import Granted
from poolproof_spec.transition import Transition

from .builders import alloc, entry, hold, ids, key, pool, step, swa2, went

ROOT = Path(__file__).parents[2]
CODES = "W1 W2 W3 W4 W5 W6 P1 P1+ P2 P3 P4 P5 P6 P7 P8 P9 P10 P11 P12 G1 G2 G3 G4 G5 G6".split()  # noqa: SIM905


def anchors(markdown: str) -> Counter[str]:
    """The anchor that GitHub gives each heading: lower case, signs dropped, blanks become hyphens."""
    headings = re.findall(r"^#+ (.+?)\s*$", markdown, flags=re.MULTILINE)
    return Counter(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)


def test_anchors_are_made_as_github_makes_them() -> None:
    assert anchors("# The `one`\n\n### P1+ irredundant\ntext # no\n") == Counter(["the-one", "p1-irredundant"])


ANCHORS = anchors((ROOT / "docs" / "spec.md").read_text(encoding="utf-8"))


def test_codes_and_names_are_complete_and_unique() -> None:
    assert [rule.code for rule in PROPERTIES] == CODES
    assert INVARIANTS + CONTRACT == PROPERTIES
    assert len({rule.name for rule in PROPERTIES}) == len(PROPERTIES)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name) for rule in PROPERTIES)
    assert all(rule.claim.endswith(".") for rule in PROPERTIES)


def test_levels_are_those_of_the_contract() -> None:
    level_1 = {"P1", "P2", "P3", "P4", "P5", "P10", "P11"}
    level_2 = {"P1+", "P12", "G6"}
    assert {rule.code: rule.level for rule in PROPERTIES} == {
        code: 2 if code in level_2 else 1 if code in level_1 else 0 for code in CODES
    }


@pytest.mark.parametrize("rule", PROPERTIES, ids=lambda rule: rule.code)
def test_every_source_is_a_heading(rule: object) -> None:
    source: str = rule.source  # type: ignore[attr-defined]
    page, _, anchor = source.partition("#")
    assert page == "docs/spec.md"
    assert ANCHORS[anchor] == 1, anchor


def test_every_citation_in_the_code_is_a_heading() -> None:
    cited = {
        (path.name, anchor)
        for package in ("spec", "reference", "fast", "conformance")
        for path in (ROOT / package).rglob("*.py")
        for anchor in re.findall(r"docs/spec\.md#([a-z0-9-]+)", path.read_text(encoding="utf-8"))
    }
    assert len(cited) > 10
    assert {(name, anchor) for name, anchor in cited if anchor not in ANCHORS} == set()


def test_a_rule_is_found_by_code_and_by_name() -> None:
    assert property_named("P1+") is property_named("irredundant")
    with pytest.raises(KeyError, match=r"no property 'first-suficient'; near: \['first-sufficient'"):
        property_named("first-suficient")
    with pytest.raises(KeyError, match=r"near: \['pages-in-range', 'extents-ordered'.*'recency-exact'\]"):
        property_named("?")


def test_findings_are_those_of_the_asked_level() -> None:
    before = pool(swa2(4), entry(key(1), [1], last_use=1), entry(key(2), [2], last_use=2))
    after = pool(swa2(4), holds=[hold("r", [1])])
    pages = (("FULL", ids(1)[0]), ("SWA", ids(1)[0]))
    t = went(before, alloc(1), Granted(steps=(step("leaf", 1), step("leaf", 2)), pages=pages), after)
    assert set(findings(t)) == {"first-sufficient", "irredundant", "within-quota"}
    assert set(findings(t, level=1)) == {"first-sufficient", "within-quota"}
    assert findings(t, level=0) == {}


def test_random_histories_of_the_reference_exercise_every_rule_and_break_none() -> None:
    """Else `holds` would say nothing of a rule."""
    exercised: Counter[str] = Counter()
    runs: Counter[str] = Counter()

    def witness(transition: Transition) -> None:
        exercised.update(rule.name for rule in PROPERTIES if rule.witness(transition))

    def judge(history: History) -> None:
        run = run_history(ReferenceAdapter(), *history, on_transition=witness)
        assert not run.findings, (history, run.findings)
        runs[run.verdict] += 1

    draw_histories(judge, traces=1500, seed_number=1)
    assert runs == {"holds": 1500}
    assert {rule.name: exercised[rule.name] for rule in PROPERTIES if exercised[rule.name] < 20} == {}
