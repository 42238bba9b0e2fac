"""The released engine's names that the benchmark uses: KV cache manager, request, specs of the groups.

Two answers are given in place of what is cut away, both those of a plain server on the CPU: there is no current
configuration, and the platform registers no kinds of KV cache of its own.
"""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from poolproof_conformance.vllm import shim

_MODULES = (
    "vllm.v1.core.kv_cache_manager",
    "vllm.v1.core.kv_cache_utils",
    "vllm.v1.kv_cache_interface",
    "vllm.v1.request",
    "vllm.utils.hashing",
    "vllm.config",
    "vllm.platforms",
)


class Engine:
    """The engine's names, imported behind the shim. Only one in a process."""

    def __init__(self, root: Path) -> None:
        shim.install(root)
        shim.load(["torch"])
        modules: list[Any] = list(shim.load(_MODULES))
        managers, utils, interface, request, hashing, config, platforms = modules
        config.get_current_vllm_config_or_none = lambda: None
        platforms.current_platform = SimpleNamespace(register_custom_kv_cache_specs=lambda _: None)
        self.version = _version(root)
        self.manager_class: Any = managers.KVCacheManager
        self.request_class: Any = request.Request
        self.interface: Any = interface
        self._hash = hashing.sha256
        self._utils: Any = utils
        utils.init_none_hash(self._hash)

    def hasher(self, block_tokens: int) -> Any:
        """What gives a request its block hashes, so that its blocks are cached: the engine's own default."""
        return self._utils.get_request_block_hasher(block_tokens, self._hash)

    def manager(self, blocks: int, block_tokens: int, window_tokens: int) -> Any:
        """A KVCacheManager of `blocks` blocks over a full-attention group and a sliding-window group."""
        import torch

        size: dict[str, Any] = {
            "block_size": block_tokens,
            "num_kv_heads": 1,
            "head_size": 8,
            "dtype": torch.float16,
        }
        full = self.interface.FullAttentionSpec(**size)
        window = self.interface.SlidingWindowSpec(**size, sliding_window=window_tokens)
        group = self.interface.KVCacheGroupSpec
        return self.manager_class(
            self.interface.KVCacheConfig(
                num_blocks=blocks,
                kv_cache_tensors=[],
                kv_cache_groups=[group(["full"], full), group(["window"], window)],
            ),
            max_model_len=2**40,
            scheduler_block_size=block_tokens,
            hash_block_size=block_tokens,
            enable_caching=True,
        )


def _version(root: Path) -> str:
    """Version of the engine in `root`, from its metadata; `unknown` where there is none."""
    for folder in root.glob("vllm-*.dist-info"):
        found = re.fullmatch(r"vllm-(.+)\.dist-info", folder.name)
        if found:
            return found[1]
    return "unknown"
