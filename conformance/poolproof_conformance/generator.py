"""Hypothesis strategies for geometries and histories; small, so that a counterexample can be read."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from hypothesis import strategies as st

from poolproof_spec import operation as op
from poolproof_spec.geometry import LAYOUTS, Geometry, derive, geometry_problems
from poolproof_spec.units import TokenCount

History = tuple[Geometry, tuple[op.AnyOperation, ...]]

KV_BYTES = 32
"""One layer's keys and values of one token: 16 bits, one head of 8, K and V."""
STATE_BYTES = (48, 176)
"""A state without and with a temporal part."""


@st.composite
def geometries(draw: st.DrawFn, layouts: Sequence[str] = tuple(LAYOUTS)) -> Geometry:
    """An arena in which each member has a few to a few dozen pages.

    total_bytes = n token pages of every token member + k states: what serving engines size their arenas by.
    """
    chain = LAYOUTS[draw(st.sampled_from(layouts))]
    page_tokens = draw(st.sampled_from((1, 1, 1, 2)))
    token_pages, states = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    sizes: dict[str, int] = {}
    total_bytes = 0
    for _, role, _ in chain:
        if role == "state":
            sizes[role] = draw(st.sampled_from(STATE_BYTES))
            total_bytes += states * sizes[role]
        else:
            sizes[role] = draw(st.integers(1, 3)) * KV_BYTES * page_tokens
            total_bytes += token_pages * sizes[role]
    geometry = derive(
        total_bytes,
        [(name, role, sizes[role], kind) for name, role, kind in chain],
        page_tokens=page_tokens,
        window_tokens=draw(st.sampled_from((1, 1, 2, 3))),
    )
    return geometry if not geometry_problems(geometry) else draw(geometries(layouts))


KEYS = st.lists(st.sampled_from((1, 2, 3)), min_size=1, max_size=4).map(tuple)
"""Prefixes over three page keys: short enough to share, long enough to split."""
REQUESTS = st.sampled_from(("a", "b", "c"))
LOCKS = st.sampled_from(("x", "y"))
EVENTS = st.sampled_from(("e1", "e2"))


class Shape(NamedTuple):
    """All that the choice of operations depends on; few, so that strategies are built once and kept."""

    page_tokens: int
    has_swa: bool
    has_states: bool
    token_ids: int
    """Size of the token id space."""


def shape_of(geometry: Geometry) -> Shape:
    """The shape of a geometry."""
    has_swa, has_states = geometry.has_role("swa"), geometry.has_role("state")
    return Shape(geometry.page_tokens, has_swa, has_states, len(geometry.id_range("full")))


def demands(shape: Shape) -> st.SearchStrategy[op.AnyOperation]:
    """A demand of any kind the layout has, from nothing to a little more than could ever fit."""
    t = shape.page_tokens
    most = shape.token_ids + 2
    tokens, small, wait = st.integers(0, most * t), st.integers(1, 3 * t), st.sampled_from((True, True, False))
    kinds: list[st.SearchStrategy[op.AnyOperation]] = [
        st.builds(op.Alloc, name=REQUESTS, tokens=tokens, may_wait=wait),
        st.builds(op.Alloc, name=REQUESTS, tokens=small, may_wait=wait),
        st.builds(_extend, REQUESTS, st.lists(st.tuples(st.integers(0, 2 * t), small), min_size=1, max_size=2), wait),
        st.builds(op.Decode, name=REQUESTS, seq_lens=st.lists(small, min_size=1, max_size=3).map(tuple), may_wait=wait),
    ]
    if shape.has_swa:
        kinds.append(st.builds(_extend_tail, REQUESTS, st.integers(0, t), small, st.integers(0, 3), wait))
        kinds.append(st.builds(op.Recover, name=REQUESTS, may_wait=wait))
    if shape.has_states:
        kinds.append(st.builds(op.AllocStates, name=REQUESTS, count=st.integers(1, 5), may_wait=wait))
        kinds.append(st.builds(op.AllocStates, name=REQUESTS, count=st.integers(1, 2), may_wait=wait))
    return st.one_of(kinds)


def _extend(name: str, growth: list[tuple[int, int]], may_wait: bool) -> op.Extend:
    return op.Extend(
        name=name,
        prefix_lens=tuple(TokenCount(prefix) for prefix, _ in growth),
        seq_lens=tuple(TokenCount(prefix + more) for prefix, more in growth),
        may_wait=may_wait,
    )


def _extend_tail(name: str, prefix: int, more: int, tail: int, may_wait: bool) -> op.ExtendTail:
    lengths = (TokenCount(prefix), TokenCount(prefix + more), TokenCount(min(tail, more)))
    return op.ExtendTail(name=name, prefix_len=lengths[0], seq_len=lengths[1], tail=lengths[2], may_wait=may_wait)


def bad_calls() -> st.SearchStrategy[op.AnyOperation]:
    """Calls that are bad in every state; a target that leaves such checks to its caller is not sent them."""
    negative, none = TokenCount(-1), TokenCount(0)
    calls: list[op.AnyOperation] = [
        op.Alloc(name="a", tokens=negative),
        op.Alloc(name="a", tokens=TokenCount(2**60)),
        op.AllocStates(name="a", count=-1),
        op.Decode(name="a", seq_lens=(none,)),
        op.Extend(name="a", prefix_lens=(TokenCount(2),), seq_lens=(TokenCount(1),)),
        op.Extend(name="a", prefix_lens=(none, none), seq_lens=(none,)),
        op.Free(name="nobody"),
        op.Unlock(name="nobody"),
        op.Fire(event="never"),
        op.Insert(key=()),
    ]
    return st.sampled_from(calls)


@cache
def phrases(shape: Shape) -> st.SearchStrategy[tuple[op.AnyOperation, ...]]:
    """One to three operations that mean something together; single ones come most often.

    Independent draws rarely close a gate and then need room, or lock what they then press on.
    """
    caches_states = shape.has_states and shape.page_tokens == 1
    demand, free = demands(shape), st.builds(op.Free, name=REQUESTS)
    insert = st.builds(op.Insert, key=KEYS, state=st.just(caches_states))
    lock = st.builds(op.LockPrefix, name=LOCKS, key=KEYS)
    launch = st.builds(op.Launch, event=EVENTS, writes=st.lists(REQUESTS, max_size=1).map(tuple))
    close, begin, compact = st.just(op.Gate(open=False)), st.just(op.GroupBegin()), st.just(op.Compact())
    setup: list[st.SearchStrategy[op.AnyOperation]] = [
        st.builds(op.Match, key=KEYS),
        lock,
        st.builds(op.Unlock, name=LOCKS),
        free,
        free,
        begin,
        st.just(op.GroupEnd()),
        st.builds(op.Gate, open=st.booleans()),
        launch,
        st.builds(op.Fire, event=EVENTS),
        compact,
        st.just(op.Query()),
        st.just(op.Capacity()),
        bad_calls(),
    ]
    if shape.has_swa:
        setup.append(st.builds(op.FreeWindow, name=REQUESTS))
        setup.append(st.builds(op.UnlockWindow, name=LOCKS))
    return st.one_of(
        st.tuples(insert),
        st.tuples(insert),
        st.tuples(demand),
        st.tuples(demand),
        st.tuples(st.one_of(setup)),
        st.tuples(insert, lock, demand),
        st.tuples(insert, insert, demand),
        st.tuples(close, free, demand),
        st.tuples(launch, free, st.one_of(compact, demand)),
        st.tuples(begin, free, demand),
    )


@st.composite
def histories(
    draw: st.DrawFn, layouts: Sequence[str] = tuple(LAYOUTS), shortest: int = 6, longest: int = 16
) -> History:
    """A geometry and a history for it, long enough to come under pressure; shrink.py takes it below `shortest`."""
    geometry = draw(geometries(layouts))
    parts = draw(st.lists(phrases(shape_of(geometry)), min_size=shortest, max_size=longest))
    return geometry, tuple(operation for part in parts for operation in part)
