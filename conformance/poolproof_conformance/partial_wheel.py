"""Some files of a wheel, without downloading the rest: for a release whose compiled parts are hundreds of megabytes.

pip says which wheel it would install (`--dry-run --report`); its table of contents and the wanted files are then read
with HTTP range requests. Each file is checked against the SHA-256 that the wheel's own RECORD has of it. Where the
server knows no ranges the wheel is downloaded whole, into a temporary file.
"""

import base64
import csv
import hashlib
import io
import os
import ssl
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import IO, Any

CHUNK_BYTES = 1 << 20
"""Least that is read at once."""
TIMEOUT_S = 60.0


class PartialWheelError(Exception):
    """The wheel cannot be read, or a file in it is not what its RECORD says."""


def extract_some(url: str, folder: Path, wanted: Callable[[str], bool]) -> int:
    """Extract the files of the wheel at `url` whose name is wanted, and its metadata; how many.

    Raises PartialWheelError; the folder may then hold some of them.
    """
    try:
        with _opened(url) as file, zipfile.ZipFile(file) as wheel:
            hashes = _recorded(wheel)
            names = [i.filename for i in wheel.infolist() if wanted(i.filename) or _is_metadata(i.filename)]
            for name in names:
                _extract(wheel, name, hashes.get(name, ""), folder)
            return len(names)
    except (OSError, zipfile.BadZipFile, StopIteration) as error:
        raise PartialWheelError(f"{url.rpartition('/')[2]}: {error}") from error


def _is_metadata(name: str) -> bool:
    return name.count("/") == 1 and ".dist-info/" in name


def _recorded(wheel: zipfile.ZipFile) -> dict[str, str]:
    """Name of each file to `sha256=...` as its RECORD has it."""
    record = next(name for name in wheel.namelist() if name.endswith(".dist-info/RECORD"))
    return {row[0]: row[1] for row in csv.reader(io.StringIO(wheel.read(record).decode())) if len(row) > 1}


def _extract(wheel: zipfile.ZipFile, name: str, recorded: str, folder: Path) -> None:
    data = wheel.read(name)
    found = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    if found != recorded and not name.endswith(".dist-info/RECORD"):
        raise PartialWheelError(f"{name}: its SHA-256 is not the one in the wheel's RECORD")
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise PartialWheelError(f"{name}: a name that leads out of the wheel")
    target = folder.joinpath(*path.parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)


def _opened(url: str) -> IO[bytes]:
    if url.startswith("file:"):
        return open(urllib.request.url2pathname(url.removeprefix("file://")), "rb")
    first = _response(url, "bytes=0-0")
    with first:
        if first.status == 206:
            size = int(first.headers["Content-Range"].rpartition("/")[2])
            return io.BufferedReader(_Ranges(url, size), CHUNK_BYTES)
    whole = tempfile.TemporaryFile()  # noqa: SIM115
    with _response(url, None) as response:
        while chunk := response.read(CHUNK_BYTES):
            whole.write(chunk)
    whole.seek(0)
    return whole


def _response(url: str, byte_range: str | None) -> Any:
    """An open response; certificates as pip is told to use them."""
    request = urllib.request.Request(url, headers={"Range": byte_range} if byte_range else {})
    certificates = os.environ.get("PIP_CERT") or os.environ.get("REQUESTS_CA_BUNDLE")
    context = ssl.create_default_context(cafile=certificates) if url.startswith("https:") else None
    return urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context)


class _Ranges(io.RawIOBase):
    """A remote file, read by range requests."""

    def __init__(self, url: str, size: int) -> None:
        self._url = url
        self._size = size
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._place = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence]
        return self._place

    def readinto(self, buffer: Any) -> int:
        last = min(self._place + len(buffer), self._size) - 1
        if last < self._place:
            return 0
        with _response(self._url, f"bytes={self._place}-{last}") as response:
            data = response.read()
        if response.status != 206 or len(data) != last + 1 - self._place:
            raise OSError(f"asked for bytes {self._place}-{last}, got {len(data)} with status {response.status}")
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)
