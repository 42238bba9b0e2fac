"""Each count against a twin that walks token by token and counts the pages touched."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from poolproof_spec import operation as op
from poolproof_spec.demand import Demand, decode_pages, demand_of, extend_pages, tail_pages, token_pages
from poolproof_spec.geometry import Geometry, layout
from poolproof_spec.units import TokenCount

from .builders import alloc, hold, ids, pool, swa2, tri

LENGTHS = st.integers(0, 40)
PAGE_TOKENS = st.integers(1, 7)


def naive_pages(tokens: range, page_tokens: int) -> set[int]:
    """The pages that some tokens of a request lie on."""
    return {token // page_tokens for token in tokens}


@given(LENGTHS, PAGE_TOKENS)
def test_alloc_counts_the_pages_touched(tokens: int, page_tokens: int) -> None:
    assert token_pages(tokens, page_tokens) == len(naive_pages(range(tokens), page_tokens))


@given(LENGTHS, LENGTHS, PAGE_TOKENS)
def test_extend_counts_the_pages_not_touched_by_the_prefix(prefix: int, more: int, page_tokens: int) -> None:
    new = naive_pages(range(prefix, prefix + more), page_tokens) - naive_pages(range(prefix), page_tokens)
    assert extend_pages(prefix, prefix + more, page_tokens) == len(new)


@given(st.integers(1, 40), PAGE_TOKENS)
def test_decode_counts_the_page_of_the_new_token_if_it_is_new(seq_len: int, page_tokens: int) -> None:
    new = naive_pages(range(seq_len - 1, seq_len), page_tokens) - naive_pages(range(seq_len - 1), page_tokens)
    assert decode_pages(seq_len, page_tokens) == len(new)


@given(LENGTHS, LENGTHS, LENGTHS, PAGE_TOKENS)
def test_tail_counts_the_new_pages_that_the_last_tokens_touch(
    prefix: int, more: int, tail: int, page_tokens: int
) -> None:
    seq = prefix + more
    touched = naive_pages(range(max(0, seq - tail), seq), page_tokens)
    assert tail_pages(prefix, seq, tail, page_tokens) == len(touched - naive_pages(range(prefix), page_tokens))


@given(LENGTHS, LENGTHS, PAGE_TOKENS)
def test_a_whole_tail_needs_what_extend_needs(prefix: int, more: int, page_tokens: int) -> None:
    assume(more > 0)
    assert tail_pages(prefix, prefix + more, prefix + more, page_tokens) == extend_pages(
        prefix, prefix + more, page_tokens
    )


@pytest.mark.parametrize(
    ("prefix", "seq", "pages"),
    [(0, 0, 0), (0, 1, 1), (0, 4, 1), (0, 5, 2), (3, 4, 0), (4, 4, 0), (4, 5, 1), (3, 5, 1), (1, 9, 2)],
)
def test_extend_at_the_edges_of_pages_of_four(prefix: int, seq: int, pages: int) -> None:
    assert extend_pages(prefix, seq, 4) == pages


@pytest.mark.parametrize(("seq", "pages"), [(1, 1), (2, 0), (255, 0), (256, 0), (257, 1), (513, 1)])
def test_decode_at_the_edges_of_pages_of_256(seq: int, pages: int) -> None:
    assert decode_pages(seq, 256) == pages


@pytest.mark.parametrize(
    ("prefix", "seq", "tail", "pages"),
    [(0, 8, 0, 0), (0, 8, 1, 1), (0, 8, 4, 1), (0, 8, 5, 2), (0, 9, 1, 1), (0, 9, 2, 2), (7, 8, 8, 0), (8, 9, 9, 1)],
)
def test_tail_at_the_edges_of_pages_of_four(prefix: int, seq: int, tail: int, pages: int) -> None:
    assert tail_pages(prefix, seq, tail, 4) == pages


def tokens(*lengths: int) -> tuple[TokenCount, ...]:
    return tuple(TokenCount(length) for length in lengths)


TRI2 = layout("tri", 48, page_tokens=2, STATE=4, SWA=1, FULL=2)
MAMBA2 = layout("mamba2", 48, page_tokens=2, STATE=4, FULL=2)
TAIL = op.ExtendTail(name="r", prefix_len=TokenCount(1), seq_len=TokenCount(6), tail=TokenCount(1))
EXTEND = op.Extend(name="r", prefix_lens=tokens(0, 3), seq_lens=tokens(3, 5), may_wait=False)


@pytest.mark.parametrize(
    ("geometry", "operation", "demand"),
    [
        (TRI2, alloc(3), Demand(full_pages=2, swa_pages=2)),
        (MAMBA2, alloc(3), Demand(full_pages=2)),
        (TRI2, EXTEND, Demand(full_pages=3, swa_pages=3, may_wait=False)),
        (MAMBA2, EXTEND, Demand(full_pages=3, may_wait=False)),
        (TRI2, op.Decode(name="r", seq_lens=tokens(1, 2, 3)), Demand(full_pages=2, swa_pages=2)),
        (TRI2, op.Decode(name="r", seq_lens=()), Demand()),
        (TRI2, TAIL, Demand(full_pages=2, swa_pages=1)),
        (MAMBA2, TAIL, Demand(full_pages=2)),
        (TRI2, op.AllocStates(name="r", count=3), Demand(state_pages=3)),
        (swa2(4), op.AllocStates(name="r", count=3), Demand()),
    ],
)
def test_a_chain_is_asked_only_for_what_it_has(geometry: Geometry, operation: op.AnyDemand, demand: Demand) -> None:
    assert demand_of(pool(geometry), operation) == demand


def test_recover_demands_swa_pages_for_the_ids_without() -> None:
    half = hold("r", [2, 3], swa=False)
    state = pool(tri(), holds=[type(half)(name="r", ids=half.ids, swa_ids=ids(3))])
    assert demand_of(state, op.Recover(name="r")) == Demand(swa_pages=1)
    assert demand_of(state, op.Recover(name="nobody", may_wait=False)) == Demand(may_wait=False)


@pytest.mark.parametrize("operation", [op.Query(), op.Compact(), op.Free(name="r"), op.Gate(open=True)])
def test_what_is_no_demand_demands_nothing(operation: op.AnyOperation) -> None:
    assert demand_of(pool(swa2(4)), operation) is None


def test_pages_by_role() -> None:
    demand = Demand(full_pages=1, swa_pages=2, state_pages=3)
    assert (demand.pages("full"), demand.pages("swa"), demand.pages("state")) == (1, 2, 3)
