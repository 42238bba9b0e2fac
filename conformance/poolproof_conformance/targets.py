"""Released engines, each in a folder of its own: installed from the package index without their dependencies.

A release lies whole in its folder or is not there: pip fills a temporary folder beside it, which is then renamed; an
interrupted or failed install leaves nothing behind. The folder's name carries the Python that its wheel was built for.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from platformdirs import user_data_path

from poolproof_conformance.errors import PoolproofError

KNOWN_RELEASES = ("sglang==0.5.22", "sglang==0.5.23")
"""Releases that the adapter was made for, oldest first."""
FOLDER_VARIABLE = "POOLPROOF_TARGETS"
"""Environment variable that names another folder to install into."""
_PARTIAL = ".partial-"
_MEMORY_CACHE = Path("sglang", "srt", "mem_cache")
_UNREACHED = re.compile(r"NewConnectionError|ConnectTimeout|ReadTimeout|ProxyError|connection broken|NameResolution")


class TargetInstallError(PoolproofError):
    """A release could not be installed."""


class ReleaseNameError(TargetInstallError):
    """Not of the form sglang==VERSION."""


class WheelNotFoundError(TargetInstallError):
    """The package index has no wheel of that release for this Python and platform."""


class PipFailedError(TargetInstallError):
    """pip is not there, or ended with an error."""


def targets_folder() -> Path:
    """Where releases are installed: $POOLPROOF_TARGETS, else the user's data folder."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    return Path(chosen).absolute() if chosen else user_data_path("poolproof") / "targets"


def installed_root(name: str, folder: Path | None = None) -> Path | None:
    """The folder of an installed release, for this Python; None where it is not installed."""
    root = _root_of(name, folder)
    return root if (root / _MEMORY_CACHE).is_dir() else None


def installed_releases(folder: Path | None = None) -> list[str]:
    """Names of all releases installed for this Python, sorted."""
    found = (folder or targets_folder()).glob(f"sglang-*-{_python_tag()}")
    names = [f"sglang=={root.name.removeprefix('sglang-').removesuffix(f'-{_python_tag()}')}" for root in found]
    return sorted(name for name in names if installed_root(name, folder))


def install_release(name: str, folder: Path | None = None) -> Path:
    """Install a release such as `sglang==0.5.23`, unless it is there, and return its folder.

    Raises ReleaseNameError, WheelNotFoundError or PipFailedError; nothing is left behind then, nor after Ctrl-C.
    """
    root = _root_of(name, folder)
    if installed_root(name, folder):
        return root
    root.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(root.parent)
    partial = Path(tempfile.mkdtemp(prefix=f"{_PARTIAL}{os.getpid()}-", dir=root.parent))
    try:
        _pip_install(name, partial)
        _rename(partial / "release", root)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return root


def _root_of(name: str, folder: Path | None) -> Path:
    match = re.fullmatch(r"sglang==([0-9][0-9A-Za-z.+!]*)", name)
    if not match:
        raise ReleaseNameError(f"{name}: expected sglang==VERSION", f"poolproof targets install {KNOWN_RELEASES[-1]}")
    return (folder or targets_folder()) / f"sglang-{match[1]}-{_python_tag()}"


def _python_tag() -> str:
    """Implementation and version of this Python, such as cpython-311: a release's compiled parts fit no other."""
    return str(sys.implementation.cache_tag)


def _pip_install(name: str, partial: Path) -> None:
    """Pip's own temporary files go into `partial` too, so that they are gone with it."""
    temporary = partial / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--only-binary", ":all:", "--no-compile"]
    command += ["--disable-pip-version-check", "--quiet", "--target", str(partial / "release"), name]
    done = subprocess.run(
        command, env={**os.environ, "TMPDIR": str(temporary)}, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        raise _explained(name, done.stderr)
    if not (partial / "release" / _MEMORY_CACHE).is_dir():
        raise PipFailedError(
            f"{name}: its wheel holds no {_MEMORY_CACHE}, which poolproof reads", f"try {KNOWN_RELEASES[-1]}"
        )


def _explained(name: str, stderr: str) -> TargetInstallError:
    """What pip's failure means; its last words where that is not known."""
    if "No module named pip" in stderr:
        return PipFailedError(f"{name}: this Python has no pip: {sys.executable}", "python -m ensurepip")
    if _UNREACHED.search(stderr):
        return PipFailedError(f"{name}: the package index was not reached", "check the network, and pip's index")
    offered = re.search(r"\(from versions: (.+?)\)", stderr)
    if offered and offered[1] != "none":
        python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
        found = f"{name}: the package index has no wheel of it for {python} on this platform"
        if name in KNOWN_RELEASES:
            return WheelNotFoundError(found, "use CPython 3.11 on Linux x86_64 with glibc 2.34 or newer")
        latest = ", ".join(offered[1].split(", ")[-3:])
        return WheelNotFoundError(f"{found}, its latest: {latest}", f"poolproof targets install {KNOWN_RELEASES[-1]}")
    words = [line.strip() for line in stderr.splitlines() if line.strip()]
    said = next((line for line in reversed(words) if line.startswith("ERROR:")), words[-1] if words else "no message")
    return PipFailedError(f"{name}: pip failed: {said}", "mend what pip says (index, disk space), then try again")


def _rename(release: Path, root: Path) -> None:
    """Put the complete release in its place. Somebody else may have done so meanwhile: then theirs stays."""
    try:
        release.rename(root)
    except OSError:
        if not (root / _MEMORY_CACHE).is_dir():
            raise


def _remove_leftovers(folder: Path) -> None:
    """Temporary folders of processes that were killed."""
    for partial in folder.glob(f"{_PARTIAL}*"):
        owner = partial.name.removeprefix(_PARTIAL).partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists() and Path("/proc/self").exists():
            shutil.rmtree(partial, ignore_errors=True)
