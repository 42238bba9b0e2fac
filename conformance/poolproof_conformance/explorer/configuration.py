"""A small configuration: a geometry, a finite alphabet of operations, and nothing else."""

from collections.abc import Iterator

import msgspec

from poolproof_spec import operation as op
from poolproof_spec.geometry import Geometry, Kind, Role, derive
from poolproof_spec.units import PageKey, TokenCount

Key = tuple[PageKey, ...]


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """What is explored: every history over `operations` from the empty pool of `geometry`."""

    name: str
    """As typed: LAYOUT-WHAT."""
    about: str
    """One line: what it is there for."""
    geometry: Geometry
    operations: tuple[op.AnyOperation, ...]
    """The alphabet, in the order in which it is tried: each is applied in each state in which the call is good."""
    bad_calls: bool = False
    """Whether it is applied also where the call is bad, and must be refused."""


FOUR: tuple[tuple[str, Role, Kind], ...] = (
    ("STATE", "state", "up"),
    ("SWA", "swa", "float"),
    ("SWA2", "swa", "float"),
    ("FULL", "full", "down"),
)
"""A chain with two floats: two kinds of sliding-window layers, whose pages an id has together."""


def four(total_bytes: int, **page_bytes: int) -> Geometry:
    """The chain FOUR; page sizes in bytes a page."""
    chain = [(name, role, page_bytes[name], kind) for name, role, kind in FOUR]
    return derive(total_bytes, chain, window_tokens=1)


def key(*pages: int) -> Key:
    """A prefix by its page keys."""
    return tuple(PageKey(page) for page in pages)


def inserts(*keys: Key, state: bool = False) -> Iterator[op.AnyOperation]:
    """Cache each of the prefixes, each with a state where asked."""
    return (op.Insert(key=prefix, state=state) for prefix in keys)


def matches(*keys: Key) -> Iterator[op.AnyOperation]:
    """Look each of the prefixes up."""
    return (op.Match(key=prefix) for prefix in keys)


def locks(name: str, *keys: Key, window: bool = True) -> Iterator[op.AnyOperation]:
    """Lock one of the prefixes under one handle, give the lock back, perhaps its window alone before that."""
    yield from (op.LockPrefix(name=name, key=prefix) for prefix in keys)
    yield op.Unlock(name=name)
    if window:
        yield op.UnlockWindow(name=name)


def allocs(name: str, *sizes: int, may_wait: bool = True) -> Iterator[op.AnyOperation]:
    """Token demands of the given sizes, in tokens."""
    return (op.Alloc(name=name, tokens=TokenCount(size), may_wait=may_wait) for size in sizes)


def states(name: str, *counts: int, may_wait: bool = True) -> Iterator[op.AnyOperation]:
    """State demands."""
    return (op.AllocStates(name=name, count=count, may_wait=may_wait) for count in counts)


def extend(name: str, *lengths: tuple[int, int], may_wait: bool = True) -> op.AnyOperation:
    """One prefill batch: (prefix length, sequence length) of each request in it, in tokens."""
    return op.Extend(
        name=name,
        prefix_lens=tuple(TokenCount(prefix) for prefix, _ in lengths),
        seq_lens=tuple(TokenCount(seq) for _, seq in lengths),
        may_wait=may_wait,
    )


def decode(name: str, *lengths: int) -> op.AnyOperation:
    """One decode step; lengths after it, in tokens."""
    return op.Decode(name=name, seq_lens=tuple(TokenCount(length) for length in lengths))


def tail(name: str, prefix_len: int, seq_len: int, tail_len: int, may_wait: bool = True) -> op.AnyOperation:
    """A prefill of which only a tail needs SWA pages, in tokens."""
    return op.ExtendTail(
        name=name,
        prefix_len=TokenCount(prefix_len),
        seq_len=TokenCount(seq_len),
        tail=TokenCount(tail_len),
        may_wait=may_wait,
    )


def gates() -> Iterator[op.AnyOperation]:
    """Close and open every move gate."""
    yield op.Gate(open=False)
    yield op.Gate(open=True)


def flight(*writes: str) -> Iterator[op.AnyOperation]:
    """One event: a forward that reads everything, one that also writes the named requests, and its end."""
    yield op.Launch(event="e")
    if writes:
        yield op.Launch(event="e", writes=writes)
    yield op.Fire(event="e")


def group() -> Iterator[op.AnyOperation]:
    """Begin and end a group of deferred frees."""
    yield op.GroupBegin()
    yield op.GroupEnd()
