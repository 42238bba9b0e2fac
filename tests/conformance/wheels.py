"""Wheels for tests."""

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path


def write_wheel(path: Path, files: Mapping[str, bytes], forged: Mapping[str, bytes] | None = None) -> Path:
    """A wheel with a RECORD of `files`; those `forged` have other contents."""
    record = ""
    with zipfile.ZipFile(path, "w") as wheel:
        for name, data in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(data)}\n"
            wheel.writestr(name, (forged or {}).get(name, data))
        wheel.writestr("p-1.dist-info/RECORD", record + "p-1.dist-info/RECORD,,\n")
    return path
