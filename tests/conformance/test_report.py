"""The JSON that others rely on: field names as published, levels and merged rows as defined."""

import json

import msgspec
import pytest

from poolproof_conformance.check import SeedRow, report_of
from poolproof_conformance.report import AgreementRow, ConformanceRow, ViolationRow, conformance_level, merged
from poolproof_conformance.seed_cases import SeedResult
from poolproof_conformance.target_names import Target
from poolproof_spec.verdict import Verdict

REFERENCE = ConformanceRow(target="reference", traces=10, operations=90, level=2, verdict="holds", violations=())
AGREEMENT = AgreementRow(name="sweep-is-definition", states=5, verdict="holds")


def release(*violations: ViolationRow, verdict: Verdict = "violated") -> ConformanceRow:
    return ConformanceRow(
        target="sglang==0.5.23", traces=5, operations=50, level=0, verdict=verdict, violations=violations
    )


def violation(name: str, operations: int) -> ViolationRow:
    return ViolationRow(property=name, trace_file=f"{name}-{operations}.json", operations=operations)


def row(*granted_and_evicted: tuple[bool | None, int], target: str = "reference") -> SeedRow:
    cases = ("fullswa-6", "tri-4", "tri-200")
    results = (SeedResult(case, *figures) for case, figures in zip(cases, granted_and_evicted, strict=True))
    return SeedRow(Target(target), tuple(results))


SINCE = ((True, 3), (True, 1), (False, 0))
BEFORE = ((True, 5), (False, 0), (False, 96))


def test_names_of_the_fields() -> None:
    report = report_of([row(*SINCE)], (AGREEMENT,), [REFERENCE], [release(violation("complete", 3))])
    document = json.loads(msgspec.json.encode(report))
    assert list(document) == ["verdict", "seed_cases", "agreements", "conformance"]
    assert document["seed_cases"][0] == {
        "target": "reference",
        "tree_core": None,
        "mode": None,
        "case": "fullswa-6",
        "granted": True,
        "evicted_tokens": 3,
    }
    assert document["agreements"] == [{"name": "sweep-is-definition", "states": 5, "verdict": "holds"}]
    assert list(document["conformance"][1]) == ["target", "traces", "operations", "level", "verdict", "violations"]
    assert document["conformance"][1]["violations"] == [
        {"property": "complete", "trace_file": "complete-3.json", "operations": 3}
    ]


def test_a_releases_violations_do_not_fail_the_check() -> None:
    assert report_of([row(*SINCE)], (AGREEMENT,), [REFERENCE], [release(violation("complete", 3))]).verdict == "holds"


@pytest.mark.parametrize(
    ("seed_row", "agreements", "reference", "verdict"),
    [
        (row(*BEFORE, target="sglang==0.5.22"), (AGREEMENT,), REFERENCE, "holds"),
        (row(*BEFORE), (AGREEMENT,), REFERENCE, "violated"),
        (row((None, 0), *SINCE[1:]), (AGREEMENT,), REFERENCE, "unknown"),
        (row(*SINCE), (), REFERENCE, "unknown"),
        (row(*SINCE), (msgspec.structs.replace(AGREEMENT, verdict="violated"),), REFERENCE, "violated"),
        (row(*SINCE), (AGREEMENT,), msgspec.structs.replace(REFERENCE, verdict="unknown"), "unknown"),
        (row(*SINCE), (AGREEMENT,), msgspec.structs.replace(REFERENCE, verdict="violated"), "violated"),
    ],
)
def test_what_decides_the_check(
    seed_row: SeedRow, agreements: tuple[AgreementRow, ...], reference: ConformanceRow, verdict: str
) -> None:
    assert report_of([seed_row], agreements, [reference], []).verdict == verdict


def test_no_seed_row_is_unknown() -> None:
    assert report_of([], (AGREEMENT,), [REFERENCE], []).verdict == "unknown"


def test_merged_rows_keep_the_smallest_history_of_each_violation() -> None:
    one = release(violation("complete", 5), violation("irredundant", 2))
    other = release(violation("complete", 3))
    both = merged([one, other])
    assert (both.traces, both.operations, both.verdict) == (10, 100, "violated")
    assert both.violations == (violation("complete", 3), violation("irredundant", 2))
    assert both.level == 0
    assert merged([REFERENCE, msgspec.structs.replace(REFERENCE, verdict="unknown", level=None)]).level is None


def test_levels() -> None:
    assert conformance_level([], "holds") == 2
    assert conformance_level(["irredundant"], "violated") == 1
    assert conformance_level(["irredundant", "complete"], "violated") == 0
    assert conformance_level(["complete", "locks-kept"], "violated") is None
    assert conformance_level([], "unknown") is None


def test_a_release_that_could_not_be_judged_leaves_the_check_unknown() -> None:
    silent = msgspec.structs.replace(release(), verdict="unknown", operations=0)
    judged = release(violation("complete", 3))
    assert report_of([row(*SINCE)], (AGREEMENT,), [REFERENCE], [judged, silent]).verdict == "unknown"
    failing = msgspec.structs.replace(REFERENCE, verdict="violated")
    assert report_of([row(*SINCE)], (AGREEMENT,), [failing], [silent]).verdict == "violated"
