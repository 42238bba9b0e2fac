"""Measure all subjects at all cells, interleaved run by run: A B C A B C ..., so that a busy machine slows all."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import groupby
from statistics import median

from poolproof_conformance.bench.results import Row, with_ratios
from poolproof_conformance.bench.session import Named, Session, SubjectFailedError
from poolproof_conformance.bench.works import WORKS, Work, state_of

Cell = tuple[str, int]
Told = Callable[[str], None]
"""Told what is about to be measured."""


def cells_of(works: Iterable[Work], *, quick: bool, sizes: Sequence[int] = ()) -> list[Cell]:
    """All (work, size) that are to be measured; `sizes`, if given, in place of each work's own."""
    return [(work.name, size) for work in works for size in sizes or (work.quick_sizes if quick else work.sizes)]


def measure(
    subjects: Sequence[Named], cells: Sequence[Cell], runs: int, told: Told
) -> tuple[tuple[Row, ...], dict[str, dict[str, str]]]:
    """(rows in the order of the works, what really ran for each subject). KeyboardInterrupt is let through."""
    rows: dict[tuple[Cell, str], Row] = {}
    versions: dict[str, dict[str, str]] = {}
    with ExitStack() as stack:
        sessions: list[Session] = []
        for named in subjects:
            session = stack.enter_context(Session(named))
            reason = _described(session, versions, told)
            if reason is None:
                sessions.append(session)
            for cell in cells if reason else ():
                rows[cell, named.title] = _row(cell, named.title, [], unknown=reason)
        # Cells that start from one state are measured together: it is filled once.
        order = sorted(cells, key=lambda cell: (cell[0] == "memory", state_of(*cell)[0], state_of(*cell)[1]))
        for _, group in groupby(order, key=lambda cell: state_of(*cell)):
            for cell in group:
                told(f"{cell[0]} at {cell[1]}")
                for row in _measure_cell(sessions, cell, 1 if cell[0] == "memory" else runs):
                    rows[cell, row.subject] = row
    titles = [named.title for named in subjects]
    return with_ratios([rows[cell, title] for cell in _in_table_order(cells) for title in titles]), versions


def _in_table_order(cells: Sequence[Cell]) -> list[Cell]:
    places = {work.name: place for place, work in enumerate(WORKS)}
    return sorted(dict.fromkeys(cells), key=lambda cell: (places[cell[0]], cell[1]))


def _described(session: Session, versions: dict[str, dict[str, str]], told: Told) -> str | None:
    """Why the subject cannot be measured at all, if so."""
    named = session.named
    if named.missing:
        return f"not installed: {named.missing}"
    told(f"starting {named.title}")
    try:
        versions[named.title] = session.describe()
    except SubjectFailedError as error:
        return str(error)
    return None


def _measure_cell(sessions: Sequence[Session], cell: Cell, runs: int) -> list[Row]:
    """A row for each subject; whatever fails costs that subject this cell, and the others nothing."""
    taken: dict[str, list[float]] = {}
    rows: dict[str, Row] = {}
    for session in sessions:
        title = session.named.title
        try:
            reason = session.prepare(*cell)
        except SubjectFailedError as error:
            rows[title] = _row(cell, title, [], unknown=str(error))
            continue
        if reason is None:
            taken[title] = []
        else:
            rows[title] = _row(cell, title, [], cannot=reason)
    for _ in range(runs):
        for session in sessions:
            title = session.named.title
            if title not in taken or title in rows:
                continue
            try:
                taken[title].append(session.run())
            except SubjectFailedError as error:
                rows[title] = _row(cell, title, [], unknown=str(error))
    for title, values in taken.items():
        rows.setdefault(title, _row(cell, title, values))
    return list(rows.values())


def _row(
    cell: Cell, title: str, values: Sequence[float], *, cannot: str | None = None, unknown: str | None = None
) -> Row:
    return Row(
        work=cell[0],
        size=cell[1],
        subject=title,
        median_us=median(values) if values else None,
        min_us=min(values, default=None),
        max_us=max(values, default=None),
        runs=len(values),
        ratio_to_fast=None,
        cannot=cannot,
        unknown=unknown,
    )
