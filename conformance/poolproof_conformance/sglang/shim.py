"""Import an engine's memory cache without the seventy packages that the whole engine asks for.

torch, numpy, msgspec and packaging are real and are executed. Everything else that the memory cache imports but never
runs on the CPU is answered by stand-ins: modules whose every attribute is an inert class. Three things keep that
honest. A stand-in answers imports of the engine's own frames only, and only where the real module is not installed.
It is taken out of `sys.modules` once the engine is loaded. And once loading is over, *calling* one is an error: a
result that an inert object made up would be worse than no result.

A release that imports a module unknown to this file ends in UnknownImportError, which names the module and the remedy.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from poolproof_conformance.sglang.stand_in import ShimError, module_getattr

ENGINE = "sglang"
"""Top-level package of the engine."""

INERT_MODULES = frozenset(
    {
        "PIL",
        "orjson",
        "psutil",
        "pybase64",
        "pydantic",
        "pydantic_core",
        "requests",
        "starlette",
        "torchvision",
        "transformers",
        "triton",
        "tvm_ffi",
        "zmq",
    }
)
"""Packages that the engine's memory cache imports at module top but never executes on the CPU."""

BARE_PACKAGES = frozenset(
    {
        "sglang",
        "sglang.srt.configs",
        "sglang.srt.layers.quantization",
        "sglang.srt.layers.deep_gemm_wrapper",
    }
)
"""Packages of the engine whose `__init__` is not run (it pulls the engine in); their submodules import as usual."""

CUT_MODULES = frozenset(
    {
        "sglang.srt.configs.model_config",
        "sglang.srt.utils.hf_transformers",
        "sglang.srt.managers.schedule_batch",
    }
)
"""Modules of the engine answered by a stand-in altogether: the memory cache takes names from them for types only."""


class UnknownImportError(ShimError):
    """The release imports a module that is neither installed nor stood in for."""


class _Loader(importlib.abc.Loader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return ModuleType(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__getattr__"] = module_getattr(module)


class _EngineFinder(importlib.abc.MetaPathFinder):
    """Comes first: the engine's own packages whose `__init__` is not run, and its modules that are cut."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        cut = any(name == module or name.startswith(f"{module}.") for module in CUT_MODULES)
        if name not in BARE_PACKAGES and not cut:
            return None
        spec = importlib.machinery.ModuleSpec(name, _Loader(), is_package=True)
        if name in BARE_PACKAGES:
            spec.submodule_search_locations = [str(self.root.joinpath(*name.split(".")))]
        return spec


class _AbsentFinder(importlib.abc.MetaPathFinder):
    """Comes last: packages that are not installed, asked for by a frame of the engine."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] not in INERT_MODULES or not _engine_asks():
            return None
        return importlib.machinery.ModuleSpec(name, _Loader(), is_package=True)


def _engine_asks() -> bool:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == ENGINE


def withdraw() -> None:
    """Take the stand-ins of absent packages out of `sys.modules`, so that nobody else finds them there."""
    absent = [
        name
        for name, module in sys.modules.items()
        if name.partition(".")[0] in INERT_MODULES and isinstance(getattr(module, "__loader__", None), _Loader)
    ]
    for name in absent:
        del sys.modules[name]


@contextmanager
def _identity_compile() -> Iterator[None]:
    """While the engine loads, `torch.compile` and `torch.compiler.disable` return their function unchanged.

    The real ones import torch._dynamo, which takes the stand-in for triton to be triton.
    """
    import torch

    def identity(function: Any = None, *_: Any, **__: Any) -> Any:
        return function if callable(function) else lambda inner: inner

    real = torch.compile, torch.compiler.disable
    torch.compile, torch.compiler.disable = identity, identity  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.compile, torch.compiler.disable = real


def install(root: Path) -> None:
    """Make the engine that was unpacked into `root` importable in this process. One engine for each process."""
    if ENGINE in sys.modules:
        raise ShimError(
            f"{ENGINE} is already imported in this process from {sys.modules[ENGINE].__path__[0]}.\n"
            "  fix: run each release in a process of its own: python -m poolproof_conformance.sglang.child"
        )
    if not (root / ENGINE / "srt" / "mem_cache").is_dir():
        raise ShimError(f"{root} holds no {ENGINE}/srt/mem_cache.\n  fix: poolproof targets install {ENGINE}==VERSION")
    sys.path.insert(0, str(root))
    sys.meta_path.insert(0, _EngineFinder(root))
    sys.meta_path.append(_AbsentFinder())


def load(modules: Sequence[str]) -> list[ModuleType]:
    """Import the engine's modules behind the shim; raises UnknownImportError for an import that it does not know."""
    try:
        with _identity_compile():
            return [importlib.import_module(name) for name in modules]
    except ShimError:
        raise
    except ImportError as error:
        raise _explained(error) from error
    finally:
        withdraw()


def _explained(error: ImportError) -> ShimError:
    importer = "?"
    traceback = error.__traceback__
    while traceback is not None:
        name = str(traceback.tb_frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] == ENGINE:
            importer = f"{name}, line {traceback.tb_lineno}"
        traceback = traceback.tb_next
    module = error.name or "?"
    if isinstance(error, ModuleNotFoundError) and module.partition(".")[0] != ENGINE:
        top = module.partition(".")[0]
        return UnknownImportError(
            f"{importer} imports {module!r}, which is neither installed nor stood in for.\n"
            f"  fix: pip install the package that provides {top!r}; or, if the memory cache never executes it on the "
            f"CPU, add {top!r} to INERT_MODULES in poolproof_conformance/sglang/shim.py",
            name=module,
        )
    return ShimError(
        f"{importer}: {error}.\n  fix: this release moved what the adapter uses; "
        "compare its srt/mem_cache with poolproof_conformance/sglang/engine.py",
        name=module,
    )
