"""The exact page and id counts that each operation demands (docs/spec.md#demand)."""

import msgspec

from poolproof_spec.arithmetic import INTEGERS, Arithmetic, Quantity
from poolproof_spec.geometry import Role
from poolproof_spec.operation import (
    Alloc,
    AllocStates,
    AnyOperation,
    Decode,
    Extend,
    ExtendTail,
    Recover,
)
from poolproof_spec.state import PoolState
from poolproof_spec.units import PageCount


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """Pages and ids that one allocation needs. Token ids = FULL pages; state ids = state pages."""

    full_pages: int = 0
    swa_pages: int = 0
    state_pages: int = 0
    may_wait: bool = True
    """Whether events in flight may be waited for."""

    def pages(self, role: Role) -> int:
        """New pages for each member that holds `role`."""
        return {"full": self.full_pages, "swa": self.swa_pages, "state": self.state_pages}[role]


def token_pages(tokens: Quantity, page_tokens: Quantity, arithmetic: Arithmetic = INTEGERS) -> PageCount:
    """alloc(n): ceil(n / t)."""
    return PageCount(arithmetic.ceil_div(tokens, page_tokens))


def extend_pages(
    prefix_len: Quantity, seq_len: Quantity, page_tokens: Quantity, arithmetic: Arithmetic = INTEGERS
) -> PageCount:
    """One request of extend: ceil(seq / t) - ceil(prefix / t), nothing more."""
    return PageCount(arithmetic.ceil_div(seq_len, page_tokens) - arithmetic.ceil_div(prefix_len, page_tokens))


def decode_pages(seq_len: Quantity, page_tokens: Quantity, arithmetic: Arithmetic = INTEGERS) -> PageCount:
    """One request of decode, `seq_len` after the step: a page iff the length before it is a multiple of t."""
    before = seq_len - 1
    is_multiple = arithmetic.floor_div(before, page_tokens) * page_tokens == before
    return PageCount(arithmetic.where(is_multiple, 1, 0))


def tail_pages(
    prefix_len: Quantity,
    seq_len: Quantity,
    tail: Quantity,
    page_tokens: Quantity,
    arithmetic: Arithmetic = INTEGERS,
) -> PageCount:
    """SWA pages of extend_tail: the new pages that the last `tail` tokens touch."""
    first_new = arithmetic.ceil_div(prefix_len, page_tokens)
    first_touched = arithmetic.maximum(first_new, arithmetic.floor_div(seq_len - tail, page_tokens))
    touched = arithmetic.maximum(0, arithmetic.ceil_div(seq_len, page_tokens) - first_touched)
    return PageCount(arithmetic.where(tail == 0, 0, touched))


def demand_of(state: PoolState, operation: AnyOperation) -> Demand | None:
    """What the operation demands in `state`; None where it is no demand.

    A chain without SWA members demands no SWA pages, one without states no state pages (nor ids).
    """
    page_tokens, has_swa = state.geometry.page_tokens, state.geometry.has_role("swa")
    match operation:
        case Alloc(tokens=tokens, may_wait=may_wait):
            full = swa = token_pages(tokens, page_tokens)
        case Extend(prefix_lens=prefix_lens, seq_lens=seq_lens, may_wait=may_wait):
            lengths = zip(prefix_lens, seq_lens, strict=True)
            full = swa = PageCount(sum(extend_pages(prefix, seq, page_tokens) for prefix, seq in lengths))
        case Decode(seq_lens=seq_lens, may_wait=may_wait):
            full = swa = PageCount(sum(decode_pages(seq, page_tokens) for seq in seq_lens))
        case ExtendTail(prefix_len=prefix, seq_len=seq, tail=tail, may_wait=may_wait):
            full, swa = extend_pages(prefix, seq, page_tokens), tail_pages(prefix, seq, tail, page_tokens)
        case AllocStates(count=count, may_wait=may_wait):
            return Demand(state_pages=count if state.geometry.has_role("state") else 0, may_wait=may_wait)
        case Recover(name=name, may_wait=may_wait):
            hold = next((hold for hold in state.holds if hold.name == name), None)
            full, swa = PageCount(0), PageCount(len(set(hold.ids) - set(hold.swa_ids)) if hold else 0)
        case _:
            return None
    return Demand(full_pages=full, swa_pages=swa if has_swa else 0, may_wait=may_wait)
