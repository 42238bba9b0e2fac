"""The list of expected failures: what is on it is known, what is not is new, what is gone is pointed out."""

import re
from pathlib import Path

import pytest

from poolproof_conformance.errors import PoolproofError
from poolproof_conformance.reporting.expected import ExpectedFileError, ExpectedList, KnownFailure, judge, read_expected
from poolproof_conformance.reporting.rows import Cell, Gathered, Kind, Sighting, Variant
from poolproof_conformance.trace_format import Trace
from poolproof_spec.geometry import layout
from poolproof_spec.operation import Alloc
from poolproof_spec.verdict import Verdict

DOCS = Path(__file__).parents[2] / "docs"
EAGER = Variant(target="sglang==0.5.23", tree_core="rust", mode="eager")
LAZY = Variant(target="sglang==0.5.23", tree_core="rust", mode="lazy")
TRACE = Trace(
    format=1,
    name="made",
    geometry=layout("swa2", 192, FULL=32, SWA=32),
    operations=(Alloc(name="a", tokens=1),),
)
SIGNATURE = "tri | tokens | entry [] | 0 suffice"


def cell(variant: Variant = EAGER, *, operations: int = 9, verdict: Verdict = "violated", reason: str = "") -> Cell:
    return Cell(variant=variant, layout="tri", histories=3, operations=operations, verdict=verdict, reason=reason)


def kind(*variants: Variant, name: str = "complete", signature: str = SIGNATURE) -> Kind:
    sightings = tuple(Sighting(variant=variant, layout="tri") for variant in variants)
    return Kind(
        property=name, signature=signature, message="found", trace=TRACE, trace_file="made.json", sightings=sightings
    )


def known(**fields: str) -> KnownFailure:
    return KnownFailure(**{"property": "complete", "link": "https://example.org/1", **fields})


def gathered(*kinds: Kind, cells: tuple[Cell, ...] = (), complete: bool = True) -> Gathered:
    return Gathered(sources=("db",), cells=cells or (cell(),), kinds=kinds, complete=complete)


def statuses(kinds: tuple[Kind, ...], *entries: KnownFailure) -> list[bool]:
    judgement = judge(gathered(*kinds), ExpectedList(format=1, known=entries))
    return [judged.is_new for judged in judgement.kinds]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"property": "P2"},
        {"signature": SIGNATURE},
        {"signature": "tri | tokens*"},
        {"signature": "tri | tokens | entry [] | ? suffice"},
        {"target": "sglang==0.5.23"},
        {"target": "sglang>=0.5.22,<0.5.24"},
        {"tree_core": "rust", "mode": "eager", "layout": "tri"},
    ],
)
def test_covered(fields: dict[str, str]) -> None:
    assert statuses((kind(EAGER),), known(**fields)) == [False]


@pytest.mark.parametrize(
    "fields",
    [
        {"property": "preserving"},
        {"signature": "tri"},
        {"signature": "tri | tokens | entry 5 | 0 suffice"},
        {"target": "sglang>=0.5.24"},
        {"target": "reference"},
        {"mode": "lazy"},
        {"layout": "swa2"},
    ],
)
def test_not_covered(fields: dict[str, str]) -> None:
    assert statuses((kind(EAGER),), known(**fields)) == [True]


def test_a_kind_that_is_known_in_one_mode_is_new_in_the_other() -> None:
    judgement = judge(
        gathered(kind(EAGER, LAZY), cells=(cell(EAGER), cell(LAZY))),
        ExpectedList(format=1, known=(known(mode="eager"),)),
    )
    (judged,) = judgement.kinds
    assert judged.is_new
    assert [sighting.variant for sighting in judged.new_in] == [LAZY]
    assert judged.known is not None


def test_verdicts() -> None:
    nothing = ExpectedList(format=1)
    assert judge(gathered(kind(EAGER)), nothing).verdict == "violated"
    assert judge(gathered(kind(EAGER)), ExpectedList(format=1, known=(known(),))).verdict == "holds"
    assert judge(gathered(cells=(cell(verdict="holds"),)), nothing).verdict == "holds"
    doubtful = (cell(verdict="unknown", reason="timed out"),)
    assert judge(gathered(cells=doubtful), nothing).verdict == "unknown"
    assert judge(gathered(kind(EAGER), cells=doubtful), nothing).verdict == "violated"
    assert judge(gathered(cells=(cell(verdict="holds"),), complete=False), nothing).verdict == "unknown"
    assert judge(gathered(kind(EAGER), cells=doubtful), ExpectedList(format=1, known=(known(),))).verdict == "unknown"


def test_nothing_run_or_executed_is_unknown() -> None:
    assert judge(Gathered(sources=(), cells=(), kinds=()), ExpectedList(format=1)).verdict == "unknown"
    idle = gathered(cells=(cell(operations=0, verdict="holds"),))
    assert judge(idle, ExpectedList(format=1)).verdict == "unknown"


def test_fixed_is_what_was_looked_for_and_not_seen() -> None:
    entries = (known(), known(property="preserving"), known(property="P1", target="sglang==0.5.22"))
    judgement = judge(gathered(kind(EAGER)), ExpectedList(format=1, known=entries))
    assert judgement.fixed == (entries[1],)
    assert judgement.untested == (entries[2],)
    assert judgement.verdict == "holds"


def test_a_rule_that_was_not_exercised_or_a_trace_that_was_not_run_is_not_fixed() -> None:
    entries = (known(signature="V1*"), known(property="preserving", signature="V1*"), known(signature="V2"))
    ran = Cell(
        variant=EAGER,
        layout="tri",
        histories=1,
        operations=2,
        verdict="holds",
        exercised=("complete",),
        signature="V1-edge",
    )
    judgement = judge(gathered(cells=(ran,)), ExpectedList(format=1, known=entries))
    assert (judgement.fixed, judgement.untested) == ((entries[0],), entries[1:])


@pytest.mark.parametrize(
    ("cells", "complete"),
    [((cell(verdict="unknown", reason="died"),), True), ((cell(operations=0),), True), ((cell(),), False)],
)
def test_what_was_not_looked_for_to_the_end_is_not_fixed(cells: tuple[Cell, ...], complete: bool) -> None:
    judgement = judge(gathered(cells=cells, complete=complete), ExpectedList(format=1, known=(known(),)))
    assert (judgement.fixed, judgement.untested) == ((), (known(),))


def test_reads_yaml_and_json(tmp_path: Path) -> None:
    yaml, json = tmp_path / "known.yaml", tmp_path / "known.json"
    yaml.write_text("format: 1\nknown:\n  - property: P2\n    link: https://example.org/7\n    mode: lazy\n")
    json.write_text('{"format": 1, "known": [{"property": "P2", "link": "https://example.org/7", "mode": "lazy"}]}')
    assert read_expected(yaml) == read_expected(json)
    assert read_expected(json).known[0].mode == "lazy"


def test_the_list_and_the_example_in_the_docs_can_be_read(tmp_path: Path) -> None:
    assert read_expected(DOCS / "report-expected.yaml").known
    (example,) = re.findall(r"```yaml\n(format.*?)```", (DOCS / "report.md").read_text(), re.DOTALL)
    path = tmp_path / "known.yaml"
    path.write_text(example)
    assert read_expected(path).known[0].mode == "lazy"


@pytest.mark.parametrize(
    "text",
    [
        "known: []",
        "format: 2",
        "format: 1\nknown:\n  - property: P2",
        "format: 1\nknown:\n  - {property: P99, link: x}",
        "format: 1\nknown:\n  - {property: P2, link: x, layouts: tri}",
        "{",
        "- 1",
        "format: !!python/object/apply:os.system ['true']",
        "\x00",
        "[" * 5000,
    ],
)
def test_a_wrong_list_is_an_error_with_a_next_step(tmp_path: Path, text: str) -> None:
    path = tmp_path / "known.yaml"
    path.write_text(text)
    with pytest.raises(ExpectedFileError) as caught:
        read_expected(path)
    assert str(path) in caught.value.found
    assert caught.value.fix


def test_a_list_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PoolproofError):
        read_expected(tmp_path / "none.yaml")
