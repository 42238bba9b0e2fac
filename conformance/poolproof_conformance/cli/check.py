"""`poolproof check`: the main job, and its report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from poolproof_conformance.cli.findings import campaign_lines
from poolproof_conformance.cli.options import out_option, seed_option
from poolproof_conformance.cli.terminal import (
    EXIT_CODES,
    EXIT_INTERRUPTED,
    coloured,
    json_option,
    note,
    progress,
    say,
    write_json,
)
from poolproof_conformance.target_names import BUNDLED_TARGETS
from poolproof_conformance.targets import KNOWN_RELEASES

if TYPE_CHECKING:
    from poolproof_conformance.campaign import Campaign
    from poolproof_conformance.check import Plan, SecondCore, SeedRow
    from poolproof_conformance.report import AgreementRow, CheckReport, ConformanceRow

CASE_WIDTH = 20


@click.command(
    epilog="Exit codes: 0 our pools, the agreements and the seed's figures hold; 1 one does not; 2 unknown. "
    "What a released engine violates is reported and does not count; one that could not be judged is unknown."
)
@click.option("--traces", type=click.IntRange(min=1), default=10_000, show_default=True, help="On each of our pools.")
@click.option(
    "--release-traces", type=click.IntRange(min=1), default=200, show_default=True, help="On each release and mode."
)
@click.option(
    "--release", "releases", multiple=True, metavar="TARGET", help=f"[default: {' and '.join(KNOWN_RELEASES)}]"
)
@seed_option
@out_option
@json_option
def check(
    traces: int, release_traces: int, releases: tuple[str, ...], seed: int, folder: Path, json_path: Path | None
) -> int:
    """Hold the bundled pools, reference and fast, and released engines against the model.

    Prints the seed's table, the agreements, and for each target what it violates, with a minimal trace.

    \b
    Examples:
      poolproof check
      poolproof check --traces 500 --release sglang==0.5.23 --json check.json
    """
    from poolproof_conformance.check import Plan, SecondCore  # Hypothesis takes its time to import.

    plan = Plan(releases or KNOWN_RELEASES, traces, release_traces, seed, folder)
    plan.seed_targets()  # A release that is not installed must not cost a half run.
    second = SecondCore(plan)
    try:
        report = _run(plan, second)
    except KeyboardInterrupt:
        note("interrupted: what is printed above is complete, the rest is unknown; no JSON written.")
        return EXIT_INTERRUPTED
    finally:
        second.close()
    say()
    say(f"check: {coloured(report.verdict)}")
    write_json(json_path, report)
    return EXIT_CODES[report.verdict]


def _run(plan: Plan, second: SecondCore) -> CheckReport:
    from poolproof_conformance.check import release_campaigns, report_of, seed_rows

    table: list[SeedRow] = []
    for row in seed_rows(plan):
        if not table:
            say("seed's table: granted or rejected, and cached tokens evicted")
            _tell_header(row)
        table.append(row)
        _tell_seed_row(row)
    releases = []
    with progress("released engines", len(plan.conformance_targets())) as told:
        for campaign in release_campaigns(plan):
            releases.append(campaign.row)
            _tell_campaign(campaign)
            told(len(releases))
    say()
    agreements = second.agreements()
    _tell_agreements(agreements)
    ours = [_bundled(name, plan, second) for name in BUNDLED_TARGETS]
    return report_of(table, agreements, ours, releases)


def _bundled(name: str, plan: Plan, second: SecondCore) -> ConformanceRow:
    """The chunks as one row; what a rule was never asked in any chunk is told."""
    from poolproof_conformance.report import merged

    campaigns = []
    with progress(name, plan.traces) as told:
        for _ in plan.chunks():
            campaigns.append(second.campaign())
            told(sum(campaign.row.traces for campaign in campaigns))
    row = merged([campaign.row for campaign in campaigns])
    silent = set.intersection(*(set(campaign.not_exercised) for campaign in campaigns))
    whole = campaigns[0].__class__(
        title=name,
        row=row,
        failures=tuple(failure for campaign in campaigns for failure in campaign.failures),
        doubts={reason: count for campaign in campaigns for reason, count in campaign.doubts.items()},
        unbuilt=sum(campaign.unbuilt for campaign in campaigns),
        not_exercised=tuple(rule for rule in campaigns[0].not_exercised if rule in silent),
    )
    _tell_campaign(whole)
    return row


def _tell_header(row: SeedRow) -> None:
    cases = "".join(f"{result.case:{CASE_WIDTH}}" for result in row.results)
    say(f"  {'target':16}{'tree core':11}{'mode':7}{cases}".rstrip())


def _tell_seed_row(row: SeedRow) -> None:
    target = row.target
    cells = "".join(f"{_cell(result.granted, result.evicted_tokens):{CASE_WIDTH}}" for result in row.results)
    line = f"  {target.name:16}{target.tree_core or '-':11}{target.mode or '-':7}{cells}".rstrip()
    say(line if row.verdict == "holds" else f"{line}  {coloured(row.verdict)}: not the known figures")
    for result in row.results:
        if result.reason:
            say(f"    {result.case}: {result.reason.splitlines()[0]}")


def _cell(granted: bool | None, evicted: int) -> str:
    if granted is None:
        return "no answer"
    return f"{'granted' if granted else 'rejected'}, {evicted}"


def _tell_campaign(campaign: Campaign) -> None:
    say()
    for line in campaign_lines(campaign):
        say(line)


def _tell_agreements(agreements: tuple[AgreementRow, ...]) -> None:
    for agreement in agreements:
        say(f"{agreement.name} on {agreement.states} states: {coloured(agreement.verdict)}")
