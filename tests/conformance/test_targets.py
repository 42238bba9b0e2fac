"""Installing releases: names, pip's failures in our words, and that nothing is ever half installed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from poolproof_conformance import targets
from poolproof_conformance.targets import (
    PipFailedError,
    ReleaseNameError,
    WheelNotFoundError,
    install_release,
    installed_releases,
    installed_root,
    targets_folder,
)

from .wheels import write_wheel

NAME = "sglang==0.5.23"

GOOD_PIP = """
import pathlib, sys
target = pathlib.Path(sys.argv[sys.argv.index("--target") + 1])
(target / "sglang/srt/mem_cache").mkdir(parents=True)
"""
SLOW_PIP = GOOD_PIP + "print('half way', flush=True); import time; (target / 'started').touch(); time.sleep(60)"


def pip_that(monkeypatch: pytest.MonkeyPatch, folder: Path, code: str) -> None:
    """Make `python -m pip` run this code, in child processes."""
    folder.mkdir()
    (folder / "pip.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


def failing_pip(message: str) -> str:
    return f"import sys; sys.stderr.write({message!r}); sys.exit(1)"


def test_installs_into_a_folder_of_its_own_for_this_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_that(monkeypatch, tmp_path / "pip", GOOD_PIP)
    folder = tmp_path / "targets with a space"
    assert installed_root(NAME, folder) is None
    root = install_release(NAME, folder)
    assert root == folder / f"sglang-0.5.23-{sys.implementation.cache_tag}"
    assert installed_root(NAME, folder) == root
    assert installed_releases(folder) == [NAME]
    assert [path.name for path in folder.iterdir()] == [root.name]


def test_what_is_there_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_that(monkeypatch, tmp_path / "pip", GOOD_PIP)
    root = install_release(NAME, tmp_path / "targets")
    (root / "mine").touch()
    assert install_release(NAME, tmp_path / "targets") == root
    assert (root / "mine").exists()


def test_the_folder_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLPROOF_TARGETS", str(tmp_path / "elsewhere"))
    assert targets_folder() == tmp_path / "elsewhere"
    monkeypatch.delenv("POOLPROOF_TARGETS")
    assert targets_folder().name == "targets"


@pytest.mark.parametrize(
    "name", ["sglang", "sglang==", "sglang=0.5.23", "torch==1.0", "vllm==", "sglang==../../x", "sglang==0.5 .23"]
)
def test_a_name_that_is_no_release(name: str, tmp_path: Path) -> None:
    with pytest.raises(ReleaseNameError, match="expected sglang==VERSION or vllm==VERSION"):
        install_release(name, tmp_path / "targets")
    assert not (tmp_path / "targets").exists()


NOT_OFFERED = "ERROR: Could not find a version that satisfies the requirement {} (from versions: 0.5.21, 0.5.22)\n"


@pytest.mark.parametrize(
    ("name", "said", "error", "found", "fix"),
    [
        ("sglang==9.9", NOT_OFFERED, WheelNotFoundError, "its latest: 0.5.21, 0.5.22", "poolproof targets install"),
        (NAME, NOT_OFFERED, WheelNotFoundError, "no wheel of it for Python", "use CPython 3.11"),
        (NAME, "/python: No module named pip\n", PipFailedError, "has no pip", "python -m ensurepip"),
        (
            NAME,
            "WARNING: connection broken by 'X'\nERROR: y (from versions: none)",
            PipFailedError,
            "not reached",
            "network",
        ),
        (NAME, "ERROR: No space left on device\n", PipFailedError, "No space left on device", "try again"),
        (NAME, "", PipFailedError, "no message", "try again"),
    ],
)
def test_pip_fails(
    name: str,
    said: str,
    error: type[targets.TargetInstallError],
    found: str,
    fix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pip_that(monkeypatch, tmp_path / "pip", failing_pip(said.format(name)))
    with pytest.raises(error) as caught:
        install_release(name, tmp_path / "targets")
    assert found in caught.value.found
    assert fix in caught.value.fix
    assert "\n" not in caught.value.found + caught.value.fix
    assert list((tmp_path / "targets").iterdir()) == []


def test_a_wheel_without_the_memory_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_that(monkeypatch, tmp_path / "pip", "")
    with pytest.raises(PipFailedError, match=r"holds no sglang/srt/mem_cache"):
        install_release(NAME, tmp_path / "targets")
    assert list((tmp_path / "targets").iterdir()) == []


def test_ctrl_c_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_that(monkeypatch, tmp_path / "pip", SLOW_PIP)
    folder = tmp_path / "targets"
    monkeypatch.setenv("POOLPROOF_TARGETS", str(folder))
    code = f"from poolproof_conformance import targets; targets.install_release({NAME!r})"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not list(folder.glob("*/release/started")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert b"KeyboardInterrupt" in stderr
    assert list(folder.iterdir()) == []
    assert installed_root(NAME, folder) is None


def test_leftovers_of_a_killed_install_go_with_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_that(monkeypatch, tmp_path / "pip", GOOD_PIP)
    folder = tmp_path / "targets"
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for owner in (dead.pid, os.getpid()):
        (folder / f".partial-{owner}-x" / "release/sglang").mkdir(parents=True)
    root = install_release(NAME, folder)
    assert {path.name for path in folder.iterdir()} == {root.name, f".partial-{os.getpid()}-x"}


def test_two_at_a_time_end_with_one_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "targets"
    root = folder / f"sglang-0.5.23-{sys.implementation.cache_tag}"
    pip_that(
        monkeypatch,
        tmp_path / "pip",
        GOOD_PIP + f"pathlib.Path({str(root)!r}, 'sglang/srt/mem_cache').mkdir(parents=True)",
    )
    assert install_release(NAME, folder) == root
    assert list(folder.iterdir()) == [root]


VLLM = "vllm==0.33.0"
"""Only its Python files are fetched, out of the wheel that pip names."""


def pip_that_names(wheel: Path) -> str:
    report = {"install": [{"download_info": {"url": wheel.as_uri()}}]}
    return f"""
import json, pathlib, sys
assert "--dry-run" in sys.argv
pathlib.Path(sys.argv[sys.argv.index("--report") + 1]).write_text(json.dumps({report!r}))
"""


def test_of_vllm_the_python_files_are_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = write_wheel(tmp_path / "vllm.whl", {"vllm/v1/core/block_pool.py": b"x = 1", "vllm/big.so": b"0" * 1000})
    pip_that(monkeypatch, tmp_path / "pip", pip_that_names(wheel))
    root = install_release(VLLM, tmp_path / "targets")
    assert root == tmp_path / "targets" / f"vllm-0.33.0-{sys.implementation.cache_tag}"
    assert (root / "vllm/v1/core/block_pool.py").read_bytes() == b"x = 1"
    assert not (root / "vllm/big.so").exists()
    assert installed_root(VLLM, tmp_path / "targets") == root
    assert installed_releases(tmp_path / "targets") == []
    assert [path.name for path in (tmp_path / "targets").iterdir()] == [root.name]


@pytest.mark.parametrize(
    ("files", "forged", "found"),
    [
        ({"vllm/v1/core/block_pool.py": b"x = 1"}, {"vllm/v1/core/block_pool.py": b"x = 2"}, "SHA-256 is not the one"),
        ({"other/a.py": b""}, {}, "holds no vllm/v1/core"),
    ],
)
def test_a_wheel_of_vllm_that_will_not_do(
    files: dict[str, bytes], forged: dict[str, bytes], found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = write_wheel(tmp_path / "vllm.whl", files, forged)
    pip_that(monkeypatch, tmp_path / "pip", pip_that_names(wheel))
    with pytest.raises(PipFailedError) as caught:
        install_release(VLLM, tmp_path / "targets")
    assert found in caught.value.found
    assert list((tmp_path / "targets").iterdir()) == []
