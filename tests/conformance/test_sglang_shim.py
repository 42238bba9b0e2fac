"""The stand-ins: what they let through, what they stop, and how a release with a new import ends."""

import subprocess
import sys
from pathlib import Path

import pytest

LOAD = """
import sys
from pathlib import Path
from poolproof_conformance.sglang import shim, stand_in
shim.install(Path(sys.argv[1]))
def load(*names):
    return shim.load(["sglang.srt.mem_cache." + name for name in names])
"""


def engine(folder: Path, **modules: str) -> Path:
    """A small engine of that many modules under srt/mem_cache."""
    package = folder / "sglang/srt/mem_cache"
    package.mkdir(parents=True)
    (folder / "sglang/__init__.py").write_text("raise SystemExit('the whole engine was imported')")
    (package.parent / "managers").mkdir()
    for path in (package, package.parent, package.parent / "managers"):
        (path / "__init__.py").touch()
    for name, code in modules.items():
        (package / f"{name}.py").write_text(code)
    return folder


def run(root: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run code after LOAD in a process of its own."""
    return subprocess.run([sys.executable, "-c", LOAD + code, str(root)], capture_output=True, text=True, check=False)


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stderr.strip().splitlines()[-1]


def test_imports_subclasses_and_decorates(tmp_path: Path) -> None:
    root = engine(
        tmp_path,
        pools="""
import tvm_ffi, tvm_ffi.language as tl
from pydantic import BaseModel
from sglang.srt.managers.schedule_batch import Req
from .other import VALUE
@tvm_ffi.jit
def kernel(x: tl.constexpr): pass
class Settings(BaseModel, frozen=True):
    def __init__(self): self.value = VALUE
value = Settings().value
""",
        other="VALUE = 3",
    )
    done = run(
        root, "(pools,) = load('pools'); print(pools.value, 'tvm_ffi' in sys.modules, 'pydantic' in sys.modules)"
    )
    assert done.stdout.split() == ["3", "False", "False"], done.stderr


def test_a_new_import_is_named_with_the_remedy(tmp_path: Path) -> None:
    root = engine(tmp_path, pools="import other_json\n", front="from sglang.srt.mem_cache import pools\n")
    done = run(root, "load('front')")
    assert "UnknownImportError: sglang.srt.mem_cache.pools, line 1 imports 'other_json'" in done.stderr
    assert "fix: pip install the package that provides 'other_json'" in last_line(done)
    assert "INERT_MODULES in poolproof_conformance/sglang/shim.py" in last_line(done)


@pytest.mark.parametrize("code", ["from .pools import Gone", "import sglang.srt.mem_cache.gone"])
def test_what_a_release_moved_is_named(code: str, tmp_path: Path) -> None:
    done = run(engine(tmp_path, pools="", front=code), "load('front')")
    assert "ShimError: sglang.srt.mem_cache.front, line 1:" in done.stderr
    assert "gone" in done.stderr.lower()
    assert "fix: this release moved what the adapter uses" in last_line(done)


def test_a_stand_in_that_is_executed_is_an_error(tmp_path: Path) -> None:
    root = engine(
        tmp_path,
        pools="""
import tvm_ffi
from zmq import Poller
@tvm_ffi.jit
def kernel(x): pass
def copy(): return tvm_ffi.cdiv(5, 2)
""",
    )
    done = run(
        root,
        """
(pools,) = load('pools')
for call in ("copy()", "Poller()", "Poller.poll()", "kernel(1)", "kernel[(1,)](1)"):
    try:
        eval(f"pools.{call}")
    except stand_in.StandInCalledError as error:
        print(error)
""",
    )
    said = done.stdout.splitlines()
    assert [line.split()[3] for line in said[::2]] == [
        "tvm_ffi.cdiv,",
        "zmq.Poller,",
        "zmq.Poller.poll,",
        "tvm_ffi.jit,",
        "tvm_ffi.jit,",
    ]
    assert all(line.startswith("  fix: install the real package") for line in said[1::2])


def test_only_the_engine_is_answered(tmp_path: Path) -> None:
    done = run(engine(tmp_path, pools="import tvm_ffi"), "load('pools'); import tvm_ffi")
    assert last_line(done) == "ModuleNotFoundError: No module named 'tvm_ffi'"


def test_torch_is_itself_again(tmp_path: Path) -> None:
    root = engine(tmp_path, pools="import torch; assert torch.compile(abs) is abs")
    done = run(
        root,
        "import torch; real = torch.compile, torch.compiler.disable; load('pools')\n"
        "print(real == (torch.compile, torch.compiler.disable))",
    )
    assert done.stdout.strip() == "True", done.stderr


def test_a_folder_without_a_release(tmp_path: Path) -> None:
    done = run(tmp_path, "")
    assert f"ShimError: {tmp_path} holds no sglang/srt/mem_cache" in done.stderr
    assert last_line(done).strip() == "fix: poolproof targets install sglang==VERSION"


def test_one_release_for_each_process(tmp_path: Path) -> None:
    done = run(engine(tmp_path, pools=""), "load('pools'); shim.install(Path(sys.argv[1]))")
    assert "ShimError: sglang is already imported in this process" in done.stderr
