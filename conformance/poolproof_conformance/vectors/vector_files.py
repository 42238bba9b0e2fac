"""The files of the vectors: their text, and reading them with errors that say what to do."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from poolproof_conformance.traces import plain
from poolproof_conformance.vectors.checksum import checksum
from poolproof_conformance.vectors.vector_errors import (
    VectorChecksumError,
    VectorFolderError,
    VectorShapeError,
    VectorVersionError,
)
from poolproof_conformance.vectors.vector_format import FORMAT, AnyVectorFile

NAMES = ("demand", "fits", "reserve", "counterexamples")
"""Files of an export, without `.json`."""
HEAD = ("title", "source", "header", "notes", "numberOfTests", "testGroups")
"""Fields of a file in the order in which they are written, after its kind and format; the checksum comes last."""
SCHEMA_NAME = "schema.json"
FIX = "poolproof vectors export DIR"


def vector_text(file: AnyVectorFile) -> str:
    """The canonical text: one case a line, defaults left out, the checksum at the end."""
    told = plain(file)
    document = {"kind": told["kind"], "format": FORMAT, **{name: told[name] for name in HEAD}}
    written = {
        **{name: _line(value) for name, value in document.items()},
        "header": _lines(document["header"]),
        "notes": _table(document["notes"]),
        "testGroups": "[\n" + ",\n".join(_group(group) for group in document["testGroups"]) + "\n  ]",
        "checksum": str(checksum(document)),
    }
    return "{\n" + ",\n".join(f'  "{name}": {text}' for name, text in written.items()) + "\n}\n"


def _group(group: dict[str, Any]) -> str:
    tests = ",\n".join(f"      {_line(test)}" for test in group["tests"])
    head = "".join(f'"{name}": {_line(value)}, ' for name, value in group.items() if name != "tests")
    return "    {" + head + '"tests": [\n' + tests + "\n    ]}"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _lines(items: Iterable[str]) -> str:
    return "[\n" + ",\n".join(f"    {_line(item)}" for item in items) + "\n  ]"


def _table(items: dict[str, Any]) -> str:
    return "{\n" + ",\n".join(f"    {_line(name)}: {_line(item)}" for name, item in items.items()) + "\n  }"


def vector_paths(folder: Path) -> list[Path]:
    """The files of an export that are there. Raises VectorFolderError where there is none."""
    found = [path for name in NAMES if (path := folder / f"{name}.json").is_file()]
    if not found:
        what = "no such folder" if not folder.is_dir() else f"none of {', '.join(f'{name}.json' for name in NAMES)}"
        raise VectorFolderError(f"{folder}: {what}", f"poolproof vectors export {folder}")
    return found


def read_vectors(path: Path, *, check_sum: bool = True) -> AnyVectorFile:
    """The file, read as its types say. Raises a VectorError."""
    document = _document(path)
    version = document.get("format")
    if version != FORMAT or isinstance(version, bool):
        raise VectorVersionError(f"{path}: format {version!r}, this poolproof reads format {FORMAT}", FIX)
    if check_sum:
        found, told = checksum(document), document.get("checksum")
        if found != told:
            raise VectorChecksumError(
                f"{path}: its checksum is {told}, its content has {found}: it was changed after the export", FIX
            )
    try:
        file: AnyVectorFile = msgspec.convert(document, AnyVectorFile)
        return file
    except msgspec.ValidationError as error:
        raise VectorShapeError(f"{path}: {error}", f"see {SCHEMA_NAME} beside it, or {FIX}") from None


def _document(path: Path) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise VectorFolderError(f"{path}: {error.strerror}", FIX) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise VectorShapeError(f"{path}: not JSON: {error}", FIX) from None
    if not isinstance(document, dict):
        raise VectorShapeError(f"{path}: a file of vectors is a JSON object", FIX)
    return document


def cases_of(file: AnyVectorFile) -> Sequence[Any]:
    """All cases, in order."""
    return [case for group in file.testGroups for case in group.tests]
