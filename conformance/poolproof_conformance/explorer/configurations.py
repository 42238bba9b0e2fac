"""The named family of small configurations that `poolproof explore` knows."""

from difflib import get_close_matches

from poolproof_conformance.errors import PoolproofError
from poolproof_conformance.explorer.configuration import (
    Configuration,
    allocs,
    decode,
    extend,
    flight,
    four,
    gates,
    group,
    inserts,
    key,
    locks,
    matches,
    states,
    tail,
)
from poolproof_spec import operation as op
from poolproof_spec.geometry import layout

A, AB, AC, B, ABC = key(1), key(1, 2), key(1, 3), key(2), key(1, 2, 3)

FAMILY: tuple[Configuration, ...] = (
    Configuration(
        name="swa2-nested",
        about="A prefix, one that extends it, one beside it; token demands that evict.",
        geometry=layout("swa2", 224, SWA=32, FULL=32),
        operations=(
            *inserts(A, AB, B),
            *matches(AB),
            *allocs("a", 1, 2),
            op.Free(name="a"),
        ),
    ),
    Configuration(
        name="swa2-window",
        about="A short old prefix beside a longer new one in a window of two pages: the first victim is spared.",
        geometry=layout("swa2", 224, window_tokens=2, SWA=32, FULL=32),
        operations=(
            *inserts(B, AB),
            *allocs("a", 1, 2),
            op.Free(name="a"),
        ),
    ),
    Configuration(
        name="swa2-chain",
        about="Three prefixes in a row under one lock: tombstones in the middle pay for FULL pages.",
        geometry=layout("swa2", 224, SWA=32, FULL=32),
        operations=(
            *inserts(A, AB, ABC),
            *locks("x", ABC),
            *matches(AB),
            tail("a", 0, 1, 0),
            op.Free(name="a"),
        ),
    ),
    Configuration(
        name="swa2-locks",
        about="Two prefixes and a lock on either, its window given back early; tails, tombstones, recovery.",
        geometry=layout("swa2", 192, SWA=32, FULL=32),
        operations=(
            *inserts(A, AB),
            *locks("x", A, AB),
            *allocs("a", 1),
            tail("a", 0, 2, 1),
            op.Recover(name="a"),
            op.FreeWindow(name="a"),
            op.Free(name="a"),
        ),
    ),
    Configuration(
        name="swa2-handles",
        about="Two handles on one prefix.",
        geometry=layout("swa2", 192, SWA=32, FULL=32),
        operations=(
            *inserts(A, AB),
            *locks("x", A, AB),
            *locks("y", A, AB),
            *allocs("a", 1),
            op.Free(name="a"),
        ),
    ),
    Configuration(
        name="swa2-gate",
        about="The move gate under demands that evict; housekeeping and questions.",
        geometry=layout("swa2", 192, SWA=32, FULL=32),
        operations=(
            *inserts(A, B),
            *allocs("a", 1, 2),
            op.Free(name="a"),
            op.FreeWindow(name="a"),
            *gates(),
            op.Compact(),
            op.Query(),
            op.Capacity(),
        ),
    ),
    Configuration(
        name="swa2-event",
        about="One forward in flight: pinned pages, pending ones, demands that may wait and that may not.",
        geometry=layout("swa2", 224, SWA=32, FULL=32),
        operations=(
            *allocs("a", 1),
            *allocs("b", 1, 2, may_wait=False),
            op.Free(name="a"),
            op.Free(name="b"),
            *flight("b"),
            op.Compact(),
        ),
    ),
    Configuration(
        name="swa2-group",
        about="Frees that are deferred, and bad calls.",
        geometry=layout("swa2", 224, SWA=32, FULL=32),
        operations=(
            *inserts(A, B),
            op.Insert(key=()),
            *allocs("a", 1, 2),
            *allocs("b", 1),
            op.Free(name="a"),
            op.Free(name="b"),
            *group(),
            op.Query(),
        ),
        bad_calls=True,
    ),
    Configuration(
        name="swa2-pages",
        about="Two tokens a page: every kind of demand that rounds.",
        geometry=layout("swa2", 448, page_tokens=2, window_tokens=2, SWA=64, FULL=64),
        operations=(
            *inserts(A, B),
            *allocs("a", 1, 3),
            extend("a", (2, 3), (2, 4)),
            decode("a", 2, 3),
            tail("a", 1, 6, 2),
            op.Free(name="a"),
        ),
    ),
    Configuration(
        name="mamba2-pending",
        about="A hole under a reader: housekeeping leaves pages pending, and demands come before the event fires.",
        geometry=layout("mamba2", 208, STATE=48, FULL=32),
        operations=(
            *allocs("a", 1),
            *allocs("b", 1, 2),
            op.Free(name="a"),
            op.Free(name="b"),
            *flight(),
            op.Compact(),
        ),
    ),
    Configuration(
        name="mamba2-split",
        about="Two prefixes of two pages that part after the first: nodes split, states stay at their ends.",
        geometry=layout("mamba2", 256, STATE=48, FULL=32),
        operations=(
            *inserts(AB, AC, state=True),
            *inserts(A),
            *matches(AC),
            *locks("x", AB, window=False),
            *allocs("a", 1),
            *states("a", 1),
            op.Free(name="a"),
        ),
    ),
    Configuration(
        name="mamba2-spare",
        about="A short old prefix beside a long new one; states and tokens of unlike sizes.",
        geometry=layout("mamba2", 240, STATE=48, FULL=32),
        operations=(
            *inserts(B, AB, state=True),
            *allocs("a", 1, 2),
            *states("a", 2),
            op.Free(name="a"),
        ),
    ),
    Configuration(
        name="tri-states",
        about="Three page sizes: states, windows and tokens pay for each other.",
        geometry=layout("tri", 272, STATE=48, SWA=32, FULL=32),
        operations=(
            *inserts(A, B, state=True),
            *allocs("a", 1, 2),
            *states("a", 1, 2),
            op.FreeWindow(name="a"),
            op.Free(name="a"),
        ),
    ),
    Configuration(
        name="tri-all",
        about="States, windows and tokens with locks, tombstones, the gate, one event and housekeeping, all at once.",
        geometry=layout("tri", 240, STATE=48, SWA=32, FULL=32),
        operations=(
            *inserts(A, state=True),
            *locks("x", A),
            *allocs("a", 1),
            *states("a", 1, may_wait=False),
            op.Free(name="a"),
            *gates(),
            *flight("a"),
            op.Compact(),
        ),
    ),
    Configuration(
        name="tri-pages",
        about="Two tokens a page between states and FULL: the float moves both ways.",
        geometry=layout("tri", 576, page_tokens=2, window_tokens=2, STATE=48, SWA=64, FULL=64),
        operations=(
            *inserts(A, AB),
            *allocs("a", 1),
            *states("a", 1, 2),
            tail("a", 0, 3, 2),
            op.Free(name="a"),
        ),
    ),
    Configuration(
        name="four-floats",
        about="A chain with two floats, one of them of half the page size.",
        geometry=four(256, STATE=48, SWA=32, SWA2=16, FULL=32),
        operations=(
            *inserts(A),
            *allocs("a", 1),
            *states("b", 1),
            op.Free(name="a"),
            op.Free(name="b"),
            op.Compact(),
        ),
    ),
)
"""Small ones: the plain engine finishes each in a minute or two."""

LARGE: tuple[Configuration, ...] = (
    Configuration(
        name="mamba2-large",
        about="Half a million states up to names: two requests, a split, locks, the gate; a measure of speed.",
        geometry=layout("mamba2", 304, STATE=48, FULL=32),
        operations=(
            *inserts(A, AB, AC, state=True),
            *matches(AB, AC),
            *locks("x", AB, AC, window=False),
            *allocs("a", 1, 2),
            *states("a", 1),
            *allocs("b", 1),
            *states("b", 1),
            op.Free(name="a"),
            op.Free(name="b"),
            *gates(),
            op.Compact(),
        ),
    ),
    Configuration(
        name="swa2-large",
        about="A million states up to names: locks, tombstones, tails, recovery, the gate, one event, housekeeping.",
        geometry=layout("swa2", 256, SWA=32, FULL=32),
        operations=(
            *inserts(A, AB),
            *matches(AB),
            *locks("x", A, AB),
            *allocs("a", 1, 2),
            tail("a", 0, 2, 1),
            op.Recover(name="a"),
            op.Free(name="a"),
            op.FreeWindow(name="a"),
            *gates(),
            op.Compact(),
            *flight("a"),
        ),
    ),
    Configuration(
        name="swa2-huge",
        about="The same with two handles more: more than ten million states up to names.",
        geometry=layout("swa2", 256, SWA=32, FULL=32),
        operations=(
            *inserts(A, AB),
            *matches(AB),
            *locks("x", A, AB),
            *locks("y", AB),
            *locks("z", A),
            *allocs("a", 1, 2),
            tail("a", 0, 2, 1),
            op.Recover(name="a"),
            op.Free(name="a"),
            op.FreeWindow(name="a"),
            *gates(),
            op.Compact(),
            *flight("a"),
        ),
    ),
)
"""Those that only the packed engine finishes, with --symmetry."""


def configuration_named(name: str) -> Configuration:
    """The configuration of that name. Raises PoolproofError, which names the known ones."""
    known = {configuration.name: configuration for configuration in (*FAMILY, *LARGE)}
    if name in known:
        return known[name]
    near = get_close_matches(name, known, 3) or list(known)
    raise PoolproofError(f"no configuration {name!r}; near: {', '.join(near)}", "poolproof explore --list")
