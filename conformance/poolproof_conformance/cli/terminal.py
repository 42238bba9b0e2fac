"""What all commands share: exit codes, plain or coloured lines, progress, `--json FILE`."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from poolproof_conformance.atomic_file import check_writable, write_atomically
from poolproof_spec.verdict import Verdict

EXIT_CODES: Mapping[Verdict, int] = {"holds": 0, "violated": 1, "unknown": 2}
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
PLAIN_LINE_EVERY_S = 10.0
"""In a pipe a long run says where it is this often, in seconds."""

COLOURS: Mapping[str, str] = {"holds": "green", "violated": "red", "unknown": "yellow"}


def _checked(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    if path is not None:
        check_writable(path)
    return path


json_option = click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    callback=_checked,
    help="Write the results as JSON too; the file is replaced as a whole.",
)


def say(text: str = "") -> None:
    """One line of result on stdout."""
    click.echo(text)


def note(text: str) -> None:
    """One line about the run, on stderr."""
    click.echo(text, err=True)


def coloured(verdict: str) -> str:
    """A verdict in its colour; click drops the colour in a pipe."""
    return click.style(verdict, fg=COLOURS.get(verdict))


def write_json(path: Path | None, content: Any) -> None:
    """The results as JSON, if asked for. Raises OutputFileError."""
    if path is not None:
        text = msgspec.json.format(msgspec.json.encode(content), indent=2).decode()
        write_atomically(path, text + "\n")


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yields a function that is told how many of `total` are done; a bar on a terminal, else a line now and then."""
    if sys.stderr.isatty():
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        # Results go above the bar on a terminal; into a file or pipe they go as they are.
        together = sys.stdout.isatty()
        with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=together) as bar:
            task = bar.add_task(what, total=total)
            yield lambda done: bar.update(task, completed=done)
        return
    last = time.monotonic()

    def tell(done: int) -> None:
        nonlocal last
        if time.monotonic() - last >= PLAIN_LINE_EVERY_S:
            last = time.monotonic()
            note(f"{what}: {done} of {total}")

    yield tell
