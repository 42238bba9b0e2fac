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
        geometry=layout("swa2", 160, SWA=32, FULL=32),
        operations=(
            *inserts(A, AB, B),
            *matches(AB),
            *allocs("a", 1, 2),
            op.Free(name="a"),
        ),
    ),
    Configuration(
        name="swa2-locks",
        about="Two prefixes and a lock on either, window given back early; tails, tombstones, recovery.",
        geometry=layout("swa2", 192, SWA=32, FULL=32),
        operations=(
            *inserts(A, AB),
            *locks("x", A, AB),
            *allocs("a", 1),
            tail("a", 0, 2, 1),
            tail("a", 0, 1, 0),
            op.Recover(name="a"),
            op.FreeWindow(name="a"),
            op.Free(name="a"),
        ),
    ),
    Configuration(
        name="swa2-gate",
        about="The move gate under a demand that evicts.",
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
        geometry=layout("swa2", 160, SWA=32, FULL=32),
        operations=(
            *inserts(A),
            *allocs("a", 1),
            *allocs("b", 1, may_wait=False),
            op.Free(name="a"),
            op.Free(name="b"),
            *flight("a"),
            op.Compact(),
        ),
    ),
    Configuration(
        name="swa2-group",
        about="Frees that are deferred, bad calls, and a page of two tokens.",
        geometry=layout("swa2", 256, page_tokens=2, window_tokens=2, SWA=64, FULL=64),
        operations=(
            *inserts(A, B),
            op.Insert(key=()),
            *allocs("a", 1, 3),
            extend("a", (2, 3), (2, 4)),
            decode("a", 2, 3),
            op.Free(name="a"),
            *group(),
            op.Query(),
        ),
        bad_calls=True,
    ),
    Configuration(
        name="mamba2-split",
        about="Two prefixes of two pages that part after the first: nodes split, states stay at their ends.",
        geometry=layout("mamba2", 192, STATE=48, FULL=32),
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
        name="tri-states",
        about="Three page sizes: states, windows and tokens pay for each other.",
        geometry=layout("tri", 208, STATE=48, SWA=32, FULL=32),
        operations=(
            *inserts(A, B, state=True),
            *allocs("a", 1, 2),
            *states("a", 1, 2),
            op.Free(name="a"),
        ),
    ),
    Configuration(
        name="four-floats",
        about="A chain with two floats.",
        geometry=four(208, STATE=48, SWA=32, SWA2=16, FULL=32),
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


def configuration_named(name: str) -> Configuration:
    """The configuration of that name. Raises PoolproofError, which names the known ones."""
    known = {configuration.name: configuration for configuration in FAMILY}
    if name in known:
        return known[name]
    near = get_close_matches(name, known, 3) or list(known)
    raise PoolproofError(f"no configuration {name!r}; near: {', '.join(near)}", "poolproof explore --list")
