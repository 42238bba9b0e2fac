"""A campaign's SQLite file, read as typed rows; recording.py writes it.

Readers need `Store.read(path)`, then `cells()`, `kinds()`, `seconds()` and `run_state()`; the tables are in schema.sql.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from poolproof_conformance.campaigns.jobs import PendingShrink
from poolproof_conformance.campaigns.rows import Cell, CellTotals, KindRow, RunState
from poolproof_conformance.campaigns.trace_names import trace_name
from poolproof_conformance.errors import PoolproofError
from poolproof_conformance.generator import History

APPLICATION_ID = 0x706F6F6C
"""Marks a campaign's file among SQLite files: `pool`."""
SCHEMA = 1
"""Version of the tables."""
BUSY_TIMEOUT_S = 30.0
"""How long a writer waits for a reader, in seconds."""

_FIRST = """
    WITH first AS (
        SELECT cell, property, bucket, MIN(stage * 1000000000 + number) AS place, SUM(histories) AS histories
        FROM sighting GROUP BY cell, property, bucket
    )
"""
"""Of each bucket the earliest sighting: it alone is shrunk and shown, so that the order of the work does not matter."""


class CampaignFileError(PoolproofError):
    """A file that is no campaign's, or of another version, or of a campaign with other settings."""


class Store:
    """One campaign's file. Use it in a `with`."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._cells: dict[Cell, int] = {}
        for number, cell in self._rows_of_cells():
            self._cells[cell] = number

    @classmethod
    def read(cls, path: Path) -> Self:
        """An existing campaign, read only. Raises CampaignFileError."""
        if not path.is_file():
            raise CampaignFileError(f"{path}: no such file", f"poolproof campaign TARGET --db {path}")
        return cls(path, opened(path, f"{path.absolute().as_uri()}?mode=ro"))

    def settings(self) -> dict[str, str]:
        """Seed of the random histories, and version of the enumeration."""
        return dict(self._connection.execute("SELECT name, value FROM setting"))

    @property
    def traces_folder(self) -> Path:
        """Where the traces of the kinds are written: beside the file."""
        return self.path.with_name(f"{self.path.stem}-traces")

    def cells(self) -> list[CellTotals]:
        """Every cell with the totals of its jobs, sorted by target, core, mode and layout."""
        return [self._totals(cell) for cell in sorted(self._cells, key=msgspec.json.encode)]

    def kinds(self) -> list[KindRow]:
        """Every kind of failure of every cell, sorted as `cells`, then by property and signature."""
        by_kind: dict[tuple[int, str, str], list[sqlite3.Row]] = {}
        query = f"""{_FIRST}
            SELECT shrunk.*, first.histories FROM first JOIN shrunk USING (cell, property, bucket)
            WHERE shrunk.stage * 1000000000 + shrunk.number = first.place"""
        for row in self._connection.execute(query):
            by_kind.setdefault((row["cell"], row["property"], row["signature"]), []).append(row)
        cell_of = {number: cell for cell, number in self._cells.items()}
        kinds = [_kind(cell_of[cell], rows) for (cell, _, _), rows in by_kind.items()]
        return sorted(kinds, key=lambda kind: (msgspec.json.encode(kind.cell), kind.property, kind.signature))

    def pending(self) -> Iterator[PendingShrink]:
        """The earliest sighting of each bucket, where it has not been shrunk yet."""
        query = f"""{_FIRST}
            SELECT sighting.* FROM first JOIN sighting USING (cell, property, bucket) LEFT JOIN shrunk
            USING (cell, property, bucket, stage, number)
            WHERE sighting.stage * 1000000000 + sighting.number = first.place AND shrunk.cell IS NULL
            ORDER BY sighting.stage, sighting.number, sighting.cell, property, bucket"""
        cell_of = {number: cell for cell, number in self._cells.items()}
        for row in self._connection.execute(query).fetchall():
            yield PendingShrink(
                cell=cell_of[row["cell"]],
                stage=row["stage"],
                number=row["number"],
                property=row["property"],
                bucket=row["bucket"],
                history=msgspec.json.decode(row["history"], type=History),
            )

    def jobs_done(self) -> set[tuple[Cell, int, int]]:
        """(cell, stage, number) of every finished job."""
        cell_of = {number: cell for cell, number in self._cells.items()}
        query = "SELECT cell, stage, number FROM job"
        return {(cell_of[cell], stage, number) for cell, stage, number in self._connection.execute(query)}

    def first_places(self) -> dict[tuple[Cell, str, str], tuple[int, int]]:
        """(cell, property, bucket) to (stage, number) of the earliest sighting."""
        cell_of = {number: cell for cell, number in self._cells.items()}
        query = f"{_FIRST} SELECT cell, property, bucket, place FROM first"
        return {
            (cell_of[row[0]], row[1], row[2]): divmod(row[3], 1000000000) for row in self._connection.execute(query)
        }

    def seconds(self) -> float:
        """Wall time of all runs together."""
        return float(self._connection.execute("SELECT COALESCE(SUM(seconds), 0) FROM run").fetchone()[0])

    def run_state(self) -> RunState:
        """Whether the last run came to its end and left nothing to shrink."""
        last = self._connection.execute("SELECT state FROM run ORDER BY id DESC LIMIT 1").fetchone()
        complete = last is not None and last[0] == "complete" and next(self.pending(), None) is None
        return "complete" if complete else "partial"

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _rows_of_cells(self) -> Iterator[tuple[int, Cell]]:
        for row in self._connection.execute("SELECT * FROM cell"):
            names = {"target": row["target"], "core": row["core"] or None, "mode": row["mode"] or None}
            yield row["id"], msgspec.convert({**names, "layout": row["layout"]}, Cell)

    def _totals(self, cell: Cell) -> CellTotals:
        number = (self._cells[cell],)
        jobs = self._connection.execute("SELECT * FROM job WHERE cell = ?", number).fetchall()
        witnessed: Counter[str] = Counter()
        for job in jobs:
            witnessed.update(json.loads(job["witnessed"]))
        unchecked = self._connection.execute("SELECT unchecked FROM cell WHERE id = ?", number).fetchone()[0]
        return CellTotals(
            cell=cell,
            jobs=len(jobs),
            histories=sum(job["histories"] for job in jobs),
            operations=sum(job["operations"] for job in jobs),
            unbuilt=sum(job["unbuilt"] for job in jobs),
            violating=self._counts("property", "sighting", number),
            witnessed=dict(sorted(witnessed.items())),
            unchecked=tuple(json.loads(unchecked)),
            doubts=self._counts("reason", "doubt", number),
        )

    def _counts(self, what: str, table: str, cell: tuple[int]) -> dict[str, int]:
        query = f"SELECT {what}, SUM(histories) FROM {table} WHERE cell = ? GROUP BY {what} ORDER BY {what}"
        return {str(row[0]): int(row[1]) for row in self._connection.execute(query, cell)}


def _kind(cell: Cell, rows: Sequence[sqlite3.Row]) -> KindRow:
    """Several buckets that shrank to one kind: the smallest history of them."""
    smallest = min(rows, key=lambda row: (row["operations"], len(row["trace"]), row["trace"]))
    return KindRow(
        cell=cell,
        property=smallest["property"],
        signature=smallest["signature"],
        histories=sum(row["histories"] for row in rows),
        operations=smallest["operations"],
        message=smallest["message"],
        trace=smallest["trace"],
        trace_file=trace_name(cell, smallest["property"], smallest["signature"]),
    )


def opened(path: Path, address: str) -> sqlite3.Connection:
    """A connection, with the tables in place if the file was empty. Raises CampaignFileError."""
    try:
        connection = sqlite3.connect(address, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        connection.row_factory = sqlite3.Row
        if "mode=ro" not in address:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
        empty = not connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
        if empty and "mode=ro" not in address:
            tables = (files("poolproof_conformance.campaigns") / "schema.sql").read_text(encoding="utf-8")
            marks = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA};"
            connection.executescript(f"BEGIN IMMEDIATE; {marks} {tables} COMMIT;")
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.DatabaseError as error:
        raise CampaignFileError(f"{path}: no campaign's file: {error}", "give the --db of a campaign") from None
    if application != APPLICATION_ID:
        raise CampaignFileError(f"{path}: an SQLite file, but no campaign's", "give the --db of a campaign")
    if version != SCHEMA:
        raise CampaignFileError(
            f"{path}: tables of version {version}, this poolproof has {SCHEMA}",
            "use the poolproof that wrote it, or begin a new file",
        )
    return connection


def distinct_kinds(kinds: Iterable[KindRow]) -> set[tuple[str, str]]:
    """(property, signature) of each, whatever the core and mode."""
    return {(kind.property, kind.signature) for kind in kinds}
