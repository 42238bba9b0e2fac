"""How far an exploration is: states, transitions a second, queue depth, time; a bar on a terminal, else lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from poolproof_conformance.cli.terminal import PLAIN_LINE_EVERY_S, note
from poolproof_conformance.explorer.exploration import Counts


class progress:
    """A context manager: yields a function that is told the counts."""

    def __init__(self, what: str) -> None:
        self.what, self.counts = what, Counts()
        self._bar: Progress | None = None
        self._began = self._last = time.monotonic()

    def __enter__(self) -> Callable[[Counts], None]:
        """Begin."""
        if sys.stderr.isatty():
            columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self.what, total=None)
        return self._told

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """End."""
        if self._bar is not None:
            self._bar.stop()

    def last_words(self) -> str:
        """What had been seen when it was last told."""
        return f"{self.counts.distinct} states, {self.counts.transitions} transitions so far"

    def _told(self, counts: Counts) -> None:
        self.counts = counts
        if self._bar is not None:
            self._bar.update(self._task, description=self._words())
        elif time.monotonic() - self._last >= PLAIN_LINE_EVERY_S:
            self._last = time.monotonic()
            note(self._words())

    def _words(self) -> str:
        counts, seconds = self.counts, max(time.monotonic() - self._began, 1e-9)
        expanded = max(counts.distinct - counts.waiting, 1)
        left = counts.waiting * seconds / expanded
        return (
            f"{self.what}: {counts.distinct:,} states, {counts.transitions:,} transitions, "
            f"{counts.transitions / seconds:,.0f} a second, depth {counts.depth}, {counts.waiting:,} waiting, "
            f"{left:,.0f} s left or more"
        )
