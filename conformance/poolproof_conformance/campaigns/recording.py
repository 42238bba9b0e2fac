"""A campaign's SQLite file, written: one transaction for each finished job, so that nothing is ever half there."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec

from poolproof_conformance.campaigns.jobs import JobResult, ShrinkResult
from poolproof_conformance.campaigns.rows import Cell, RunState
from poolproof_conformance.campaigns.store import CampaignFileError, Store, opened


class Recording(Store):
    """A campaign's file to write to. Use it in a `with`."""

    @classmethod
    def write(cls, path: Path, settings: dict[str, str]) -> Self:
        """A new campaign, or an existing one of the same settings to go on with. Raises CampaignFileError."""
        if not path.parent.is_dir():
            raise CampaignFileError(f"{path}: no such folder", f"mkdir -p {path.parent}")
        store = cls(path, opened(path, path.absolute().as_uri()))
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

    def begin_run(self, cells: Sequence[Cell]) -> int:
        """A new run, partial until `end_run`. Cells that it does not come to stay in the file, as unknown."""
        with self._transaction():
            for cell in cells:
                self.cell_number(cell)
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
            if new:
                run = (other.seconds(), other.run_state())
                self._connection.execute("INSERT INTO run (seconds, state) VALUES (?, ?)", run)
        return len(new)

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
