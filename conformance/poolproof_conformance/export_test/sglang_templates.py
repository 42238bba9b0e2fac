"""Pieces of a test in SGLang's own API; a file gets those that its trace needs.

They ask as the engine's callers ask (srt/mem_cache/allocation.py, srt/mem_cache/common.py,
srt/disaggregation/decode.py of 0.5.23) and read nothing of it but sizes and its table of SWA pages.
"""

IMPORTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("import inspect", ()),
    ("from array import array", ()),
    ("from types import SimpleNamespace", ()),
    ("", ()),
    ("import torch", ()),
    ("from sglang.srt import", ("runtime_context",)),
    ("from sglang.srt.mem_cache import", ("allocation", "common", "unified_memory_pool")),
    ("from sglang.srt.mem_cache.base_prefix_cache import", ("EvictParams", "InsertParams", "MatchPrefixParams")),
    ("from sglang.srt.mem_cache.cache_init_params import", ("CacheInitParams",)),
    ("from sglang.srt.mem_cache.radix_cache import", ("RadixKey",)),
    ("from sglang.srt.mem_cache.unified_radix_cache import", ("ComponentType", "UnifiedRadixCache")),
)
"""Lines of imports with the names that each brings; a file has those that it uses."""

HEAD = '''{docstring}

{imports}

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PAGE_TOKENS = {page_tokens}


def configure() -> None:
    """The configuration of a plain server, unless this process has one."""
    if not runtime_context.get_context().is_config_namespace_published("memory"):
        from sglang.srt.server_args import ServerArgs

        runtime_context.publish(ServerArgs(model_path="dummy"), role="test")


def build() -> SimpleNamespace:
    """{arena}"""
    configure()
    factory = unified_memory_pool.{factory}
    arguments = dict(
{arguments}
    )
    known = inspect.signature(factory).parameters
    bundle = factory(**{{name: value for name, value in arguments.items() if name in known}})
    assert bundle.unified_memory_pool._raw.numel() == {total_bytes}
    requests = getattr(bundle, "req_to_token_pool", None)
    cache = UnifiedRadixCache(
        CacheInitParams(
            disable=False,
            req_to_token_pool=requests,
            token_to_kv_pool_allocator=bundle.token_to_kv_pool_allocator,
            page_size=PAGE_TOKENS,
            sliding_window_size={window},
            tree_components=({components}),
        )
    )
    return SimpleNamespace(
        allocator=bundle.token_to_kv_pool_allocator, cache=cache, requests=requests, held={{}}, gate_open=True
    )


def cached(pool: SimpleNamespace) -> dict[str, int]:
    """Cached tokens with keys and values in each kind of layer, and cached states."""
    cache = pool.cache
    return {{
{cached}
    }}


def ids(values: list[int]) -> torch.Tensor:
    """Numbers as the engine takes them."""
    return torch.tensor(values, dtype=torch.int64, device=DEVICE)


def given(tokens: torch.Tensor | None, pool: SimpleNamespace, name: str) -> bool:
    """Whether the allocation was granted; the request holds what it got."""
    if tokens is None:
        return False
    pool.held.setdefault(name, []).append(tokens)
    return True
'''

REFUSED = '''
def asked(function, *arguments):
    """Call a function of the engine that raises RuntimeError where it is out of memory; None for that."""
    try:
        return function(*arguments)
    except RuntimeError as error:
        if "out of memory" not in str(error).lower():
            raise
        return None
'''

INSERT = '''
def insert(pool: SimpleNamespace, pages: list[int]{state_parameter}) -> None:
    """Cache a prefix as a request does that ends; page k stands for the tokens k * PAGE_TOKENS and on."""
    key = RadixKey(array("q", [page * PAGE_TOKENS + i for page in pages for i in range(PAGE_TOKENS)]), None)
    match = pool.cache.match_prefix(MatchPrefixParams(key=key))
    found = pool.cache.path_device_indices(match.last_device_node)[: match.device_prefix_len]
    new = pool.allocator.alloc(len(pages) * PAGE_TOKENS - len(found))
    assert new is not None, "the setup needs room for the prefix"
{slot}    value = torch.cat([found.to(torch.int64), new.to(torch.int64)])
    {result}pool.cache.insert(InsertParams(key=key, value=value{mamba_value}, prev_prefix_len=len(found)))
{freed}'''

MATCH = '''
def match(pool: SimpleNamespace, pages: list[int]):
    """The engine's node for the longest usable prefix."""
    key = RadixKey(array("q", [page * PAGE_TOKENS + i for page in pages for i in range(PAGE_TOKENS)]), None)
    return pool.cache.match_prefix(MatchPrefixParams(key=key)).last_device_node
'''

ALLOC_TOKENS = '''
def alloc(pool: SimpleNamespace, name: str, tokens: int) -> bool:
    """New tokens for a request, evicting for them."""
    return given(asked(allocation.alloc_token_slots, pool.cache, tokens), pool, name)
'''

ALLOC_PAGES = '''
def alloc(pool: SimpleNamespace, name: str, tokens: int) -> bool:
    """Whole pages for that many new tokens of a request, evicting for them."""
    tokens = -(-tokens // PAGE_TOKENS) * PAGE_TOKENS
    common.evict_from_tree_cache(pool.cache, tokens)
    return given(pool.allocator.alloc(tokens), pool, name)
'''

EXTEND = '''
def extend(pool: SimpleNamespace, name: str, prefix_lens: list[int], seq_lens: list[int]) -> bool:
    """A prefill batch: each request grows from its prefix to its sequence length, in tokens."""
    grown = sum(seq_lens) - sum(prefix_lens)
    if PAGE_TOKENS == 1:
        return given(asked(allocation.alloc_token_slots, pool.cache, grown), pool, name)
    prefix, seq = ids(prefix_lens), ids(seq_lens)
    last = ids([(n - 1) % PAGE_TOKENS for n in prefix_lens])
    extended = allocation.alloc_paged_token_slots_extend
    return given(asked(extended, pool.cache, prefix, prefix.cpu(), seq, seq.cpu(), last, grown), pool, name)
'''

DECODE = '''
def decode(pool: SimpleNamespace, name: str, seq_lens: list[int]) -> bool:
    """One decode step; lengths are those after it, in tokens."""
    if PAGE_TOKENS == 1:
        return given(asked(allocation.alloc_token_slots, pool.cache, len(seq_lens)), pool, name)
    seq, last = ids(seq_lens), ids([(n - 2) % PAGE_TOKENS for n in seq_lens])
    return given(asked(allocation.alloc_paged_token_slots_decode, pool.cache, seq, seq.cpu(), last), pool, name)
'''

EXTEND_TAIL = '''
def extend_tail(pool: SimpleNamespace, name: str, prefix_len: int, seq_len: int, tail: int) -> bool:
    """A prefill of which only the last `tail` tokens need keys and values in sliding-window layers."""
    allocator, t = pool.allocator, PAGE_TOKENS
    needed = (-(-seq_len // t) + -prefix_len // t) * t
    has_swa = hasattr(allocator, "alloc_extend_swa_tail")
    available = allocator.full_available_size() if has_swa else allocator.available_size()
    if available < needed:
        pool.cache.evict_for_alloc(EvictParams(num_tokens=needed - available))
    prefix, seq, last = ids([prefix_len]), ids([seq_len]), ids([(prefix_len - 1) % t])
    arguments = prefix, prefix.cpu(), seq, seq.cpu(), last, seq_len - prefix_len
    if not has_swa:
        return given(allocator.alloc_extend(*arguments), pool, name)
    allocator.reclaim_for_prealloc(pool.cache, needed, -(-tail // t) * t)
    return given(allocator.alloc_extend_swa_tail(*arguments, swa_tail_len=tail), pool, name)
'''

ALLOC_STATES = '''
def alloc_states(pool: SimpleNamespace, name: str, count: int) -> bool:
    """Mamba states for a prefill batch, evicting for them."""
    request = SimpleNamespace(kv=SimpleNamespace(holds_mamba=False, mamba_ping_pong_track_buffer=()))
    allocation.ensure_mamba_capacity(pool.requests, [request] * count, pool.cache)
    states = pool.requests.mamba_allocator.alloc(count)
    if states is not None:
        pool.held.setdefault(f"{name}, states", []).append(states)
    return states is not None
'''

FREE = '''
def with_swa(pool: SimpleNamespace, tokens: torch.Tensor) -> torch.Tensor:
    """For each token whether it has keys and values in sliding-window layers."""
    swa = getattr(pool.allocator, "swa_attn_allocator", None)
    if swa is None:
        return torch.ones_like(tokens, dtype=torch.bool)
    return swa.virtual_to_physical[tokens // PAGE_TOKENS] > 0


def free(pool: SimpleNamespace, name: str) -> None:
    """The request ends; all tokens of its pages go."""
    held = [tokens.to(torch.int64) for tokens in pool.held.pop(name, []) if len(tokens)]
    if held:
        pages = torch.unique(torch.cat(held) // PAGE_TOKENS)
        tokens = (pages[:, None] * PAGE_TOKENS + torch.arange(PAGE_TOKENS, device=pages.device)).flatten()
        both = with_swa(pool, tokens)
        if (~both).any():
            pool.allocator.free_full_segment(tokens[~both], start_pos=0)
        if both.any():
            pool.allocator.free_segment(tokens[both], start_pos=0)
    for states in pool.held.pop(f"{name}, states", []):
        pool.requests.mamba_allocator.free(states)
'''

QUEUED = '''
def queued(pool: SimpleNamespace) -> int:
    """Tokens whose free waits in the open group."""
    groups = ("free_group", "free_page_reps_group", "full_page_reps_group", "full_free_group")
    return sum(len(tokens) for name in groups for tokens in getattr(pool.allocator, name, None) or ())
'''

FREE_WINDOW = '''
def free_window(pool: SimpleNamespace, name: str) -> None:
    """The request's pages of sliding-window layers have left the window."""
    pages = torch.unique(torch.cat(pool.held[name]).to(torch.int64) // PAGE_TOKENS)
    tokens = (pages[:, None] * PAGE_TOKENS + torch.arange(PAGE_TOKENS, device=pages.device)).flatten()
    leaving = tokens[with_swa(pool, tokens)]
    if len(leaving):
        pool.allocator.free_swa_segment(leaving, start_pos=0)
'''
