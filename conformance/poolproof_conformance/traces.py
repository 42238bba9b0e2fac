"""Reading and writing traces: every wrong file ends in an error that says what is wrong and what to do."""

import json
import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import accumulate
from pathlib import Path
from typing import Any, get_args

import msgspec

from poolproof_conformance.atomic_file import write_atomically
from poolproof_conformance.errors import (
    TraceFileError,
    TraceGeometryError,
    TraceIndexError,
    TraceNotJsonError,
    TraceOperationError,
    TracePropertyError,
    TraceShapeError,
    TraceTooDeepError,
    TraceTooLargeError,
    TraceTruncatedError,
    TraceVersionError,
)
from poolproof_conformance.trace_format import FORMAT, Trace
from poolproof_spec.catalogue import PROPERTIES
from poolproof_spec.geometry import Geometry, geometry_problems
from poolproof_spec.operation import AnyOperation

LARGEST_FILE_BYTES = 5_000_000
"""No trace that a person or a shrinker writes is larger."""
DEEPEST_NESTING = 32
"""A trace has about ten levels."""
MOST_PAGES = 1_000_000
"""Pages of all members together that a replay still walks through in reasonable time."""
OPERATIONS = {str(kind.__struct_config__.tag): kind for kind in get_args(AnyOperation)}
"""Tag to type of every operation."""
FORMAT_HELP = "docs/traces.md tells the format, schema/trace-1.schema.json checks it"

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""An opening bracket is a step down (1), a closing one a step up (-1 in a signed byte)."""


def read_trace(path: Path) -> Trace:
    """The trace in a file. Raises a TraceError."""
    return parse_trace(read_bytes(path), str(path))


def read_bytes(path: Path) -> bytes:
    """The file's bytes, of a large file only as many as show that it is too large. Raises TraceFileError."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_FILE_BYTES + 1)
    except FileNotFoundError:
        raise TraceFileError(
            f"{path}: no such file", "give the path of a trace; `ls traces` shows those kept here"
        ) from None
    except OSError as error:
        raise TraceFileError(f"{path}: {error.strerror}", "give the path of a readable trace file") from None


def parse_trace(data: bytes, where: str) -> Trace:
    """The trace in `data`; `where` names its origin in errors. Raises a TraceError."""
    document = parse_document(data, where)
    _check_version(document, where)
    _check_operations(document, where)
    trace = _convert(document, where)
    check_geometry(trace.geometry, where)
    _check_expectations(trace, where)
    return trace


def parse_document(data: bytes, where: str) -> dict[str, Any]:
    """The JSON object in `data`, if it is of a size and depth that a trace may have. Raises a TraceError."""
    if len(data) > LARGEST_FILE_BYTES:
        raise TraceTooLargeError(
            f"{where}: more than {LARGEST_FILE_BYTES:,} bytes, a trace has at most that many",
            "check that this is a trace; shrink the history",
        )
    if _nesting(data) > DEEPEST_NESTING:
        raise TraceTooDeepError(
            f"{where}: nested more than {DEEPEST_NESTING} levels deep, a trace is not", f"check the file; {FORMAT_HELP}"
        )
    return _decode(data, where)


def write_trace(path: Path, trace: Trace) -> None:
    """Write the canonical text; the file is replaced as a whole or not at all. Raises OutputFileError."""
    write_atomically(path, trace_text(trace))


def trace_text(trace: Trace) -> str:
    """The canonical text: fields in the order of the format, defaults left out, one operation a line."""
    fields = {name: _line(value) for name, value in plain(trace).items()}
    geometry = plain(trace.geometry)
    members = geometry.pop("members")
    fields["geometry"] = _line(geometry)[:-1] + ', "members": ' + _list(members, "  ") + "}"
    fields["operations"] = _list(plain(trace.operations), "  ")
    if "expected" in fields:
        parts = []
        if trace.expected.outcomes:
            parts.append('    "outcomes": ' + _table(plain(trace.expected.outcomes), "    "))
        if trace.expected.targets:
            parts.append('    "targets": ' + _list(plain(trace.expected.targets), "    "))
        fields["expected"] = "{\n" + ",\n".join(parts) + "\n  }"
    return "{\n" + ",\n".join(f'  "{name}": {value}' for name, value in fields.items()) + "\n}\n"


def plain(value: Any) -> Any:
    """Structs as dicts in field order, tag first, without the fields that have their default."""
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        fields = {config.tag_field: config.tag} if config.tag_field else {}
        for field in msgspec.structs.fields(value):
            content = getattr(value, field.name)
            default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
            if content != default:
                fields[field.encode_name] = plain(content)
        return fields
    if isinstance(value, Mapping):
        return {str(key): plain(value[key]) for key in sorted(value)}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _list(items: Iterable[Any], indent: str) -> str:
    lines = [f"{indent}  {_line(item)}" for item in items]
    return "[\n" + ",\n".join(lines) + f"\n{indent}]" if lines else "[]"


def _table(items: Mapping[str, Any], indent: str) -> str:
    lines = [f"{indent}  {_line(key)}: {_line(item)}" for key, item in items.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def _nesting(data: bytes) -> int:
    """Deepest nesting of brackets outside strings; linear, since a wrong file may be anything."""
    steps = array("b", _STRING.sub(b"", data).translate(_STEPS, _NO_BRACKETS))
    return max(accumulate(steps), default=0)


def _decode(data: bytes, where: str) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if "truncated" in str(error):
            raise TraceTruncatedError(f"{where}: the JSON ends in the middle", "get the whole file again") from None
        raise TraceNotJsonError(f"{where}: not JSON: {error}", f"check the file; {FORMAT_HELP}") from None
    if not isinstance(document, dict):
        raise TraceShapeError(f"{where}: a trace is a JSON object, this is {_kind(document)}", FORMAT_HELP)
    return document


def _kind(value: Any) -> str:
    kinds = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")


def _check_version(document: dict[str, Any], where: str) -> None:
    version = document.get("format")
    if version != FORMAT or isinstance(version, bool):
        found = "has no `format`" if "format" not in document else f"has format {_line(version)[:40]}"
        raise TraceVersionError(
            f"{where}: {found}, this poolproof reads format {FORMAT}",
            f'install the poolproof that wrote it; a trace written by hand begins with "format": {FORMAT}',
        )


def _check_operations(document: dict[str, Any], where: str) -> None:
    operations = document.get("operations")
    for index, operation in enumerate(operations if isinstance(operations, list) else ()):
        name = operation.get("op") if isinstance(operation, dict) else None
        if isinstance(name, str) and name not in OPERATIONS:
            near = get_close_matches(name, OPERATIONS, 1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise TraceOperationError(
                f"{where}: operation {index}: unknown operation {name[:40]!r}",
                f"{hint}known: {', '.join(sorted(OPERATIONS))}",
            )


def _convert(document: dict[str, Any], where: str) -> Trace:
    try:
        return msgspec.convert(document, Trace, str_keys=True)
    except msgspec.ValidationError as error:
        # "Expected `int`, got `str` - at `$.operations[2].tokens`"
        found, _, path = str(error).partition(" - at ")
        place = f"at {path.strip('`')}: " if path else ""
        found = found.replace("`", "'")
        raise TraceShapeError(f"{where}: {place}{found[:1].lower()}{found[1:]}", f"correct it; {FORMAT_HELP}") from None


def check_geometry(geometry: Geometry, where: str) -> None:
    """Raises TraceGeometryError where page counts do not follow from the bytes, or are too many."""
    problems = geometry_problems(geometry)
    if problems:
        raise TraceGeometryError(
            f"{where}: geometry: {'; '.join(problems)}",
            "page_count = floor(total_bytes / page_bytes), first_page = ceil(largest page_bytes / page_bytes)",
        )
    pages = sum(member.page_count for member in geometry.members)
    if pages > MOST_PAGES:
        raise TraceGeometryError(
            f"{where}: geometry: {pages:,} pages, a replay walks through at most {MOST_PAGES:,}",
            "make total_bytes smaller or page_bytes larger",
        )


def _check_expectations(trace: Trace, where: str) -> None:
    known = [name for rule in PROPERTIES for name in (rule.name, rule.code)]
    for expectation in trace.expected.targets:
        for name in expectation.violates:
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = f"did you mean {near[0]!r}? " if near else ""
                raise TracePropertyError(
                    f"{where}: expected of {expectation.target}: unknown property {name[:40]!r}",
                    f"{hint}known: {', '.join(rule.name for rule in PROPERTIES)}",
                )
    tables = [trace.expected.outcomes, *(expectation.outcomes for expectation in trace.expected.targets)]
    indices = {index for table in tables for index in table}
    for index in sorted(indices):
        if not 0 <= index < len(trace.operations):
            raise TraceIndexError(
                f"{where}: expected outcome of operation {index}, the history has {len(trace.operations)}, from 0",
                "number the expected outcomes as the operations stand in the file, from 0",
            )
