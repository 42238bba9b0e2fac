"""Files that are replaced as a whole or not at all, so that an interrupted run leaves no half report."""

import contextlib
import os
import tempfile
from pathlib import Path

from poolproof_conformance.errors import OutputFileError


def write_atomically(path: Path, text: str) -> None:
    """Write `text` to `path` by way of a new file beside it. Raises OutputFileError."""
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            temporary = Path(file.name)
            file.write(text)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()
        reason = error.strerror or str(error)
        raise OutputFileError(
            f"{path}: cannot be written: {reason}", "give a path in a folder that you may write to"
        ) from None


def check_writable(path: Path) -> None:
    """Raise OutputFileError now, rather than after a long run, where `path` cannot be written."""
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise OutputFileError(f"{path}: cannot be written", "give a path in a folder that you may write to")


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
