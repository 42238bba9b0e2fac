"""Import vLLM's KV cache manager without the engine around it: sibling of sglang/shim.py, by the same rules.

torch, numpy and msgspec are real and are executed. Packages whose `__init__` pulls the engine in are made importable
without running it; modules from which the cache manager takes names for types only are answered by stand-ins, as are
packages that are not installed. Stand-ins leave `sys.modules` when the engine is loaded, and calling one later is an
error. A release that imports a module unknown to this file ends in UnknownImportError, which names it.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType, ModuleType

from poolproof_conformance.sglang.shim import UnknownImportError
from poolproof_conformance.sglang.stand_in import ShimError, module_getattr

ENGINE = "vllm"
"""Top-level package of the engine."""

BARE_PACKAGES = frozenset(
    {
        "vllm",
        "vllm.v1",
        "vllm.v1.attention",
        "vllm.v1.attention.backends",
        "vllm.v1.core",
        "vllm.v1.metrics",
        "vllm.v1.structured_output",
    }
)
"""Packages of the engine whose `__init__` is not run; their submodules import as usual."""

CUT_MODULES = frozenset(
    {
        "vllm.compilation",
        "vllm.config",
        "vllm.distributed",
        "vllm.multimodal",
        "vllm.platforms",
        "vllm.pooling_params",
        "vllm.sampling_params",
        "vllm.usage",
        "vllm.utils.network_utils",
        "vllm.utils.system_utils",
        "vllm.v1.core.sched",
        "vllm.v1.engine",
        "vllm.v1.metrics.perf",
    }
)
"""Modules of the engine answered by a stand-in altogether: the cache manager takes names from them for types, for
events that are off, and for figures that are not taken."""

INERT_MODULES = frozenset({"cbor2", "prometheus_client", "regex", "transformers", "uvloop", "xxhash", "zmq"})
"""Packages imported at module top and never executed on this path; stood in for where they are not installed."""


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


def install(root: Path) -> None:
    """Make the engine that was unpacked into `root` importable in this process. One engine for each process."""
    if ENGINE in sys.modules:
        raise ShimError(f"{ENGINE} is already imported in this process.\n  fix: a process of its own for each release")
    if not (root / ENGINE / "v1" / "core").is_dir():
        raise ShimError(f"{root} holds no {ENGINE}/v1/core.\n  fix: poolproof targets install {ENGINE}==VERSION")
    sys.path.insert(0, str(root))
    sys.meta_path.insert(0, _EngineFinder(root))
    sys.meta_path.append(_AbsentFinder())


def load(modules: Sequence[str]) -> list[ModuleType]:
    """Import the engine's modules behind the shim. Raises ShimError, which names what the shim does not know."""
    try:
        return [importlib.import_module(name) for name in modules]
    except ShimError:
        raise
    except ImportError as error:
        module = error.name or "?"
        if isinstance(error, ModuleNotFoundError) and module.partition(".")[0] != ENGINE:
            raise UnknownImportError(
                f"vllm imports {module!r}, which is neither installed nor stood in for.\n"
                "  fix: install it; or, if the cache manager never executes it, add it to INERT_MODULES in "
                "poolproof_conformance/vllm/shim.py",
                name=module,
            ) from error
        raise ShimError(
            f"{error}.\n  fix: this release moved what poolproof_conformance/vllm uses", name=module
        ) from error
    finally:
        _withdraw()


def _withdraw() -> None:
    """Take the stand-ins of absent packages out of `sys.modules`, so that nobody else finds them there."""
    absent = [
        name
        for name, module in sys.modules.items()
        if name.partition(".")[0] in INERT_MODULES and isinstance(getattr(module, "__loader__", None), _Loader)
    ]
    for name in absent:
        del sys.modules[name]
