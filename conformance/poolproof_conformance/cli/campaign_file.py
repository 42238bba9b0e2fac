"""What `poolproof campaign` does with a file that is there: show it, merge several, make a page of its findings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from poolproof_conformance.atomic_file import write_atomically
from poolproof_conformance.cli.campaign_lines import summary_lines
from poolproof_conformance.cli.terminal import EXIT_CODES, json_option, say, write_json

if TYPE_CHECKING:
    from poolproof_conformance.campaigns.store import Store


@click.command(short_help="Tell what a campaign found so far.", epilog="Exit codes: as for a run.")
@click.argument("path", metavar="DB", type=click.Path(path_type=Path))
@json_option
def show(path: Path, json_path: Path | None) -> int:
    """Tell what a campaign found so far; one that is running may be asked too.

    \b
    Examples:
      poolproof campaign show campaign.sqlite
      poolproof campaign show campaign.sqlite --json campaign.json
    """
    from poolproof_conformance.campaigns.store import Store

    with Store.read(path) as store:
        return told(store, json_path)


@click.command(short_help="Put several files of one campaign together.", epilog="Exit codes: as for a run.")
@click.argument("out", metavar="OUT", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("paths", metavar="DB...", nargs=-1, required=True, type=click.Path(path_type=Path))
@json_option
def merge(out: Path, paths: tuple[Path, ...], json_path: Path | None) -> int:
    """Put the jobs of several files of one campaign (its shards) into OUT; a job that two have counts once.

    \b
    Example:
      poolproof campaign merge both.sqlite one.sqlite two.sqlite
    """
    from poolproof_conformance.campaigns.merge import merge_files
    from poolproof_conformance.campaigns.runner import write_traces

    with merge_files(out, paths) as store:
        write_traces(store)
        return told(store, json_path)


@click.command(short_help="Make a page of what a campaign found.", epilog="Exit codes: 0 written; 2 an error.")
@click.argument("path", metavar="DB", type=click.Path(path_type=Path), required=False)
@click.option(
    "--traces",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("docs", "findings"),
    show_default=True,
    help="Folder of the kinds' traces and their index.",
)
@click.option(
    "--markdown",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("docs", "findings.md"),
    show_default=True,
    help="The page; the file is replaced as a whole.",
)
def findings(path: Path | None, folder: Path, page: Path) -> int:
    """Write a page of what a campaign found: each kind once, its smallest trace, and what is known of the cause.

    With DB, each kind's trace is replayed on every target of the campaign and written to the folder, whose JSON files
    are replaced; without, the page is made anew from the folder.

    \b
    Examples:
      poolproof campaign findings campaign.sqlite
      poolproof campaign findings --markdown docs/findings.md
    """
    from poolproof_conformance.campaigns.findings import collect
    from poolproof_conformance.campaigns.findings_page import findings_page
    from poolproof_conformance.campaigns.store import Store

    if path is not None:
        with Store.read(path) as store:
            collect(store, folder)
    write_atomically(page, findings_page(folder, page))
    say(f"{page}: written, traces in {folder}")
    return 0


def told(store: Store, json_path: Path | None) -> int:
    """The lines, the JSON, and the exit code."""
    from poolproof_conformance.campaigns.summary import summary_of

    summary = summary_of(store)
    for line in summary_lines(store, summary):
        say(line)
    write_json(json_path, summary)
    return EXIT_CODES[summary.verdict]
