"""`poolproof report`: a campaign or traces as one HTML page, JUnit, SARIF and Markdown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from poolproof_conformance.atomic_file import check_writable, write_atomically
from poolproof_conformance.cli.options import mode_option, tree_core_option
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
from poolproof_conformance.target_names import Target
from poolproof_conformance.trace_format import Mode, TreeCore
from poolproof_conformance.traces import read_trace
from poolproof_conformance.wording import plural

if TYPE_CHECKING:
    from poolproof_conformance.reporting.expected import Judgement
    from poolproof_conformance.reporting.rows import Gathered


def _output(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    if path is not None:
        check_writable(path)
    return path


def _file_option(name: str, what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        f"--{name}",
        f"{name}_path",
        type=click.Path(path_type=Path),
        metavar="FILE",
        callback=_output,
        help=f"{what}; the file is replaced as a whole.",
    )


@click.command(
    epilog="Exit codes: 0 no new kind of failure and nothing unknown; 1 a kind that is on no list; 2 something is "
    "unknown, nothing was run, or the command was wrong; 130 interrupted."
)
@click.argument("files", nargs=-1, required=True, metavar="DB|TRACE...", type=click.Path(path_type=Path))
@_file_option("html", "One self-contained page, to step through every counterexample")
@_file_option("junit", "JUnit XML, a test case for each target and property")
@_file_option("sarif", "SARIF 2.1.0, for code-scanning views")
@_file_option("markdown", "A summary in Markdown, for a CI run's page")
@click.option(
    "--expected",
    "expected_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Known failures, each with its link, in YAML or JSON; they do not count as new.",
)
@click.option(
    "--target",
    "names",
    multiple=True,
    metavar="TARGET",
    help="Run the traces on it; may be given several times. [default: those that a trace expects something of]",
)
@mode_option
@tree_core_option
@click.option("--docs-url", metavar="URL", help="Where docs/spec.md can be read on the web: rules link to it.")
@json_option
def report(
    files: tuple[Path, ...],
    html_path: Path | None,
    junit_path: Path | None,
    sarif_path: Path | None,
    markdown_path: Path | None,
    expected_path: Path | None,
    names: tuple[str, ...],
    mode: Mode | None,
    tree_core: TreeCore,
    docs_url: str | None,
    json_path: Path | None,
) -> int:
    """Report on a campaign's database, or on traces that are run here and now, for people and for CI.

    \b
    Examples:
      poolproof report campaign.sqlite --html report.html
      poolproof report campaign.sqlite --expected known.yaml --junit junit.xml --markdown summary.md
      poolproof report traces/*.json --target sglang==0.5.23 --html report.html
    """
    # These take their time to import: the template engine, the store.
    from poolproof_conformance.reporting.expected import ExpectedList, judge, read_expected
    from poolproof_conformance.reporting.sources import gather, is_database
    from poolproof_conformance.reporting.traced import targets_of

    expected = read_expected(expected_path) if expected_path else ExpectedList(format=1)
    # Resolved before anything runs: a wrong name or file must not cost a half run.
    paths = list(dict.fromkeys(files))
    targets = {path: targets_of(read_trace(path), names, tree_core, mode) for path in paths if not is_database(path)}
    try:
        gathered, runs = _gather(gather, paths, targets)
        judgement = judge(gathered, expected)
        texts: list[tuple[Path, str]] = []
        if html_path is not None:
            texts.append((html_path, _html(gathered, judgement, runs, docs_url)))
        if junit_path is not None:
            from poolproof_conformance.reporting.junit import junit_xml

            texts.append((junit_path, junit_xml(gathered, judgement)))
        if sarif_path is not None:
            from poolproof_conformance.reporting.sarif import sarif_text

            texts.append((sarif_path, sarif_text(gathered, judgement, docs_url)))
        if markdown_path is not None:
            from poolproof_conformance.reporting.summary import markdown_text

            texts.append((markdown_path, markdown_text(gathered, judgement)))
    except KeyboardInterrupt:
        note("interrupted: no report was written.")
        return EXIT_INTERRUPTED
    for path, text in texts:
        write_atomically(path, text)
    _tell(gathered, judgement, [path for path, _ in texts])
    write_json(json_path, _summary(judgement))
    return EXIT_CODES[judgement.verdict]


def _gather(
    gather: Callable[..., Any], files: list[Path], targets: dict[Path, list[Target | str]]
) -> tuple[Gathered, Any]:
    with progress("report, runs", sum(len(chosen) for chosen in targets.values())) as told:
        return gather(files, targets, _counter(told))  # type: ignore[no-any-return]


def _html(gathered: Gathered, judgement: Judgement, runs: Any, docs_url: str | None) -> str:
    from poolproof_conformance.reporting.counterexamples import counterexamples_of
    from poolproof_conformance.reporting.web_page import html_page

    with progress("report, counterexamples run again", len(gathered.kinds)) as told:
        examples = counterexamples_of(gathered, runs, _counter(told))
    return html_page(gathered, judgement, examples, docs_url)


def _counter(told: Callable[[int], None]) -> Callable[[], None]:
    done = 0

    def count() -> None:
        nonlocal done
        done += 1
        told(done)

    return count


def _tell(gathered: Gathered, judgement: Judgement, written: list[Path]) -> None:
    from poolproof_conformance.reporting.overview import headline_of, lede_of, seen_on

    say(f"{coloured(judgement.verdict)}: {headline_of(judgement)}")
    say(lede_of(gathered, judgement))
    for judged in judgement.new:
        say(f"  new: {judged.kind.property}: {judged.kind.signature}, on {seen_on(judged.kind)}")
    for known in judgement.fixed:
        say(f"  not seen any more, take it off the list: {known.property}: {known.signature}: {known.link}")
    for who, reason in judgement.doubts:
        say(f"  unknown: {who}: {reason}")
    if judgement.untested:
        say(f"  {plural(len(judgement.untested), 'expected failure')} of which this run says nothing")
    for path in written:
        say(f"  wrote {path}")


def _summary(judgement: Judgement) -> dict[str, Any]:
    """What `--json` writes."""
    return {
        "verdict": judgement.verdict,
        "kinds": [
            {
                "property": judged.kind.property,
                "signature": judged.kind.signature,
                "status": "new" if judged.is_new else "known",
                "link": judged.known.link if judged.known else None,
                "message": judged.kind.message,
                "operations": len(judged.kind.trace.operations),
                "trace_file": judged.kind.trace_file or None,
                "targets": [
                    {
                        "target": sighting.variant.target,
                        "tree_core": sighting.variant.tree_core,
                        "mode": sighting.variant.mode,
                        "layout": sighting.layout,
                        "histories": sighting.histories,
                    }
                    for sighting in judged.kind.sightings
                ],
            }
            for judged in judgement.kinds
        ],
        "fixed": judgement.fixed,
        "untested": judgement.untested,
        "unknown": [{"target": who, "reason": reason} for who, reason in judgement.doubts],
    }
