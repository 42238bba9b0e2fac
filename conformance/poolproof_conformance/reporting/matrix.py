"""The matrix of targets and properties: what each cell says, as a sign, in words, and as a class of style."""

from collections.abc import Sequence
from itertools import groupby
from typing import Literal

import msgspec

from poolproof_conformance.reporting.expected import Judgement
from poolproof_conformance.reporting.rows import Gathered, Variant, property_names
from poolproof_conformance.wording import plural
from poolproof_spec.catalogue import property_named

CellState = Literal["new", "known", "holds", "unknown", "unjudged"]


class MatrixCell(msgspec.Struct, frozen=True, kw_only=True):
    """One property of one variant."""

    css: CellState
    new: int
    """Kinds that are on no list."""
    known: int
    sign: str
    """Short, and not told by colour alone."""
    words: str


class MatrixRow(msgspec.Struct, frozen=True, kw_only=True):
    """One property."""

    code: str
    name: str
    cells: tuple[MatrixCell, ...]
    """In the order of the variants."""


def columns_of(gathered: Gathered) -> list[tuple[str, list[Variant]]]:
    """The variants by target."""
    return [(target, list(group)) for target, group in groupby(gathered.variants, key=lambda variant: variant.target)]


def matrix_of(gathered: Gathered, judgement: Judgement) -> list[MatrixRow]:
    """A row for each property."""
    return [
        MatrixRow(
            code=_code(name),
            name=name,
            cells=tuple(cell_of(gathered, judgement, variant, name) for variant in gathered.variants),
        )
        for name in property_names(gathered.kinds)
    ]


def cell_of(gathered: Gathered, judgement: Judgement, variant: Variant, name: str) -> MatrixCell:
    """What is known of one property on one variant."""
    new, known = counts_of(judgement, variant, name)
    if new or known:
        parts = [f"{new} new"] * bool(new) + [f"{known} known"] * bool(known)
        words = f"{plural(new + known, 'kind')} of failure: {', '.join(parts)}"
        state: CellState = "new" if new else "known"
        return MatrixCell(css=state, new=new, known=known, sign=" + ".join(parts), words=words)
    verdict = gathered.property_verdict(variant, name)
    if verdict is None:
        return MatrixCell(css="unjudged", new=0, known=0, sign="·", words=gathered.unjudged(variant, name))
    if verdict == "unknown":
        why = "; ".join(gathered.doubts(variant))
        return MatrixCell(css="unknown", new=0, known=0, sign="?", words=f"unknown: {why}")
    return MatrixCell(css="holds", new=0, known=0, sign="✓", words="holds")


def counts_of(judgement: Judgement, variant: Variant, name: str) -> tuple[int, int]:
    """(new, known) kinds of one property on one variant."""
    new = known = 0
    for judged in judgement.kinds:
        if judged.kind.property == name and _is_seen(judged.kind.sightings, variant):
            if _is_seen(judged.new_in, variant):
                new += 1
            else:
                known += 1
    return new, known


def _is_seen(sightings: Sequence[object], variant: Variant) -> bool:
    return any(getattr(sighting, "variant", None) == variant for sighting in sightings)


def _code(name: str) -> str:
    try:
        return property_named(name).code
    except KeyError:
        return ""
