"""The arguments of SGLang's factories that give exactly a geometry, as source text.

The same inversion as in poolproof_conformance/sglang/factory.py, which needs torch and the engine; this needs neither.
"""

from poolproof_conformance.adapter import UnsupportedGeometryError
from poolproof_spec.geometry import Geometry

LAYER_BYTES = 32
"""Bytes of one token in one layer: K and V of one head of 8 in 16-bit."""
CONV_ROW_BYTES = 16
"""Bytes of one row of the convolution state: 8 channels in 16-bit."""
TEMPORAL_BYTES = 128
"""The temporal state, (1, 4, 8) in 32-bit, that a 176-byte state page holds beside a (3, 8) convolution state."""
REQUEST_ROWS = 4


def factory_arguments(geometry: Geometry, *, lazy: bool) -> dict[str, str]:
    """Name to source text, in order. Raises UnsupportedGeometryError where no arguments give such pages."""
    full = _layers(geometry, "full")
    swa = _layers(geometry, "swa") if geometry.has_role("swa") else 0
    layers = full + swa + geometry.has_role("state")
    arguments: dict[str, object] = {
        "device": "DEVICE",
        "kv_cache_dtype": "torch.float16",
        "head_num": 1,
        "head_dim": 8,
        "v_head_dim": 8,
        "page_size": "PAGE_TOKENS",
        "start_layer": 0,
        "end_layer": layers if not swa else full + swa,
        "full_attention_layer_ids": list(range(full)),
        "enable_memory_saver": False,
        "need_sort": False,
        "lazy_compaction": lazy,
    }
    if swa:
        arguments |= {
            "swa_attention_layer_ids": list(range(full, full + swa)),
            "swa_head_num": 1,
            "swa_head_dim": 8,
            "swa_v_head_dim": 8,
        }
    if not geometry.has_role("state"):
        return _text(arguments | {"total_bytes": geometry.total_bytes})
    arguments |= {
        "mamba_layer_ids": [full + swa],
        "mamba2_cache_params": _state_parameters(geometry),
        "max_mamba_cache_size": 0,
        "unified_total_bytes": geometry.total_bytes,
        "model_context_len": "PAGE_TOKENS",
        "extra_max_context_len": 0,
        "max_num_reqs": REQUEST_ROWS,
        "enable_mamba_extra_buffer": False,
        "enable_mamba_extra_buffer_lazy": False,
        "disable_overlap_schedule": True,
        "speculative_num_draft_tokens": None,
    }
    if not swa:
        arguments |= {"is_draft_worker": False, "use_mla_backend": False}
        return _text(arguments | {"max_total_num_tokens": _tokens_held(geometry, "full")})
    return _text(
        arguments
        | {
            "full_max_total_num_tokens": _tokens_held(geometry, "full"),
            "swa_max_total_num_tokens": _tokens_held(geometry, "swa"),
            "sliding_window_size": geometry.window_tokens,
        }
    )


def _text(arguments: dict[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in arguments.items()}


def _layers(geometry: Geometry, role: str) -> int:
    member = next(member for member in geometry.members if member.role == role)
    layers, rest = divmod(member.page_bytes, LAYER_BYTES * geometry.page_tokens)
    if rest or not layers:
        raise UnsupportedGeometryError(
            f"{member.name}: page_bytes {member.page_bytes} is no multiple of {LAYER_BYTES * geometry.page_tokens}"
        )
    return layers


def _state_parameters(geometry: Geometry) -> str:
    member = next(member for member in geometry.members if member.role == "state")
    rows, temporal = divmod(member.page_bytes, CONV_ROW_BYTES), "(0, 1, 1)"
    if member.page_bytes == 3 * CONV_ROW_BYTES + TEMPORAL_BYTES:
        rows, temporal = (3, 0), "(1, 4, 8)"
    if rows[1]:
        raise UnsupportedGeometryError(
            f"{member.name}: page_bytes {member.page_bytes} is no multiple of {CONV_ROW_BYTES} (a row of 8 in 16-bit)"
        )
    return (
        "SimpleNamespace(\n"
        f"            shape=SimpleNamespace(conv=[({rows[0]}, 8)], temporal={temporal}),\n"
        "            dtype=SimpleNamespace(conv=torch.bfloat16, temporal=torch.float32),\n"
        "            layers=[0],\n"
        "        )"
    )


def _tokens_held(geometry: Geometry, role: str) -> int:
    """Tokens of `role` that the arena could hold were it all theirs: caps of the engine's per-side views."""
    member = next(member for member in geometry.members if member.role == role)
    return member.page_count * geometry.page_tokens
