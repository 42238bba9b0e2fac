"""Hypothesis strategies for the operations of a history: phrases of a few that mean something together."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from hypothesis import strategies as st

from poolproof_spec import operation as op
from poolproof_spec.units import PageKey, TokenCount

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

    @property
    def caches_states(self) -> bool:
        """Whether a cached prefix has a state."""
        return self.has_states and self.page_tokens == 1


@cache
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
    """One to a few operations that mean something together.

    Independent draws rarely lock what they then press on, or free what they then need. What closes a gate, opens a
    group or launches a forward mostly ends it too: a history that stays pinned to its end shows little.
    """
    return st.one_of(
        st.tuples(inserts(shape)),
        st.tuples(inserts(shape)),
        st.tuples(demands(shape)),
        st.tuples(singles(shape)),
        pressed(shape),
        pressed(shape),
        locked(shape),
        locked(shape),
        bracketed(shape),
        bracketed(shape),
    )


FREE = st.builds(op.Free, name=REQUESTS)


@cache
def inserts(shape: Shape) -> st.SearchStrategy[op.Insert]:
    """A prefix, with a state where the layout caches them."""
    return st.builds(op.Insert, key=KEYS, state=st.just(shape.caches_states))


@cache
def singles(shape: Shape) -> st.SearchStrategy[op.AnyOperation]:
    """Any operation that is neither an insert nor a demand; now and then a bad call."""
    kinds: list[st.SearchStrategy[op.AnyOperation]] = [
        st.builds(op.Match, key=KEYS),
        st.builds(op.LockPrefix, name=LOCKS, key=KEYS),
        st.builds(op.Unlock, name=LOCKS),
        FREE,
        st.builds(op.Gate, open=st.booleans()),
        st.builds(op.Launch, event=EVENTS, writes=st.lists(REQUESTS, max_size=1).map(tuple)),
        st.builds(op.Fire, event=EVENTS),
        st.sampled_from((op.GroupBegin(), op.GroupEnd(), op.Compact(), op.Query(), op.Capacity())),
        bad_calls(),
    ]
    if shape.has_swa:
        kinds.append(st.builds(op.FreeWindow, name=REQUESTS))
        kinds.append(st.builds(op.UnlockWindow, name=LOCKS))
    return st.one_of(kinds)


@cache
def pressed(shape: Shape) -> st.SearchStrategy[tuple[op.AnyOperation, ...]]:
    """A cache with something in it, room taken and perhaps given back, then a demand."""
    insert, demand = inserts(shape), demands(shape)
    return st.one_of(
        st.tuples(insert, insert, demand, FREE),
        st.tuples(insert, demand, FREE, demand, FREE),
        st.tuples(insert, insert, insert, demand, FREE, demand),
    )


@cache
def locked(shape: Shape) -> st.SearchStrategy[tuple[op.AnyOperation, ...]]:
    """A prefix and a shorter one, the longer locked, then a demand: only what the lock leaves may go. What is left?"""

    def phrase(
        key: tuple[PageKey, ...],
        shorter: int,
        names: tuple[str, str],
        then: str,
        free: op.Free,
        demand: op.AnyOperation,
        question: op.AnyOperation,
    ) -> tuple[op.AnyOperation, ...]:
        name, other = names
        after_lock: dict[str, tuple[op.AnyOperation, ...]] = {
            "nothing": (),
            "window released": (op.UnlockWindow(name=name),),
            "locked twice, window released": (op.LockPrefix(name=other, key=key), op.UnlockWindow(name=name)),
        }
        return (
            free,
            op.Insert(key=key[:shorter], state=shape.caches_states),
            op.Insert(key=key, state=shape.caches_states),
            op.LockPrefix(name=name, key=key),
            *after_lock[then],
            demand,
            op.Unlock(name=name),
            op.Match(key=key),
            question,
        )

    thens = ["nothing", "nothing"]
    if shape.has_swa:
        thens += ["window released", "locked twice, window released"]
    names = st.sampled_from((("x", "y"), ("y", "x")))
    questions = st.sampled_from((op.Query(), op.Capacity()))
    return st.builds(phrase, KEYS, st.integers(1, 3), names, st.sampled_from(thens), FREE, demands(shape), questions)


@cache
def bracketed(shape: Shape) -> st.SearchStrategy[tuple[op.AnyOperation, ...]]:
    """Two requests, then a bracket in which one of them goes, which makes a hole, and something is demanded."""
    t = shape.page_tokens

    def phrase(
        names: tuple[str, str],
        tokens: tuple[int, int],
        bracket: str,
        between: tuple[op.AnyOperation, ...],
        demand: op.AnyOperation,
        ends: bool,
    ) -> tuple[op.AnyOperation, ...]:
        goes, stays = names
        begin, end = brackets[bracket](stays)
        allocs = [op.Alloc(name=name, tokens=TokenCount(n)) for name, n in zip(names, tokens, strict=True)]
        states = [op.AllocStates(name=stays, count=1)] if shape.has_states and tokens[0] == 1 else []
        window = [op.FreeWindow(name=stays)] if shape.has_swa and tokens[1] == 1 else []
        return (*allocs, *states, begin, op.Free(name=goes), *window, *between, demand, *([end] if ends else []))

    brackets: dict[str, Callable[[str], tuple[op.AnyOperation, op.AnyOperation]]] = {
        "closed gate": lambda stays: (op.Gate(open=False), op.Gate(open=True)),
        "open group": lambda stays: (op.GroupBegin(), op.GroupEnd()),
        "readers": lambda stays: (op.Launch(event="e1"), op.Fire(event="e1")),
        "a writer": lambda stays: (op.Launch(event="e2", writes=(stays,)), op.Fire(event="e2")),
    }
    between: tuple[tuple[op.AnyOperation, ...], ...] = (
        (),
        (op.Compact(),),
        (op.Compact(), op.Compact()),
        (op.Query(),),
        (op.Capacity(),),
    )
    return st.builds(
        phrase,
        st.sampled_from((("a", "b"), ("b", "c"), ("c", "a"))),
        st.tuples(st.integers(1, 2 * t), st.integers(1, 2 * t)),
        st.sampled_from(list(brackets)),
        st.sampled_from(between),
        demands(shape),
        st.sampled_from((True, True, True, False)),
    )
