"""Traces: what is written is read back, the schema agrees with the reader, and each wrong file has its own error."""

import json
import time
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolproof_conformance import errors
from poolproof_conformance.trace_format import Expected, ExpectedOutcome, TargetExpectation, Trace
from poolproof_conformance.trace_schema import schema_text, trace_schema
from poolproof_conformance.traces import OPERATIONS, parse_trace, read_trace, trace_text, write_trace
from poolproof_spec.geometry import layout
from poolproof_spec.operation import Alloc, Insert, LockPrefix
from poolproof_spec.outcome import Step

ROOT = Path(__file__).parents[2]
GEOMETRY = layout("tri", 6784, STATE=48, SWA=32, FULL=32)
SCHEMA = jsonschema.Draft202012Validator(trace_schema())
TRACE = Trace(
    format=1,
    name="V1-float-edge",
    source="a case of the specification",
    note="a free page at the float's edge “counts” as occupied",
    mode="eager",
    geometry=GEOMETRY,
    operations=(Insert(key=(1, 2, 3), state=True), LockPrefix(name="a", key=(1,)), Alloc(name="b", tokens=5)),
    expected=Expected(
        outcomes={2: ExpectedOutcome(result="granted", steps=(Step(kind="leaf", key=(1, 2, 3)),), evicted_pages=1)},
        targets=(
            TargetExpectation(
                target="sglang==0.5.23",
                outcomes={2: ExpectedOutcome(result="granted", evicted_pages=3)},
                violates=("first-sufficient",),
            ),
        ),
    ),
)


def small(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a field of an operation."""
    kind = getattr(kind, "__supertype__", kind)
    if kind is int:
        return st.integers(-3, 2**40)
    if kind is bool:
        return st.booleans()
    if kind is str:
        return st.text(max_size=4)
    return st.lists(small(kind.__args__[0]), max_size=3).map(tuple)


def operations() -> st.SearchStrategy[Any]:
    return st.one_of(
        *(
            st.builds(kind, **{field.name: small(field.type) for field in msgspec.structs.fields(kind)})
            for kind in OPERATIONS.values()
        )
    )


@given(st.lists(operations(), max_size=6))
def test_what_is_written_is_read_back_and_fits_the_schema(history: list[Any]) -> None:
    trace = msgspec.structs.replace(TRACE, operations=tuple(history), expected=Expected())
    text = trace_text(trace)
    assert parse_trace(text.encode(), "here") == trace
    SCHEMA.validate(json.loads(text))


def test_text_is_canonical_with_one_operation_a_line(tmp_path: Path) -> None:
    write_trace(tmp_path / "new" / "trace.json", TRACE)
    text = (tmp_path / "new" / "trace.json").read_text()
    assert read_trace(tmp_path / "new" / "trace.json") == TRACE
    assert text == trace_text(parse_trace(text.encode(), "here"))
    assert text.endswith("}\n")
    assert '    {"op": "alloc", "name": "b", "tokens": 5}\n' in text
    SCHEMA.validate(json.loads(text))
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["trace.json"]


def test_committed_schema_is_fresh() -> None:
    committed = (ROOT / "schema" / "trace-1.schema.json").read_text()
    fix = "python -m poolproof_conformance.trace_schema > schema/trace-1.schema.json"
    assert committed == schema_text(), fix
    jsonschema.Draft202012Validator.check_schema(trace_schema())


def edited(**changes: Any) -> bytes:
    return json.dumps({**json.loads(trace_text(TRACE)), **changes}).encode()


def with_member(**changes: Any) -> bytes:
    document = json.loads(trace_text(TRACE))
    document["geometry"]["members"][0].update(changes)
    return json.dumps(document).encode()


WRONG = {
    "empty": (b"", errors.TraceTruncatedError, "ends in the middle"),
    "truncated": (trace_text(TRACE).encode()[:-40], errors.TraceTruncatedError, "ends in the middle"),
    "no JSON": (b"format: 1", errors.TraceNotJsonError, "not JSON"),
    "no UTF-8": (b'{"format": 1, "name": "\xff\xfe"}', errors.TraceNotJsonError, "not JSON"),
    "an array": (b"[1, 2]", errors.TraceShapeError, "a JSON object, this is an array"),
    "no version": (b"{}", errors.TraceVersionError, "has no `format`"),
    "another version": (edited(format=2), errors.TraceVersionError, "has format 2, this poolproof reads format 1"),
    "version true": (edited(format=True), errors.TraceVersionError, "has format true"),
    "operation": (edited(operations=[{"op": "aloc"}]), errors.TraceOperationError, "unknown operation 'aloc'"),
    "operation no object": (edited(operations=[3]), errors.TraceShapeError, r"\$.operations\[0\]"),
    "operation unnamed": (edited(operations=[{"key": [1]}]), errors.TraceShapeError, "missing required field 'op'"),
    "unknown field": (edited(colour="red"), errors.TraceShapeError, "unknown field 'colour'"),
    "missing field": (b'{"format": 1, "name": "x"}', errors.TraceShapeError, "missing required field 'geometry'"),
    "wrong type": (
        edited(operations=[{"op": "alloc", "name": "a", "tokens": "5"}]),
        errors.TraceShapeError,
        r"at \$.operations\[0\].tokens: expected 'int', got 'str'",
    ),
    "page count": (
        with_member(page_count=140),
        errors.TraceGeometryError,
        r"STATE: page_count 140, floor\(total_bytes / page_bytes\) is 141",
    ),
    "first page": (with_member(first_page=0), errors.TraceGeometryError, "STATE: first_page 0"),
    "page of no bytes": (with_member(page_bytes=0), errors.TraceGeometryError, "page_bytes must be at least 1"),
    "huge arena": (
        edited(geometry=msgspec.to_builtins(layout("swa2", 2**40, FULL=32, SWA=32))),
        errors.TraceGeometryError,
        "walks through at most",
    ),
    "expected index": (
        edited(expected={"outcomes": {"3": {"result": "done"}}}),
        errors.TraceIndexError,
        "operation 3, the history has 3",
    ),
    "expected property": (
        edited(expected={"targets": [{"target": "reference", "violates": ["first-suficient"]}]}),
        errors.TracePropertyError,
        "unknown property 'first-suficient'",
    ),
    "ten megabytes of nesting": (b"[" * 10_000_000, errors.TraceTooLargeError, "more than 5,000,000 bytes"),
    "deep": (b'{"format":' * 400_000, errors.TraceTooDeepError, "nested more than 32 levels"),
    "deep behind a string": (b'{"a": "]]\\"]]", "b": ' + b"[" * 40, errors.TraceTooDeepError, "nested more than"),
    "an endless string": (b'{"a": "' + b'\\"' * 2_400_000, errors.TraceTruncatedError, "ends in the middle"),
    "many brackets": (b"[" + b"[]," * 1_600_000, errors.TraceTruncatedError, "ends in the middle"),
}
"""What is wrong with a file: its bytes, the error, and what its one line says."""


@pytest.mark.parametrize(("data", "kind", "found"), WRONG.values(), ids=list(WRONG))
def test_wrong_file_has_its_own_error(data: bytes, kind: type[errors.TraceError], found: str) -> None:
    started = time.process_time()
    with pytest.raises(kind, match=found) as caught:
        parse_trace(data, "traces/x.json")
    assert time.process_time() - started < 5
    assert type(caught.value) is kind
    for line in (caught.value.found, caught.value.fix):
        assert line
        assert "\n" not in line
    assert caught.value.found.startswith("traces/x.json: ")


def test_nearest_operation_is_suggested() -> None:
    with pytest.raises(errors.TraceOperationError) as caught:
        parse_trace(edited(operations=[{"op": "extend_tial"}]), "x")
    assert caught.value.fix.startswith("did you mean 'extend_tail'? known: alloc, alloc_states, capacity, ")


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(errors.TraceFileError, match="no such file"):
        read_trace(tmp_path / "none.json")
    with pytest.raises(errors.TraceFileError, match="directory"):
        read_trace(tmp_path)


def test_unwritable_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.OutputFileError, match="cannot be written"):
        write_trace(tmp_path / "file" / "trace.json", TRACE)


@pytest.mark.parametrize(
    ("pattern", "target", "about"),
    [
        ("reference", "reference", True),
        ("reference", "sglang==0.5.23", False),
        ("sglang==0.5.23", "sglang==0.5.23", True),
        ("sglang==0.5.23", "sglang==0.5.22", False),
        ("sglang>=0.5.22,<0.5.24", "sglang==0.5.23", True),
        ("sglang", "sglang==0.5.23", True),
        ("sglang", "fast", False),
        ("./my-adapter", "./my-adapter", True),
        ("./my-adapter", "sglang==0.5.23", False),
    ],
)
def test_expectation_is_about_a_target(pattern: str, target: str, about: bool) -> None:
    assert TargetExpectation(target=pattern).is_about(target, "rust", "lazy") == about


def test_expectation_of_a_tree_core_and_a_mode() -> None:
    rust = TargetExpectation(target="sglang", tree_core="rust", mode="lazy")
    assert rust.is_about("sglang==0.5.23", "rust", "lazy")
    assert not rust.is_about("sglang==0.5.23", "python", "lazy")
    assert not rust.is_about("sglang==0.5.23", "rust", "eager")


def test_known_departures_replace_the_models_outcomes() -> None:
    known = TRACE.expected.of("sglang==0.5.23", "rust", "eager")
    assert known.outcomes[2].evicted_pages == 3
    assert known.violates == ("first-sufficient",)
    assert TRACE.expected.of("reference", None, None).outcomes == TRACE.expected.outcomes
    assert TRACE.expected.of("sglang==0.5.24", "rust", "eager").violates == ()
