"""A report's first lines, the same in every format: how many kinds are new, on what, and from how much."""

import json
from collections.abc import Sequence

from poolproof_conformance.reporting.expected import Judgement
from poolproof_conformance.reporting.rows import Gathered, Kind
from poolproof_conformance.wording import plural

MOST_SOURCES = 3
"""Files that are named; of more, only their number is told."""


def headline_of(judgement: Judgement) -> str:
    """The verdict in a line."""
    new, known = len(judgement.new), len(judgement.kinds) - len(judgement.new)
    if new:
        also = f", {known} known" if known else ""
        return f"{plural(new, 'new kind')} of failure{also}"
    if judgement.doubts:
        return "Unknown: not everything could be judged"
    if known:
        return f"Nothing new; {plural(known, 'known kind')} of failure"
    return "No failure was found"


def lede_of(gathered: Gathered, judgement: Judgement) -> str:
    """From what it comes, in a sentence or two."""
    histories = sum(cell.histories for cell in gathered.cells)
    operations = sum(cell.operations for cell in gathered.cells)
    targets = list(dict.fromkeys(variant.target for variant in gathered.variants))
    words = f"{_count(histories, 'history', 'histories')}, {_count(operations, 'operation', 'operations')}"
    ways = plural(len(gathered.variants), "way") + " to run them" if len(gathered.variants) > len(targets) else ""
    text = f"{words} on {_listed(targets)}{f', in {ways}' if ways else ''}. "
    text += "After each operation the target's whole state was held against the rules."
    if judgement.fixed:
        text += f" {plural(len(judgement.fixed), 'known failure')} did not show any more."
    return text


def seen_on(kind: Kind) -> str:
    """Where a kind was seen, each target once, with its variants."""
    by_target: dict[str, list[str]] = {}
    for sighting in kind.sightings:
        hows = by_target.setdefault(sighting.variant.target, [])
        if sighting.variant.how and sighting.variant.how not in hows:
            hows.append(sighting.variant.how)
    return "; ".join(f"{target} ({' / '.join(hows)})" if hows else target for target, hows in by_target.items())


def suggested_entries(judgement: Judgement) -> str:
    """The new kinds as entries for the list of expected failures, in YAML; the link is left to be filled in."""
    lines: list[str] = []
    for judged in judgement.new:
        for target in dict.fromkeys(sighting.variant.target for sighting in judged.new_in):
            lines += [
                f"  - property: {json.dumps(judged.kind.property)}",
                f"    signature: {json.dumps(judged.kind.signature)}",
                f"    target: {json.dumps(target)}",
                '    link: ""',
            ]
    return "\n".join(["format: 1", "known:", *lines]) if lines else ""


def sources_words(sources: Sequence[str]) -> str:
    """The files that a report was made from; of many the first few."""
    if len(sources) <= MOST_SOURCES:
        return ", ".join(sources)
    return f"{', '.join(sources[:MOST_SOURCES])} and {plural(len(sources) - MOST_SOURCES, 'other file')}"


def _count(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _listed(names: list[str]) -> str:
    if len(names) < 2:
        return names[0] if names else "no target"
    return f"{', '.join(names[:-1])} and {names[-1]}"
