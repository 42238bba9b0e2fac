"""The released engine in this process: the names of it that the adapter uses, and the tree core that it really runs."""

import os
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Literal

from poolproof_conformance.sglang import configuration, cpu_device, shim

Core = Literal["python", "rust"]
CORE_VARIABLE = "SGLANG_UNIFIED_RADIX_TREE_CORE_BACKEND"
"""Environment variable by which the engine chooses its tree core; read when the cache is built."""
CORE_CLASSES: dict[Core, str] = {"python": "UnifiedTreeCore", "rust": "RustUnifiedTreeCore"}
"""What `type(cache.tree_core)` must be called: the engine falls back to Python with a log line only."""

_MEM_CACHE = "sglang.srt.mem_cache."
_MODULES = (
    "allocator.unified_hybrid_swa",
    "allocator.unified_sub_pool",
    "allocator.paged",
    "unified_memory_pool",
    "unified_radix_cache",
    "cache_init_params",
    "base_prefix_cache",
    "radix_cache",
    "common",
    "allocation",
)


class TreeCoreError(RuntimeError):
    """The engine runs another tree core than was asked for."""


class Engine:
    """The engine's names, imported behind the shim. Only one in a process."""

    def __init__(self, root: Path, core: Core) -> None:
        os.environ[CORE_VARIABLE] = core
        self.core: Core = core
        shim.install(root)
        with redirect_stdout(sys.stderr):
            shim.load(["torch", "sglang.srt.runtime_context"])
            modules: list[Any] = list(shim.load([_MEM_CACHE + name for name in _MODULES]))
        _, sub_pool, paged, pools, radix, init, base, keys, common, allocation = modules
        self.runtime_context: Any = sys.modules["sglang.srt.runtime_context"]
        self.version = _version(root)
        self.pools: Any = pools
        self.cache_class: Any = radix.UnifiedRadixCache
        self.components: Any = radix.ComponentType
        self.init_params: Any = init.CacheInitParams
        self.base: Any = base
        self.radix_key: Any = keys.RadixKey
        self.common: Any = common
        self.allocation: Any = allocation
        self.stream = cpu_device.Stream()
        self._onto_the_cpu(sub_pool, paged)

    def _onto_the_cpu(self, sub_pool: Any, paged: Any) -> None:
        import torch

        sub_pool.alloc_extend_kernel = cpu_device.extend_kernel(paged.alloc_extend_naive)
        sub_pool.alloc_decode_kernel = cpu_device.decode_kernel(paged.alloc_decode_naive)
        torch.cuda.current_stream = lambda *_: self.stream  # type: ignore[assignment]

    def configure(self) -> None:
        """Publish the configuration leaves afresh; called before each build."""
        configuration.configure(self.runtime_context)

    def core_class(self) -> str:
        """Class name of the tree core: every build checks that it is this one that runs."""
        return CORE_CLASSES[self.core]

    def check_core(self, cache: Any) -> None:
        """TreeCoreError where the cache runs another tree core than was asked for."""
        found = type(cache.tree_core).__name__
        if found != CORE_CLASSES[self.core]:
            raise TreeCoreError(
                f"asked for the {self.core} tree core, the engine runs {found}.\n"
                f"  fix: install a torch that sglang {self.version}'s Rust core supports, or ask for core python"
            )


def _version(root: Path) -> str:
    """Version of the engine in `root`, from its metadata; `unknown` where there is none."""
    for folder in root.glob("sglang-*.dist-info"):
        found = re.fullmatch(r"sglang-(.+)\.dist-info", folder.name)
        if found:
            return found[1]
    return "unknown"
