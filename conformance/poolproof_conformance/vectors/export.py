"""Make the files: all cases of a kind, their ids, their flags' notes, and the schema beside them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from poolproof_conformance.atomic_file import write_atomically
from poolproof_conformance.vectors.counterexamples import counterexample_groups
from poolproof_conformance.vectors.demand_cases import demand_groups
from poolproof_conformance.vectors.fits_cases import fits_groups
from poolproof_conformance.vectors.flags import notes_of
from poolproof_conformance.vectors.reserve_cases import reserve_groups
from poolproof_conformance.vectors.vector_files import SCHEMA_NAME, cases_of, vector_text
from poolproof_conformance.vectors.vector_format import AnyVectorFile, DemandFile, FitsFile, ReserveFile, schema

COMMON = (
    "Members of a chain are listed low bytes to high. What a case leaves out is zero, false, null, or empty.",
    "A page p of a member occupies bytes [p * page_bytes, (p + 1) * page_bytes); those below first_page are not used.",
)
STATE = (
    "`operations` lead the reference from an empty pool to `state`. A target whose pages come to lie elsewhere is "
    "asked another question wherever pages are pinned.",
    "members[].bindings: [id, page]; pending: [page, event]. entries: nodes of the prefix tree, `ids` those of its own "
    "last pages. flights: what a forward in flight reads and writes, [member, id].",
)
HEADERS: dict[str, tuple[str, ...]] = {
    "demand": (
        *COMMON,
        "Each case: after `setup`, from an empty pool of the group's geometry, `operation` demands exactly `pages`.",
        "Token ids are demanded as FULL pages, state ids as state pages.",
    ),
    "fits": (
        *COMMON,
        "Each case: do windows exist for what each member must hold? `needs` has one item for each member.",
        "`windows` are the least ones; of a case that does not fit, `fails_at` is the lowest member that fails and "
        "`needed_end` the end of its least window, whether it passes the member's end or lies above a pinned page.",
    ),
    "reserve": (*COMMON, *STATE, "Each case: `operation` in `state` comes to `result`, with exactly these `steps`."),
    "counterexamples": (
        *COMMON,
        *STATE,
        "Each case: `operation` in `state` comes to `result`; each of `wrong` is a known answer that departs from it.",
    ),
}


def _numbered(groups: Iterable[Any]) -> tuple[Any, ...]:
    count, made = 0, []
    for group in groups:
        tests = tuple(replace(case, tcId=count + number) for number, case in enumerate(group.tests, start=1))
        count += len(tests)
        made.append(replace(group, tests=tests))
    return tuple(made)


def _file(kind: type[Any], name: str, title: str, section: str, groups: Iterable[Any]) -> AnyVectorFile:
    numbered = _numbered(groups)
    draft: AnyVectorFile = kind(
        title=title,
        source=f"docs/spec.md#{section}",
        header=HEADERS[name],
        notes={},
        numberOfTests=0,
        testGroups=numbered,
    )
    cases = cases_of(draft)
    return replace(draft, numberOfTests=len(cases), notes=notes_of(flag for case in cases for flag in case.flags))


def vector_files() -> dict[str, AnyVectorFile]:
    """Every file by its name without `.json`; the same on each call."""
    return {
        "demand": _file(DemandFile, "demand", "Page and id counts of each operation", "demand", demand_groups()),
        "fits": _file(FitsFile, "fits", "What fits: windows and their absence", "d-sweep", fits_groups()),
        "reserve": _file(
            ReserveFile,
            "reserve",
            "Allocations under pressure: least victims, or why not",
            "contract",
            reserve_groups(),
        ),
        "counterexamples": _file(
            ReserveFile,
            "counterexamples",
            "Allocations under pressure that a known target gets wrong",
            "policies",
            counterexample_groups(),
        ),
    }


def schema_text() -> str:
    """The text of the schema beside the files."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def export(folder: Path) -> dict[str, int]:
    """Write all files; name of each and its number of cases. Raises OutputFileError."""
    texts = {name: (vector_text(file), file.numberOfTests) for name, file in vector_files().items()}
    for name, (text, _) in texts.items():
        write_atomically(folder / f"{name}.json", text)
    write_atomically(folder / SCHEMA_NAME, schema_text())
    return {name: count for name, (_, count) in texts.items()}
