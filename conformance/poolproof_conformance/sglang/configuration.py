"""The engine's run-time configuration, filled in without its ServerArgs: only the leaves that the memory cache reads.

`publish(ServerArgs(...))` would need the whole engine. A leaf that a release reads and that is not listed here ends in
the engine's own AttributeError, "config namespace ... has no leaf ...": add it below with the value of a plain server.
"""

from types import SimpleNamespace
from typing import Any

LEAVES: dict[str, dict[str, object]] = {
    "memory": {"enable_hierarchical_cache": False, "hicache_storage_backend": None},
    "disagg": {"disaggregation_mode": "null"},
    "spec": {"speculative_algorithm": None},
    "serving": {"strip_thinking_cache": False},
    "observability": {"extra_metric_labels": None},
    "exec": {},
    "exec.mamba": {"mamba_max_states_per_path": -1, "enable_mamba_extra_buffer_lazy": False},
    "parallel": {"attn_dcp_size": 1, "attn_dcp_rank": 0, "dcp_enabled": False},
}
"""Namespace to leaf to value: no host tier, disaggregation or speculation, one rank, states at sequence ends only."""

STATE_CHUNK_TOKENS = 64
"""Granularity of states inside a sequence, in tokens: the engine's max(64, page size). Only told by a match."""


def configure(runtime_context: Any) -> None:
    """Publish LEAVES in the engine's runtime context (`sglang.srt.runtime_context`), replacing what was there."""
    runtime_context.reset_context()
    bags: dict[str, Any] = {}
    for path, leaves in LEAVES.items():
        bag = runtime_context._ConfigBag(path)
        for name, value in leaves.items():
            bag._set(name, value)
        top, _, inner = path.partition(".")
        if inner:
            bags[top]._set_sub(inner, bag)
        else:
            bags[top] = bag
    context = runtime_context.get_context()
    context._config_bags = bags
    context.parallel._config = bags["parallel"]
    context._server_args = SimpleNamespace(_mamba_cache_chunk_size=STATE_CHUNK_TOKENS)
