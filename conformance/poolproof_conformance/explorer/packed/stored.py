"""What the packed engine has found: levels in the order of their depth, and everything seen in sorted runs."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from poolproof_conformance.atomic_file import write_atomically
from poolproof_conformance.errors import PoolproofError
from poolproof_conformance.explorer.packed.fields import Model
from poolproof_conformance.explorer.packed.lanes import Column, NumPyBackend

LEAST_ROOM = 1 << 28
"""Bytes that are needed beside what is stored: columns, and the successors that are sorted at once."""


class CheckpointError(PoolproofError):
    """A checkpoint that cannot be written or read, or that is of another run."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """What a checkpoint says beside its levels."""

    model: str
    """Of which model it is: configuration, symmetry, fields."""
    levels: int = 0
    """Whole levels that are written."""
    transitions: int = 0
    """Of all levels that were stepped: all but the last one, or all where the run is done."""
    seconds: float = 0.0
    done: bool = False
    """The last level led to nothing new."""


class Stored:
    """Levels and runs, in memory, and in a folder where one is given."""

    def __init__(
        self,
        model: Model,
        backend: NumPyBackend,
        *,
        folder: Path | None = None,
        resume: bool = False,
        memory_bytes: int | None = None,
    ) -> None:
        self.model, self.backend, self.folder, self.memory_bytes = model, backend, folder, memory_bytes
        self.state_bytes = 8 * model.words
        self.levels: list[Callable[[], Column]] = []
        """Each level when asked for."""
        self.runs: list[Column] = []
        """Sorted; together they are all that was seen. All but the last lie on disk."""
        self.distinct, self.depth = 0, 0
        self.progress = Progress(model=fingerprint(model))
        self._resume = resume
        self._in_memory = 0

    def begin(self, initial: Column) -> Progress:
        """From the empty pool, or from where the checkpoint ends."""
        if self.folder is not None:
            self._open(self.folder)
        if self.progress.levels:
            self._read()
        else:
            self._append(initial)
        return self.progress

    def add_level(self, level: Column, transitions: int, seconds: float) -> None:
        """A whole level more; `level` is sorted and new."""
        self.progress = msgspec.structs.replace(
            self.progress,
            transitions=self.progress.transitions + transitions,
            seconds=round(self.progress.seconds + seconds, 3),
        )
        if len(level):
            self._append(level)
            self.depth += 1
        else:
            self.frontier = level
            self.progress = msgspec.structs.replace(self.progress, done=True)
            self._write_progress()

    def has_room(self, coming: int) -> bool:
        """Whether so many states more can be held; what was seen goes to disk first, where there is a folder."""
        if self.memory_bytes is None:
            return True
        # Sorting and merging need a copy of what they work on.
        needed = 2 * (self._in_memory + 2 * coming * self.state_bytes) + LEAST_ROOM
        if needed <= self.memory_bytes:
            return True
        if self.folder is not None and self._in_memory and self.backend.spills:
            self._spill()
            return 4 * coming * self.state_bytes + LEAST_ROOM <= self.memory_bytes
        return False

    def _append(self, level: Column) -> None:
        self.frontier = level
        self.distinct += len(level)
        if self.folder is not None:
            path = self._level_path(len(self.levels))
            _save(path, self.backend.to_numpy(level))
            self.levels.append(lambda: self.backend.from_numpy(np.load(path)))
        else:
            self.levels.append(lambda: level)
        self._remember(level)
        self.progress = msgspec.structs.replace(self.progress, levels=len(self.levels))
        self._write_progress()

    def _remember(self, level: Column) -> None:
        """Add a level to what was seen."""
        if not self.runs or isinstance(self.runs[-1], np.memmap):
            self.runs.append(level)
        else:
            self.runs[-1] = self.backend.merged(self.runs[-1], level)
        kept = 1 if self.folder is None else 0
        self._in_memory = len(self.runs[-1]) * self.state_bytes + kept * self.distinct * self.state_bytes

    def _spill(self) -> None:
        """What was seen goes to disk; it is looked up there."""
        assert self.folder is not None
        path = self.folder / f"seen-{len(self.runs):04}.npy"
        _save(path, self.backend.to_numpy(self.runs[-1]))
        self.runs[-1] = np.load(path, mmap_mode="r")
        self._in_memory = 0

    def _level_path(self, number: int) -> Path:
        assert self.folder is not None
        return self.folder / f"level-{number:04}.npy"

    def _open(self, folder: Path) -> None:
        path = folder / "progress.json"
        if self._resume and not path.exists():
            raise CheckpointError(f"{folder}: no checkpoint there", "leave --resume out to begin one")
        if path.exists() and not self._resume:
            raise CheckpointError(f"{folder}: there is a checkpoint already", "--resume, or another folder")
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            return
        try:
            found = msgspec.json.decode(path.read_bytes(), type=Progress)
        except (OSError, msgspec.DecodeError) as error:
            raise CheckpointError(f"{path}: {error}", "begin again in another folder") from None
        if found.model != self.progress.model:
            raise CheckpointError(
                f"{folder}: a checkpoint of another run ({found.model}, here {self.progress.model})",
                "the same CONFIG, --policy and --symmetry, or another folder",
            )
        self.progress = found

    def _read(self) -> None:
        """The levels that the checkpoint tells of."""
        for number in range(self.progress.levels):
            path = self._level_path(number)
            try:
                level = self.backend.from_numpy(np.load(path))
            except (OSError, ValueError) as error:
                raise CheckpointError(f"{path}: {error}", "begin again in another folder") from None
            self.levels.append(lambda path=path: self.backend.from_numpy(np.load(path)))  # type: ignore[misc]
            self.frontier = level
            self.distinct += len(level)
            self.depth = number
            self._remember(level)
            self.has_room(len(level))
        if self.progress.done:
            self.frontier = self.frontier[:0]

    def _write_progress(self) -> None:
        if self.folder is not None:
            write_atomically(self.folder / "progress.json", msgspec.json.encode(self.progress).decode())


def fingerprint(model: Model) -> str:
    """Tells a model from others: two with the same fingerprint have the same packed states."""
    told = msgspec.json.encode((model.configuration, model.symmetry, [repr(f) for f in model.fields.values()]))
    return f"{model.configuration.name}-{hashlib.sha256(told).hexdigest()[:16]}"


def _save(path: Path, states: Any) -> None:
    """Write an array as a whole or not at all."""
    temporary: Path | None = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            temporary = Path(file.name)
            np.save(file, states)
        temporary.replace(path)
        temporary = None
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}", "another --checkpoint folder, or more room") from None
    finally:
        if temporary is not None:  # also where the run was interrupted
            temporary.unlink(missing_ok=True)
