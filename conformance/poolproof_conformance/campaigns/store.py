"""A campaign's SQLite file: opened, read as typed rows, written one transaction for each finished job.

Readers need `Store.read(path)`, then `cells()`, `kinds()`, `seconds()` and `run_state()`; the tables are in schema.sql.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from poolproof_conformance.campaigns.jobs import JobResult, PendingShrink, ShrinkResult
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
        return cls(path, _opened(path, f"{path.absolute().as_uri()}?mode=ro"))

    @classmethod
    def write(cls, path: Path, settings: dict[str, str]) -> Self:
        """A new campaign, or an existing one of the same settings to go on with. Raises CampaignFileError."""
        if not path.parent.is_dir():
            raise CampaignFileError(f"{path}: no such folder", f"mkdir -p {path.parent}")
        store = cls(path, _opened(path, path.absolute().as_uri()))
        with store._transaction():
            known = store.settings()
            if not known:
                store._connection.executemany("INSERT INTO setting VALUES (?, ?)", sorted(settings.items()))
        for name, value in settings.items():
            if known and known.get(name) != value:
                store.close()
                raise CampaignFileError(
                    f"{path}: a campaign with {name} {known.get(name)}, this one has {name} {value}",
                    "give another --db, or the settings of that campaign",
                )
        return store

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

    def begin_run(self) -> int:
        """A new run; partial until `end_run`."""
        with self._transaction():
            cursor = self._connection.execute("INSERT INTO run (seconds, state) VALUES (0, 'partial')")
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def end_run(self, run: int, seconds: float, state: RunState) -> None:
        """What came of a run."""
        with self._transaction():
            self._connection.execute("UPDATE run SET seconds = ?, state = ? WHERE id = ?", (seconds, state, run))

    def add_job(self, result: JobResult, run: int | None = None, run_seconds: float = 0.0) -> None:
        """Everything of one finished job, or nothing. A job that is there already stays as it is."""
        with self._transaction():
            cell = self.cell_number(result.cell)
            self._connection.execute(
                "UPDATE cell SET unchecked = ? WHERE id = ?", (json.dumps(sorted(result.unchecked)), cell)
            )
            place = (cell, result.stage, result.number)
            witnessed = json.dumps(dict(sorted(result.witnessed.items())))
            numbers = (result.histories, result.operations, result.unbuilt, witnessed, result.seconds)
            added = self._connection.execute("INSERT OR IGNORE INTO job VALUES (?,?,?,?,?,?,?,?)", (*place, *numbers))
            if added.rowcount:
                self._connection.executemany(
                    "INSERT INTO doubt VALUES (?,?,?,?,?)", [(*place, *doubt) for doubt in result.doubts.items()]
                )
                self._connection.executemany(
                    "INSERT INTO sighting VALUES (?,?,?,?,?,?,?)",
                    [
                        (*place, seen.property, seen.bucket, seen.histories, msgspec.json.encode(seen.history).decode())
                        for seen in result.sightings
                    ],
                )
            self._tell_seconds(run, run_seconds)

    def add_shrunk(self, result: ShrinkResult, run: int | None = None, run_seconds: float = 0.0) -> None:
        """The shrunk history of one sighting."""
        sighting = result.sighting
        place = (self._cells[sighting.cell], sighting.stage, sighting.number, sighting.property, sighting.bucket)
        found = (result.signature, result.operations, result.message, result.trace, result.seconds)
        with self._transaction():
            self._connection.execute("INSERT OR IGNORE INTO shrunk VALUES (?,?,?,?,?,?,?,?,?,?)", (*place, *found))
            self._tell_seconds(run, run_seconds)

    def absorb(self, other: "Store") -> int:
        """Take over every job of another file of the same settings that is not here yet; returns how many."""
        with self._transaction():
            renamed = {number: self.cell_number(cell) for cell, number in other._cells.items()}
            for cell, unchecked in other._connection.execute("SELECT id, unchecked FROM cell"):
                self._connection.execute("UPDATE cell SET unchecked = ? WHERE id = ?", (unchecked, renamed[cell]))
            here = set(self._connection.execute("SELECT cell, stage, number FROM job").fetchall())
            new = {tuple(row) for row in other._connection.execute("SELECT cell, stage, number FROM job")}
            new = {place for place in new if (renamed[place[0]], *place[1:]) not in {tuple(row) for row in here}}
            for table in ("job", "doubt", "sighting"):
                self._copy(other, table, renamed, new)
            self._copy(other, "shrunk", renamed, None)
            runs = other._connection.execute("SELECT seconds, state FROM run").fetchall()
            self._connection.executemany("INSERT INTO run (seconds, state) VALUES (?, ?)", [tuple(run) for run in runs])
        return len(new)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def cell_number(self, cell: Cell) -> int:
        """The row of a cell, which is added if it is new."""
        if cell not in self._cells:
            names = (cell.target, cell.core or "", cell.mode or "", cell.layout)
            cursor = self._connection.execute(
                "INSERT INTO cell (target, core, mode, layout) VALUES (?, ?, ?, ?)", names
            )
            assert cursor.lastrowid is not None
            self._cells[cell] = cursor.lastrowid
        return self._cells[cell]

    def _copy(self, other: "Store", table: str, renamed: dict[int, int], new: set[Any] | None) -> None:
        for row in other._connection.execute(f"SELECT * FROM {table}"):
            if new is None or tuple(row[:3]) in new:
                marks = ",".join("?" * len(row))
                self._connection.execute(
                    f"INSERT OR IGNORE INTO {table} VALUES ({marks})", (renamed[row[0]], *tuple(row)[1:])
                )

    def _tell_seconds(self, run: int | None, seconds: float) -> None:
        if run is not None:
            self._connection.execute("UPDATE run SET seconds = ? WHERE id = ?", (seconds, run))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

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


def _opened(path: Path, address: str) -> sqlite3.Connection:
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
