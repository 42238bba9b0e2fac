"""Short histories written by hand, for the wrong fast pools that a random search seldom or never comes across.

In SWA2 there are nineteen pages, SWA's from the first upwards and FULL's from the last downwards.
"""

from poolproof_conformance.faulty.histories import HOLE_UNDER_READER, HOLE_UNDER_WRITER, SWA2, THREE_REQUESTS
from poolproof_conformance.generator import History
from poolproof_spec import operation as op
from poolproof_spec.geometry import layout
from poolproof_spec.units import PageKey, TokenCount

FULL_ONLY = layout("mamba2", 640, STATE=32, FULL=32)
"""Nineteen pages for FULL while there are no states."""


def _key(*pages: int) -> tuple[PageKey, ...]:
    return tuple(PageKey(page) for page in pages)


def _alloc(name: str, tokens: int, *, may_wait: bool = True) -> op.Alloc:
    return op.Alloc(name=name, tokens=TokenCount(tokens), may_wait=may_wait)


def _without_swa(name: str, tokens: int) -> op.ExtendTail:
    return op.ExtendTail(name=name, prefix_len=TokenCount(0), seq_len=TokenCount(tokens), tail=TokenCount(0))


TWO_OF_THREE: History = (
    FULL_ONLY,
    (
        op.Insert(key=_key(1)),
        op.Insert(key=_key(2)),
        op.Insert(key=_key(3, 4)),
        _alloc("a", 14),
        _alloc("b", 4),
    ),
)
"""Three more pages are wanted: the two of the newest prefix, and one of either of the others."""

PINNED_IN_THE_MIDDLE: History = (
    SWA2,
    (
        _alloc("a", 1),
        _alloc("b", 7),
        op.Insert(key=_key(1)),
        op.Free(name="b"),
        op.Gate(open=False),
        _without_swa("c", 10),
    ),
)
"""Behind the closed gate lie a request at the ends, and in the middle a cached prefix, which must go to make room."""

REQUEST_IN_THE_MIDDLE: History = (
    SWA2,
    (_alloc("a", 8), _alloc("b", 1), op.Free(name="a"), op.Gate(open=False), _without_swa("c", 10)),
)
"""The same with a request's pages, which nothing can be done about."""

CACHED_BESIDE_PENDING: History = (
    SWA2,
    (op.Insert(key=_key(1)), *HOLE_UNDER_READER, _alloc("d", 6, may_wait=False)),
)
"""Without the pending pages there would be room as it lies; with them a prefix must go."""

UNLOCKED_BEHIND: History = (
    SWA2,
    (
        op.Insert(key=_key(1)),
        op.Insert(key=_key(2)),
        op.LockPrefix(name="x", key=_key(1)),
        _alloc("a", 8),
        _alloc("b", 1),
        op.Free(name="a"),
        op.Insert(key=_key(3)),
        op.Unlock(name="x"),
        _alloc("c", 8),
    ),
)
"""The second demand finds nothing but what is locked; that is unlocked later, and then the oldest."""

FAST_HISTORIES: dict[str, History] = {
    "spares-together": TWO_OF_THREE,
    "spares-oldest-first": TWO_OF_THREE,
    "pins-before-eviction": PINNED_IN_THE_MIDDLE,
    "ignores-pins": PINNED_IN_THE_MIDDLE,
    "counts-pending-as-free": CACHED_BESIDE_PENDING,
    "waits-unasked": (SWA2, (*HOLE_UNDER_READER, _alloc("d", 7, may_wait=False))),
    "forgets-waits": (
        SWA2,
        (
            *THREE_REQUESTS,
            op.Launch(event="e"),
            op.Launch(event="f"),
            op.Free(name="b"),
            op.Compact(),
            op.Fire(event="e"),
        ),
    ),
    "moves-behind-gate": REQUEST_IN_THE_MIDDLE,
    "moves-written": (SWA2, HOLE_UNDER_WRITER),
    "moves-without-pending": (SWA2, HOLE_UNDER_READER),
    "split-unlocks": (
        SWA2,
        (op.Insert(key=_key(1, 2, 3)), op.LockPrefix(name="x", key=_key(1, 2, 3)), op.Match(key=_key(1))),
    ),
    "forgets-unlocked": UNLOCKED_BEHIND,
}
"""By the name of the wrong pool."""
