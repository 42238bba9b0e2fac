"""From a geometry to the engine's pools and cache: the arguments of its factories that give exactly those sizes.

Inverted formulas (unified_memory_pool.py of 0.5.23, lines 388-409, 533-536 and 1673-1689, 2405-2420): a token takes 32
bytes a layer (one head of 8, K and V, 16-bit), so a page of e bytes is e / (32 * page_tokens) layers; a state page is
one layer's convolution state (rows of 8 in 16-bit) and, for 176 bytes, the temporal state (1, 4, 8) in 32-bit too. The
arena's size goes in as a byte budget, so that every total can be had; token and state counts, which then are labels of
the boot and caps of the engine's per-side views, are set to what the whole arena would hold.
"""

import inspect
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from types import SimpleNamespace
from typing import Any

import msgspec

from poolproof_conformance.adapter import UnsupportedGeometryError
from poolproof_conformance.sglang import shim
from poolproof_conformance.sglang.engine import Engine
from poolproof_spec.geometry import Geometry, layout_name

LAYER_BYTES = 32
"""Bytes of one token in one layer: K and V of one head of 8 in 16-bit."""
CONV_ROW_BYTES = 16
"""Bytes of one row of the convolution state: 8 channels in 16-bit."""
TEMPORAL_SHAPE, TEMPORAL_BYTES = (1, 4, 8), 128
"""The temporal state that a 176-byte state page holds besides a (3, 8) convolution state, in 32-bit."""
EMPTY_TEMPORAL_SHAPE = (0, 1, 1)
REQUEST_ROWS = 4
"""Rows of the engine's request table: demands here take no rows, one would do."""


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """One engine pool with its prefix cache."""

    layout: str
    allocator: Any
    cache: Any
    arena: Any
    """The engine's raw byte tensor."""
    members: tuple[Any, ...]
    """The engine's sub-allocators, in chain order."""
    states: Any
    """Its state slot allocator; None where the layout has no states."""
    requests: Any
    """Its request table, which owns the state slots; None where the layout has no states."""
    states_in_tree: bool
    """Whether prefixes are cached with states: the engine needs one-token pages for that without its extra buffer."""


def build(engine: Engine, geometry: Geometry, *, lazy: bool) -> Built:
    """The engine's pools of exactly this geometry. Raises UnsupportedGeometryError where it cannot have them."""
    layout = layout_name(geometry)
    if layout not in _FACTORIES:
        chain = ", ".join(f"{m.name} {m.role} {m.kind}" for m in geometry.members)
        raise UnsupportedGeometryError(f"sglang has the layouts {sorted(_FACTORIES)}, this chain is [{chain}]")
    engine.configure()
    with redirect_stdout(sys.stderr):
        try:
            bundle = _FACTORIES[layout](engine, geometry, lazy)
        except (RuntimeError, AssertionError) as error:
            raise UnsupportedGeometryError(f"sglang {engine.version} refuses to build it: {error}") from error
        built = _with_cache(engine, geometry, layout, bundle)
    shim.withdraw()  # building the first pool imports more of the engine
    _check_sizes(geometry, built)
    return built


def _layers(geometry: Geometry, role: str) -> int:
    member = next(m for m in geometry.members if m.role == role)
    layers, rest = divmod(member.page_bytes, LAYER_BYTES * geometry.page_tokens)
    if rest or not layers:
        raise UnsupportedGeometryError(
            f"{member.name}: page_bytes {member.page_bytes} is no multiple of {LAYER_BYTES * geometry.page_tokens} "
            f"({LAYER_BYTES} bytes a token and layer, {geometry.page_tokens} tokens a page)"
        )
    return layers


def _state_shape(geometry: Geometry) -> SimpleNamespace:
    import torch

    member = next(m for m in geometry.members if m.role == "state")
    conv_bytes, temporal = int(member.page_bytes), EMPTY_TEMPORAL_SHAPE
    if conv_bytes == 3 * CONV_ROW_BYTES + TEMPORAL_BYTES:
        conv_bytes, temporal = 3 * CONV_ROW_BYTES, TEMPORAL_SHAPE
    if conv_bytes % CONV_ROW_BYTES:
        raise UnsupportedGeometryError(
            f"{member.name}: page_bytes {member.page_bytes} is no multiple of {CONV_ROW_BYTES} (a row of 8 in 16-bit)"
        )
    return SimpleNamespace(
        shape=SimpleNamespace(conv=[(conv_bytes // CONV_ROW_BYTES, 8)], temporal=temporal),
        dtype=SimpleNamespace(conv=torch.bfloat16, temporal=torch.float32),
        layers=[0],
    )


def _token_arguments(geometry: Geometry, lazy: bool) -> dict[str, Any]:
    import torch

    return {
        "device": "cpu",
        "kv_cache_dtype": torch.float16,
        "head_num": 1,
        "head_dim": 8,
        "v_head_dim": 8,
        "page_size": geometry.page_tokens,
        "start_layer": 0,
        "enable_memory_saver": False,
        "need_sort": False,
        "lazy_compaction": lazy,
    }


def _layer_ids(full: int, swa: int) -> dict[str, Any]:
    return {
        "end_layer": full + swa,
        "full_attention_layer_ids": list(range(full)),
        "swa_attention_layer_ids": list(range(full, full + swa)),
        "swa_head_num": 1,
        "swa_head_dim": 8,
        "swa_v_head_dim": 8,
    }


def _state_arguments(geometry: Geometry) -> dict[str, Any]:
    return {
        "mamba2_cache_params": _state_shape(geometry),
        "max_mamba_cache_size": 0,
        "unified_total_bytes": geometry.total_bytes,
        "model_context_len": geometry.page_tokens,
        "extra_max_context_len": 0,
        "max_num_reqs": REQUEST_ROWS,
        "enable_mamba_extra_buffer": False,
        "enable_mamba_extra_buffer_lazy": False,
        "disable_overlap_schedule": True,
        "speculative_num_draft_tokens": None,
    }


def _call(factory: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Call a factory with those arguments that this release of it has."""
    known = inspect.signature(factory).parameters
    return factory(**{name: value for name, value in arguments.items() if name in known})


def _swa2(engine: Engine, geometry: Geometry, lazy: bool) -> Any:
    layers = _layer_ids(_layers(geometry, "full"), _layers(geometry, "swa"))
    return _call(
        engine.pools.init_unified_swa_pools,
        _token_arguments(geometry, lazy) | layers | {"total_bytes": geometry.total_bytes},
    )


def _mamba2(engine: Engine, geometry: Geometry, lazy: bool) -> Any:
    full = _layers(geometry, "full")
    more = {
        "end_layer": full + 1,
        "full_attention_layer_ids": list(range(full)),
        "mamba_layer_ids": [full],
        "is_draft_worker": False,
        "use_mla_backend": False,
        "max_total_num_tokens": _tokens_held(geometry, "full"),
    }
    return _call(
        engine.pools.init_unified_mamba_pools, _token_arguments(geometry, lazy) | _state_arguments(geometry) | more
    )


def _tri(engine: Engine, geometry: Geometry, lazy: bool) -> Any:
    full, swa = _layers(geometry, "full"), _layers(geometry, "swa")
    more = {
        "mamba_layer_ids": [full + swa],
        "full_max_total_num_tokens": _tokens_held(geometry, "full"),
        "swa_max_total_num_tokens": _tokens_held(geometry, "swa"),
        "sliding_window_size": geometry.window_tokens,
    }
    arguments = _token_arguments(geometry, lazy) | _layer_ids(full, swa) | _state_arguments(geometry) | more
    return _call(engine.pools.init_unified_mamba_swa_pools, arguments)


_FACTORIES: dict[str, Callable[[Engine, Geometry, bool], Any]] = {"swa2": _swa2, "mamba2": _mamba2, "tri": _tri}


def _tokens_held(geometry: Geometry, role: str) -> int:
    """Tokens of `role` that the arena could hold were it all theirs: the caps of the engine's per-side views."""
    member = next(m for m in geometry.members if m.role == role)
    return member.page_count * geometry.page_tokens


def _with_cache(engine: Engine, geometry: Geometry, layout: str, bundle: Any) -> Built:
    allocator = bundle.token_to_kv_pool_allocator
    requests = getattr(bundle, "req_to_token_pool", None)
    full = allocator.full_attn_allocator
    swa = getattr(allocator, "swa_attn_allocator", None)
    states_in_tree = requests is not None and geometry.page_tokens == 1
    kinds = engine.components
    parts = [kinds.FULL] + [kinds.SWA] * (swa is not None) + [kinds.MAMBA] * states_in_tree
    parameters = {
        "disable": False,
        "req_to_token_pool": requests,
        "token_to_kv_pool_allocator": allocator,
        "page_size": geometry.page_tokens,
        "sliding_window_size": geometry.window_tokens or None,
        "tree_components": tuple(parts),
    }
    cache = engine.cache_class(_call(engine.init_params, parameters))
    cache.pretty_print = lambda: None  # the engine prints its whole tree whenever an allocation fails
    engine.check_core(cache)
    by_role = {"full": full, "swa": swa, "state": getattr(allocator, "mamba_allocator", None)}
    return Built(
        layout=layout,
        allocator=allocator,
        cache=cache,
        arena=bundle.unified_memory_pool._raw,
        members=tuple(by_role[m.role] for m in geometry.members),
        states=None if requests is None else requests.mamba_allocator,
        requests=requests,
        states_in_tree=states_in_tree,
    )


def _check_sizes(geometry: Geometry, built: Built) -> None:
    """The engine's own sizes must be those asked for: a history on another pool would prove nothing."""
    if built.arena.numel() != geometry.total_bytes:
        raise UnsupportedGeometryError(
            f"the engine made an arena of {built.arena.numel()} bytes, {geometry.total_bytes} were asked for"
        )
    for member, made in zip(geometry.members, built.members, strict=True):
        wanted = member.page_bytes, member.first_page, member.page_count
        found = made.entry_bytes_per_page, made.min_page_index, made.num_pages
        if wanted != found:
            raise UnsupportedGeometryError(
                f"{member.name}: the engine made (page_bytes, first_page, page_count) {found}, {wanted} were asked for"
            )
