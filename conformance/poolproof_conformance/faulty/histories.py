"""Short histories written by hand, for the wrong pools that a random search seldom or never comes across."""

from poolproof_conformance.generator import History
from poolproof_spec import operation as op
from poolproof_spec.geometry import layout
from poolproof_spec.units import PageKey, TokenCount

SWA2 = layout("swa2", 640, SWA=32, FULL=32)
"""Twenty pages of 32 bytes, of which SWA and FULL can have 19 together."""
TRI = layout("tri", 816, STATE=48, SWA=64, FULL=32)
"""Three page sizes that do not divide each other."""


def _key(*pages: int) -> tuple[PageKey, ...]:
    return tuple(PageKey(page) for page in pages)


def _alloc(name: str, tokens: int) -> op.Alloc:
    return op.Alloc(name=name, tokens=TokenCount(tokens))


TWO_TOMBSTONES: History = (
    layout("swa2", 224, SWA=32, FULL=32),
    (
        op.Insert(key=_key(1)),
        op.Insert(key=_key(1, 2)),
        op.Insert(key=_key(1, 2, 3)),
        op.LockPrefix(name="x", key=_key(1, 2, 3)),
        op.ExtendTail(name="a", prefix_len=TokenCount(0), seq_len=TokenCount(1), tail=TokenCount(0)),
    ),
)
"""Five pages used of six, a locked prefix whose two upper nodes may lose a SWA page each."""

THREE_REQUESTS = (_alloc("a", 1), _alloc("b", 1), _alloc("c", 1))
"""Three pages in a row in each member; freeing the middle one makes a hole."""

HOLE_UNDER_READER = (*THREE_REQUESTS, op.Launch(event="e"), op.Free(name="b"), op.Compact())
"""Housekeeping closes a hole and leaves a page pending."""

HOLE_UNDER_WRITER = (*THREE_REQUESTS, op.Launch(event="e", writes=("c",)), op.Free(name="b"), op.Compact())
"""The same, but what would close the hole is being written."""

STATES_PUSH_BOTH: History = (
    layout("tri", 1696, page_tokens=2, window_tokens=2, STATE=176, SWA=64, FULL=128),
    (
        op.Insert(key=_key(1, 2, 2)),
        op.Insert(key=_key(2, 2)),
        op.AllocStates(name="a", count=2),
        op.AllocStates(name="a", count=2),
    ),
)
"""States grow into SWA, which must move up into what FULL leaves: FULL has to go first."""

DEEP_BEHIND_SHALLOW: History = (
    layout("mamba2", 912, STATE=48, FULL=96),
    (op.Insert(key=_key(1), state=True), op.Insert(key=_key(2, 1), state=True), _alloc("a", 6)),
)
"""The older prefix of one page is taken first; the newer one of two pages would have been enough."""

HALF_A_PAGE: History = (
    layout("mamba2", 192, STATE=48, FULL=32),
    (op.AllocStates(name="a", count=2), _alloc("a", 2)),
)
"""States end in the middle of a FULL page, and above that page there is room for one more, not for two."""

HISTORIES: dict[str, History] = {
    "tombstones-all-at-once": TWO_TOMBSTONES,
    "hands-out-pending": (SWA2, (*HOLE_UNDER_READER, _alloc("d", 1))),
    "forgets-grid-rounding": HALF_A_PAGE,
    "copies-backwards": STATES_PUSH_BOTH,
    "skips-spare-pass": DEEP_BEHIND_SHALLOW,
    "vacates-at-once": (SWA2, HOLE_UNDER_READER),
    "moves-written": (SWA2, HOLE_UNDER_WRITER),
    "query-flushes": (SWA2, (_alloc("a", 1), op.GroupBegin(), op.Free(name="a"), op.Query())),
    "refuses-too-late": (SWA2, (op.Insert(key=_key(1)), op.Insert(key=()))),
    "window-takes-states": (TRI, (op.AllocStates(name="a", count=1), op.FreeWindow(name="a"))),
    "frees-tombstoned-twice": (SWA2, (_alloc("a", 2), op.FreeWindow(name="a"), op.Free(name="a"))),
}
"""By the name of the wrong pool."""
