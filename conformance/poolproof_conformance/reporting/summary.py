"""The report as Markdown: the table and the new kinds, for the summary page of a CI run."""

import re
from collections.abc import Iterator

from poolproof_conformance.reporting.expected import JudgedKind, Judgement, KnownFailure
from poolproof_conformance.reporting.matrix import matrix_of
from poolproof_conformance.reporting.overview import headline_of, lede_of, seen_on
from poolproof_conformance.reporting.rows import Gathered, operations_of

_SPECIAL = re.compile(r"([\\`*_\[\]<>#!|~&$])")
_SPACE = re.compile(r"\s+")
SIGNS = {"holds": "✓", "unknown": "**?**", "unjudged": "·"}


def markdown_text(gathered: Gathered, judgement: Judgement) -> str:
    """Properties of which something is to be told, by target; then kinds, fixed entries and doubts."""
    return "\n".join(_lines(gathered, judgement)).rstrip() + "\n"


def _lines(gathered: Gathered, judgement: Judgement) -> Iterator[str]:
    yield f"## {escaped(headline_of(judgement))}"
    yield ""
    yield escaped(lede_of(gathered, judgement))
    yield ""
    yield from _table(gathered, judgement)
    for heading, kinds in (("New kinds", judgement.new), ("Known kinds", _known(judgement))):
        if kinds:
            yield from ("", f"### {heading}", "")
            yield from (_kind_line(judged) for judged in kinds)
    if judgement.fixed:
        yield from ("", "### Not seen any more: take them off the list", "")
        yield from (_known_line(known) for known in judgement.fixed)
    if judgement.doubts:
        yield from ("", "### Unknown, so not a pass", "")
        yield from (f"- {escaped(who)}: {escaped(reason)}" for who, reason in judgement.doubts)


def _table(gathered: Gathered, judgement: Judgement) -> Iterator[str]:
    if not gathered.variants:
        return
    yield "| property | " + " | ".join(escaped(variant.title) for variant in gathered.variants) + " |"
    yield "|---|" + "---|" * len(gathered.variants)
    for row in matrix_of(gathered, judgement):
        cells = [SIGNS.get(cell.css, f"**{cell.sign}**" if cell.new else cell.sign) for cell in row.cells]
        yield f"| {escaped(f'{row.code} {row.name}'.strip())} | {' | '.join(cells)} |"
    yield ""
    yield "✓ holds, **?** unknown, · not judged or not exercised; the others are counts of kinds of failure."


def _known(judgement: Judgement) -> list[JudgedKind]:
    return [judged for judged in judgement.kinds if not judged.is_new]


def _kind_line(judged: JudgedKind) -> str:
    kind = judged.kind
    trace = f", {escaped(kind.trace_file)}" if kind.trace_file else ""
    link = f"; {escaped(judged.known.link)}" if judged.known else ""
    count = operations_of(kind)
    return (
        f"- **{escaped(kind.property)}** {escaped(kind.signature)}: {escaped(kind.message)} "
        f"({count} operation{'' if count == 1 else 's'}{trace}), on {escaped(seen_on(kind))}{link}"
    )


def _known_line(known: KnownFailure) -> str:
    return f"- **{escaped(known.property)}** {escaped(known.signature)}: {escaped(known.link)}"


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, in one line, also in a table."""
    return _SPECIAL.sub(r"\\\1", _SPACE.sub(" ", text)).replace("\x00", "\N{REPLACEMENT CHARACTER}")
