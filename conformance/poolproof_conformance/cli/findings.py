"""How a campaign is told: the verdict, each violated property with its smallest history, and what is not known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from poolproof_conformance.cli.terminal import coloured
from poolproof_conformance.wording import plural
from poolproof_spec.catalogue import property_named

if TYPE_CHECKING:
    from poolproof_conformance.campaign import Campaign

MOST_DOUBTS_SHOWN = 5
LEVELS = {None: "no level", 0: "level 0", 1: "level 1", 2: "level 2"}


def campaign_lines(campaign: Campaign) -> Iterator[str]:
    """The whole result, a line for each thing."""
    row = campaign.row
    yield (
        f"{campaign.title}: {coloured(row.verdict)}, {LEVELS[row.level]}; "
        f"{plural(row.traces, 'trace')}, {plural(row.operations, 'operation')}"
    )
    for found in campaign.failures:
        rule = property_named(found.property)
        yield f"  {rule.code} {found.property}: {plural(found.histories, 'trace')}; {rule.claim}"
        yield f"    smallest, {plural(found.operations, 'operation')}: {found.message}"
        yield f"      {found.arena}"
        yield from (f"      {call}" for call in found.calls)
        yield f"    {found.command}"
    doubts = sorted(campaign.doubts.items(), key=lambda doubt: -doubt[1])
    for reason, count in doubts[:MOST_DOUBTS_SHOWN]:
        yield f"  unknown, {plural(count, 'trace')}: {reason.splitlines()[0]}"
    if len(doubts) > MOST_DOUBTS_SHOWN:
        yield f"  ... and {plural(len(doubts) - MOST_DOUBTS_SHOWN, 'other reason')}"
    if campaign.unbuilt:
        yield f"  not counted: {plural(campaign.unbuilt, 'trace')} with a geometry that this target does not build"
    if campaign.unchecked:
        yield f"  not judged, as the target declares: {', '.join(campaign.unchecked)}"
    if campaign.not_exercised:
        yield f"  never exercised, so nothing is said of: {', '.join(campaign.not_exercised)}"
