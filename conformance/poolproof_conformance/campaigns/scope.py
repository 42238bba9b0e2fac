"""The exhaustive stage: on small arenas, every question after every short setup, shortest first.

A scope is an arena with an alphabet. Its histories are all sequences of at most LONGEST operations that end in a
question (a demand, a query, a capacity) and in which no name is given back before it was taken. The order is fixed,
across the scopes of a layout by length, so that the n-th history is the same for everybody.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from itertools import product

import msgspec

from poolproof_conformance.explorer.configuration import Key, allocs, decode, extend, inserts, key, states, tail
from poolproof_conformance.explorer.configurations import FAMILY
from poolproof_conformance.generator import KV_BYTES, STATE_BYTES, History
from poolproof_spec import operation as op
from poolproof_spec.geometry import LAYOUTS, Geometry, derive, geometry_problems, layout_name

LONGEST = 3
"""Operations of the longest history."""
A, AB, B = key(1), key(1, 2), key(2)


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """An arena, what fills it, and what is then asked."""

    geometry: Geometry
    setups: tuple[op.AnyOperation, ...]
    questions: tuple[op.AnyOperation, ...]


ARENAS: dict[str, tuple[tuple[tuple[int, int, int], int, int, int], ...]] = {
    "swa2": (
        ((1, 1, 0), 4, 0, 1),
        ((2, 1, 0), 3, 0, 1),
        ((1, 2, 0), 4, 0, 1),
        ((1, 1, 0), 3, 0, 2),
    ),
    "mamba2": (
        ((1, 0, 0), 4, 1, 1),
        ((3, 0, 1), 2, 4, 1),
        ((1, 0, 0), 1, 3, 2),
    ),
    "tri": (
        ((1, 1, 0), 4, 1, 1),
        ((2, 1, 0), 2, 4, 1),
        ((1, 1, 1), 3, 3, 1),
        ((1, 1, 0), 2, 2, 2),
    ),
}
"""Layout to arenas: layers of FULL and SWA and which size of state; token pages and states of room; tokens a page."""


def arena(name: str, layers: tuple[int, int, int], token_pages: int, count: int, page_tokens: int) -> Geometry:
    """A layout's arena with room for that many token pages and states, its padding included."""
    full, swa, state = layers
    sizes = {"full": full * KV_BYTES * page_tokens, "swa": swa * KV_BYTES * page_tokens, "state": STATE_BYTES[state]}
    chain = [(member, role, sizes[role], kind) for member, role, kind in LAYOUTS[name]]
    room = sum(size * (count if role == "state" else token_pages) for _, role, size, _ in chain)
    return derive(room, chain, page_tokens=page_tokens)


def scopes(name: str) -> Iterator[Scope]:
    """The explorer's configurations of the layout, then arenas with an alphabet of every kind of operation."""
    for configuration in FAMILY:
        if layout_name(configuration.geometry) == name and not configuration.bad_calls:
            alphabet = configuration.operations
            asked = tuple(operation for operation in alphabet if is_question(operation))
            yield Scope(geometry=configuration.geometry, setups=alphabet, questions=asked)
    for sizes in ARENAS[name]:
        geometry = arena(name, *sizes)
        assert not geometry_problems(geometry)
        yield Scope(geometry=geometry, setups=_setups(geometry), questions=_questions(geometry))


def _setups(geometry: Geometry) -> tuple[op.AnyOperation, ...]:
    has_swa, has_states = geometry.has_role("swa"), geometry.has_role("state")
    with_state = has_states and geometry.page_tokens == 1
    t = geometry.page_tokens
    return (
        *inserts(A, AB, B, state=with_state),
        *allocs("a", t, 2 * t),
        *(states("a", 1) if has_states else ()),
        *((op.FreeWindow(name="a"), tail("a", 0, t, 0)) if has_swa else ()),
        op.Free(name="a"),
        op.LockPrefix(name="x", key=AB),
        op.Gate(open=False),
        op.GroupBegin(),
        op.Launch(event="e"),
    )


def _questions(geometry: Geometry) -> tuple[op.AnyOperation, ...]:
    t = geometry.page_tokens
    most = len(geometry.id_range("full"))
    asked: list[op.AnyOperation] = [*allocs("b", *dict.fromkeys((t, 2 * t, 3 * t, most * t)))]
    asked += [decode("b", t, t + 1), extend("b", (0, 1), (t, t + 1))]
    if geometry.has_role("swa"):
        asked += [tail("b", 0, 2 * t, 0), tail("b", 0, 2 * t, 1), op.Recover(name="a")]
    if geometry.has_role("state"):
        asked += [*states("b", 1, 2, 4)]
    return (*asked, op.Capacity())


def is_question(operation: op.AnyOperation) -> bool:
    """Whether a history may end in it: something that a pool may answer wrongly."""
    return isinstance(operation, op.DemandOperation | op.Query | op.Capacity)


@cache
def exhaustive_histories(name: str) -> tuple[History, ...]:
    """Every history of the layout's scopes, shortest first; the same always."""
    found = []
    for length in range(1, LONGEST + 1):
        for scope in scopes(name):
            for operations in product(*[scope.setups] * (length - 1), scope.questions):
                if makes_sense(operations):
                    found.append((scope.geometry, operations))
    return tuple(found)


@cache
def scope_digest() -> str:
    """Tells whether two versions enumerate the same histories."""
    scope = [(name, list(scopes(name)), LONGEST) for name in LAYOUTS]
    return sha256(msgspec.json.encode(scope)).hexdigest()[:8]


def makes_sense(operations: Sequence[op.AnyOperation]) -> bool:
    """Whether nothing is given back that was not taken, and nothing is done twice over for nothing."""
    held: set[str] = set()
    locked: set[str] = set()
    cached: set[Key] = set()
    is_open, gate_open, launched = False, True, False
    for before, operation in zip((None, *operations), operations, strict=False):
        if before == operation and not isinstance(operation, op.DemandOperation):
            return False
        match operation:
            case op.Recover(name=name) | op.FreeWindow(name=name) if name not in held:
                return False
            case op.Free(name=name):
                if name not in held:
                    return False
                held.discard(name)
            case op.DemandOperation(name=name):
                held.add(name)
            case op.Insert(key=prefix):
                cached |= {prefix[:length] for length in range(1, len(prefix) + 1)}
            case op.Match(key=prefix) if prefix[:1] not in cached:
                return False
            case op.LockPrefix(name=name, key=prefix):
                if prefix[:1] not in cached or name in locked:
                    return False
                locked.add(name)
            case op.Unlock(name=name) | op.UnlockWindow(name=name) if name not in locked:
                return False
            case op.GroupBegin() | op.GroupEnd():
                if is_open != isinstance(operation, op.GroupEnd):
                    return False
                is_open = not is_open
            case op.Gate(open=opens):
                if opens == gate_open:
                    return False
                gate_open = opens
            case op.Launch() | op.Fire():
                if launched != isinstance(operation, op.Fire):
                    return False
                launched = not launched
            case op.Capacity() if is_open:
                return False
    return True
