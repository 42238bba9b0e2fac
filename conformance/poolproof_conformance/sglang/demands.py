"""Allocations under pressure, asked for the way the engine's own callers ask.

Files and lines are those of sglang 0.5.23 under srt/. Where the engine has a function that evicts and then allocates,
it is called, so that each release asks its evictor what it asks there: one page for each decoding request, the exact
pages of an extend or a conservative bound. A RuntimeError that says "out of memory" is its way to refuse.

- alloc: `alloc_token_slots` (mem_cache/allocation.py 152), which is for one-token pages; on larger ones the same two
  calls, evict then alloc, for whole pages.
- extend: one-token pages as alloc (allocation.py 408); larger ones `alloc_paged_token_slots_extend` (175).
- decode: likewise `alloc_paged_token_slots_decode` (570).
- extend_tail: the decode node's preallocation (disaggregation/decode.py 2283-2318, 2477): a FULL shortfall is evicted,
  then both sides are reclaimed together, then `alloc_extend_swa_tail`; without SWA pages `alloc_extend`.
- alloc_states: `ensure_mamba_capacity` (allocation.py 298), then the slots at once, as a prefill batch takes them.
- recover: the SWA half of a load-back from the host: a physical reservation, an SWA eviction if that failed
  (hybrid_cache/hybrid_cache_controller.py 1884, hybrid_pool_assembler.py 62), the reservation again, then the binding.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch

from poolproof_conformance.sglang.cpu_device import Event
from poolproof_conformance.sglang.engine import Engine
from poolproof_conformance.sglang.factory import Built
from poolproof_conformance.sglang.running import Request
from poolproof_spec.operation import Alloc, AllocStates, AnyDemand, Decode, Extend, ExtendTail, Recover
from poolproof_spec.units import TokenCount, VirtualId, ceil_div, pages_for_tokens


class OutOfMemory(Exception):
    """The engine refused the demand."""


class UnsupportedDemandError(Exception):
    """The engine has no such demand in this layout; the message says why."""


class Demands:
    """The engine's entry points for allocations, over one pool."""

    def __init__(self, engine: Engine, built: Built, page_tokens: int) -> None:
        self.engine = engine
        self.built = built
        self.page_tokens = page_tokens

    def take(self, demand: AnyDemand, request: Request) -> Request:
        """What the request gets. Raises OutOfMemory where the engine refuses."""
        match demand:
            case Alloc():
                return self._tokens(self.alloc(pages_for_tokens(demand.tokens, self.page_tokens)))
            case Extend():
                return self._tokens(self._extend(demand.prefix_lens, demand.seq_lens))
            case Decode():
                return self._tokens(self._decode(demand.seq_lens))
            case ExtendTail():
                return self._tokens(self._extend_tail(demand))
            case AllocStates():
                return Request(state_ids=self._states(demand.count))
            case Recover():
                return self._recover(request)

    def alloc(self, pages: int) -> Any:
        """Tokens of that many pages, evicting for them."""
        tokens, allocation = pages * self.page_tokens, self.engine.allocation
        if self.page_tokens == 1:
            return _refused(allocation.alloc_token_slots, self.built.cache, tokens)
        self.engine.common.evict_from_tree_cache(self.built.cache, tokens)
        return _given(self.built.allocator.alloc(tokens))

    def alloc_without_evicting(self, pages: int) -> list[VirtualId] | None:
        """Ids of that many pages, or None; nothing is evicted."""
        tokens = self.built.allocator.alloc(pages * self.page_tokens)
        return None if tokens is None else self._pages(tokens)

    def give_back(self, ids: Sequence[VirtualId]) -> None:
        """Free such pages again, member by member as an eviction does: an open group stays as it is."""
        if ids:
            allocator, tokens = self.built.allocator, self.tokens_of(ids)
            if hasattr(allocator, "swa_attn_allocator"):
                allocator.swa_attn_allocator.free(tokens)
            allocator.full_attn_allocator.free(tokens)

    def _extend(self, prefix_lens: Sequence[TokenCount], seq_lens: Sequence[TokenCount]) -> Any:
        grown = sum(seq_lens) - sum(prefix_lens)
        if self.page_tokens == 1:
            return self.alloc(grown)
        prefix, seq = tensor(prefix_lens), tensor(seq_lens)
        extend = self.engine.allocation.alloc_paged_token_slots_extend
        return _refused(extend, self.built.cache, prefix, prefix, seq, seq, self._last_places(prefix_lens), grown)

    def _decode(self, seq_lens: Sequence[TokenCount]) -> Any:
        if self.page_tokens == 1:
            return self.alloc(len(seq_lens))
        seq, last = tensor(seq_lens), self._last_places([n - 1 for n in seq_lens])
        return _refused(self.engine.allocation.alloc_paged_token_slots_decode, self.built.cache, seq, seq, last)

    def _extend_tail(self, demand: ExtendTail) -> Any:
        built, t = self.built, self.page_tokens
        allocator, grown = built.allocator, demand.seq_len - demand.prefix_len
        needed = (ceil_div(demand.seq_len, t) - ceil_div(demand.prefix_len, t)) * t
        has_swa = hasattr(allocator, "alloc_extend_swa_tail")
        available = allocator.full_available_size() if has_swa else allocator.available_size()
        if available < needed:
            built.cache.evict_for_alloc(self.engine.base.EvictParams(num_tokens=needed - available))
        if has_swa:
            allocator.reclaim_for_prealloc(built.cache, ceil_div(needed, t) * t, ceil_div(demand.tail, t) * t)
        prefix, seq = tensor([demand.prefix_len]), tensor([demand.seq_len])
        arguments = prefix, prefix, seq, seq, self._last_places([demand.prefix_len]), grown
        if has_swa:
            return _given(allocator.alloc_extend_swa_tail(*arguments, swa_tail_len=demand.tail))
        return _given(allocator.alloc_extend(*arguments))

    def _states(self, count: int) -> list[VirtualId]:
        built = self.built
        if built.states is None:
            raise UnsupportedDemandError("alloc_states: the layout has no states")
        kv = SimpleNamespace(holds_mamba=False, mamba_ping_pong_track_buffer=())
        self.engine.allocation.ensure_mamba_capacity(built.requests, [SimpleNamespace(kv=kv)] * count, built.cache)
        states = built.states.alloc(count)
        if states is None and not built.states_in_tree:
            raise UnsupportedDemandError("states under pressure: with pages of several tokens the tree holds no states")
        return [VirtualId(state) for state in _given(states).tolist()]

    def _recover(self, request: Request) -> Request:
        built, missing = self.built, [i for i in request.ids if i not in request.swa_ids]
        swa = getattr(built.allocator, "swa_attn_allocator", None)
        if swa is None:
            raise UnsupportedDemandError("recover: the layout has no SWA pages")
        if not missing:
            return Request()
        full = self.tokens_of(missing)
        places = swa.alloc_physical(len(full))
        if places is None:
            shortfall = len(full) - built.allocator.swa_available_size()
            if shortfall > 0:
                built.cache.evict_for_alloc(self.engine.base.EvictParams(swa_num_tokens=shortfall))
            places = _given(swa.alloc_physical(len(full)))
        built.allocator.set_full_to_swa_mapping(full, places)
        copied = Event("load-back")
        copied.fired = True
        built.allocator.set_hicache_transfer_done_event("load", copied)
        return Request(swa_ids=set(missing))

    def _last_places(self, lengths: Sequence[int]) -> Any:
        """Where the engine is told that each request's last token lies: in the sink page.

        So a partly filled page that it goes on with (anybody's: lengths are arithmetic) is not taken for a new one.
        """
        return tensor([(n - 1) % self.page_tokens for n in lengths])

    def tokens_of(self, ids: Sequence[VirtualId]) -> Any:
        """All tokens of these pages, in order."""
        return tensor([i * self.page_tokens + k for i in ids for k in range(self.page_tokens)])

    def _pages(self, tokens: Any) -> list[VirtualId]:
        pages = dict.fromkeys(token // self.page_tokens for token in tokens.tolist())
        return [VirtualId(page) for page in pages if page]

    def _tokens(self, tokens: Any) -> Request:
        ids = self._pages(tokens)
        return Request(ids=ids, swa_ids={i for i in ids if self.swa_is_bound(i)})

    def swa_is_bound(self, identifier: VirtualId) -> bool:
        """Whether the id has an SWA page."""
        swa = getattr(self.built.allocator, "swa_attn_allocator", None)
        return swa is not None and int(swa.virtual_to_physical[identifier]) > 0


def tensor(values: Sequence[int]) -> Any:
    """Ids as the engine takes them."""
    return torch.tensor(values, dtype=torch.int64)


def _given(tensor: Any) -> Any:
    if tensor is None:
        raise OutOfMemory
    return tensor


def _refused(allocate: Any, *arguments: Any) -> Any:
    """Call a function of the engine that raises RuntimeError "... out of memory ..." where it cannot allocate."""
    try:
        return allocate(*arguments)
    except RuntimeError as error:
        if "out of memory" not in str(error).lower():
            raise
        raise OutOfMemory from error
