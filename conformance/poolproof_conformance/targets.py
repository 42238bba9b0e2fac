"""Released engines, each in a folder of its own: installed from the package index without their dependencies.

A release lies whole in its folder or is not there: pip fills a temporary folder beside it, which is then renamed; an
interrupted or failed install leaves nothing behind. The folder's name carries the Python that its wheel was built for.

Of vLLM only the Python files are fetched, out of the wheel where it lies: its KV cache manager needs no compiled part,
and those are most of several hundred megabytes.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from platformdirs import user_data_path

from poolproof_conformance.errors import PoolproofError
from poolproof_conformance.partial_wheel import PartialWheelError, extract_some

KNOWN_RELEASES = ("sglang==0.5.22", "sglang==0.5.23")
"""Releases that the adapter was made for, oldest first."""
MEASURED_RELEASES = ("vllm==0.33.0",)
"""Releases that `poolproof bench` measures and that no adapter is for."""
FOLDER_VARIABLE = "POOLPROOF_TARGETS"
"""Environment variable that names another folder to install into."""
_PARTIAL = ".partial-"
_READ = {"sglang": Path("sglang", "srt", "mem_cache"), "vllm": Path("vllm", "v1", "core")}
"""Product to the folder of it that poolproof reads: a release that has it is there."""
_UNREACHED = re.compile(r"NewConnectionError|ConnectTimeout|ReadTimeout|ProxyError|connection broken|NameResolution")


class TargetInstallError(PoolproofError):
    """A release could not be installed."""


class ReleaseNameError(TargetInstallError):
    """Not of the form sglang==VERSION or vllm==VERSION."""


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
    return root if (root / _read_folder(name)).is_dir() else None


def installed_releases(folder: Path | None = None) -> list[str]:
    """Names of all releases of SGLang installed for this Python, sorted."""
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
        fetch = _fetch_python if name.startswith("vllm") else _pip_install
        fetch(name, partial)
        if not (partial / "release" / _read_folder(name)).is_dir():
            latest = KNOWN_RELEASES[-1] if name.startswith("sglang") else MEASURED_RELEASES[-1]
            raise PipFailedError(
                f"{name}: its wheel holds no {_read_folder(name)}, which poolproof reads", f"try {latest}"
            )
        _rename(partial / "release", root, _read_folder(name))
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return root


def _root_of(name: str, folder: Path | None) -> Path:
    match = re.fullmatch(r"(sglang|vllm)==([0-9][0-9A-Za-z.+!]*)", name)
    if not match:
        raise ReleaseNameError(
            f"{name}: expected sglang==VERSION or vllm==VERSION", f"poolproof targets install {KNOWN_RELEASES[-1]}"
        )
    return (folder or targets_folder()) / f"{match[1]}-{match[2]}-{_python_tag()}"


def _read_folder(name: str) -> Path:
    return _READ[name.partition("==")[0]]


def _python_tag() -> str:
    """Implementation and version of this Python, such as cpython-311: a release's compiled parts fit no other."""
    return str(sys.implementation.cache_tag)


def _pip_install(name: str, partial: Path) -> None:
    _pip(name, partial, "--no-compile", "--target", str(partial / "release"))


def _fetch_python(name: str, partial: Path) -> None:
    """The Python files of the wheel that pip would install."""
    report = partial / "report.json"
    _pip(name, partial, "--dry-run", "--ignore-installed", "--report", str(report))
    url = json.loads(report.read_text())["install"][0]["download_info"]["url"]
    try:
        extract_some(url, partial / "release", lambda file: file.endswith(".py"))
    except PartialWheelError as error:
        raise PipFailedError(f"{name}: {error}", "check the network, and pip's index") from None


def _pip(name: str, partial: Path, *arguments: str) -> None:
    """Run `pip install`. Its own temporary files go into `partial` too, so that they are gone with it."""
    temporary = partial / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "--quiet", *arguments, name]
    done = subprocess.run(
        command, env={**os.environ, "TMPDIR": str(temporary)}, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        raise _explained(name, done.stderr)


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
        if name in (*KNOWN_RELEASES, *MEASURED_RELEASES):
            return WheelNotFoundError(found, "use CPython 3.11 on Linux x86_64 with glibc 2.34 or newer")
        latest = ", ".join(offered[1].split(", ")[-3:])
        return WheelNotFoundError(f"{found}, its latest: {latest}", f"poolproof targets install {KNOWN_RELEASES[-1]}")
    words = [line.strip() for line in stderr.splitlines() if line.strip()]
    said = next((line for line in reversed(words) if line.startswith("ERROR:")), words[-1] if words else "no message")
    return PipFailedError(f"{name}: pip failed: {said}", "mend what pip says (index, disk space), then try again")


def _rename(release: Path, root: Path, read: Path) -> None:
    """Put the complete release in its place. Somebody else may have done so meanwhile: then theirs stays."""
    try:
        release.rename(root)
    except OSError:
        if not (root / read).is_dir():
            raise


def _remove_leftovers(folder: Path) -> None:
    """Temporary folders of processes that were killed."""
    for partial in folder.glob(f"{_PARTIAL}*"):
        owner = partial.name.removeprefix(_PARTIAL).partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists() and Path("/proc/self").exists():
            shutil.rmtree(partial, ignore_errors=True)
