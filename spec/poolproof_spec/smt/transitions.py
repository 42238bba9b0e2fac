"""The transitions that a search is over: from the empty pool to the state under a demand, and on, victim by victim.

One source text over `Arithmetic`, like the policies: on terms every kind, size and reference of a history is a solver
constant; on ints it says what one history comes to, and is held against the pools operation by operation.
"""

from collections.abc import Sequence
from typing import NamedTuple

from poolproof_spec.arithmetic import Arithmetic, Quantity, Truth
from poolproof_spec.outcome import StepKind
from poolproof_spec.policies import Ask, Holding, Stage, View
from poolproof_spec.smt.histories import (
    CLOSE_GATE,
    FIRE,
    FREE,
    FREE_WINDOW,
    HOLD,
    INSERT,
    LAUNCH,
    LOCK,
    STATES,
    UNLOCK_WINDOW,
    Script,
    Shape,
    ask_of_script,
    well_formed,
)
from poolproof_spec.smt.placement import Placement, Run


class Owner(NamedTuple):
    """A node or a running request."""

    runs: tuple[Run, ...]
    """In each member."""
    born: int
    """The operation that made it."""
    live: tuple[tuple[Truth, ...], ...]
    """For each stage, for each member: whether its pages are still there."""


class Situation(NamedTuple):
    """What a history comes to."""

    view: View
    ask: Ask
    legal: tuple[Truth, ...]
    """For each victim of the view, whether there is such a step; one that is not frees nothing and counts for none."""
    possible: Truth
    """Whether the history is one of those that are covered."""


def situation(shape: Shape, script: Script, a: Arithmetic) -> Situation:
    """The state that a history leaves, what becomes of it victim by victim, and the demand."""
    placed = Placement(shape, script, a)
    for index in range(len(script.kinds)):
        placed.take(index)
    slots = _slots(shape, script, a)
    owners = _owners(shape, script, placed, slots, a)
    view = View(
        total_bytes=placed.total_bytes,
        members=placed.bands(),
        stages=tuple(_stage(shape, script, placed, owners, stage, a) for stage in range(len(slots) + 1)),
        victims=tuple(slot.kind for slot in slots),
        split=a.any_of(*(size > script.window for size in script.sizes)) if shape.has("swa") else False,
    )
    possible = a.all_of(*well_formed(shape, script, a), *placed.conditions)
    return Situation(view, ask_of_script(shape, script), tuple(slot.legal for slot in slots), possible)


# Which victims there are, in policy order


class _Slot(NamedTuple):
    """A step that there may be."""

    kind: StepKind
    insert: int | None
    """Of a leaf: the insert; None for the steps on the locked prefix."""
    is_head: bool
    legal: Truth


def _slots(shape: Shape, script: Script, a: Arithmetic) -> list[_Slot]:
    """Leaves, oldest insert first, its end before its beginning; then what a lock on a prefix leaves to take."""
    slots = []
    for index in range(len(script.kinds)):
        free = a.all_of(script.kinds[index] == INSERT, a.negate(_locked(script, index, a)))
        slots.append(_Slot("leaf", index, False, free))
        if shape.has("swa"):
            slots.append(_Slot("leaf", index, True, a.all_of(free, script.sizes[index] > script.window)))
    released = a.any_of(*(kind == UNLOCK_WINDOW for kind in script.kinds))
    if UNLOCK_WINDOW in shape.operations and (shape.has("swa") or shape.caches_states):
        slots.append(_Slot("tombstone" if shape.has("swa") else "state", None, False, released))
    if shape.has("swa"):
        long = [a.all_of(_locked(script, i, a), script.sizes[i] > script.window) for i in range(len(script.kinds))]
        slots.append(_Slot("tombstone", None, True, a.any_of(*long)))
    return slots


def _locked(script: Script, index: int, a: Arithmetic) -> Truth:
    later = range(index + 1, len(script.kinds))
    return a.any_of(*(a.all_of(script.kinds[i] == LOCK, script.refs[i] == index) for i in later))


def _gone(script: Script, index: int, codes: Sequence[int], a: Arithmetic) -> Truth:
    """Whether a later operation of these kinds names this one."""
    later = range(index + 1, len(script.kinds))
    named = (a.all_of(a.any_of(*(script.kinds[i] == code for code in codes)), script.refs[i] == index) for i in later)
    return a.any_of(*named)


def _owners(shape: Shape, script: Script, placed: Placement, slots: Sequence[_Slot], a: Arithmetic) -> list[Owner]:
    """Nodes and running requests, with when they lose what."""
    owners, stages = [], range(len(slots) + 1)
    for index, kind in enumerate(script.kinds):
        for is_head, runs in ((False, placed.tail[index]), (True, placed.head[index])):
            if is_head and not shape.has("swa"):
                continue
            there = a.all_of(kind == INSERT)
            live = tuple(_live_in_stage(shape, script, slots, index, is_head, there, k, a) for k in stages)
            owners.append(Owner(runs, index, live))
        held = a.all_of(a.any_of(kind == HOLD, kind == STATES), a.negate(_gone(script, index, (FREE,), a)))
        window = a.all_of(held, a.negate(_gone(script, index, (FREE_WINDOW,), a)))
        lives = tuple(window if role == "swa" else held for _, role, _ in shape.chain)
        owners.append(Owner(placed.whole[index], index, tuple(lives for _ in stages)))
    return owners


def _live_in_stage(
    shape: Shape,
    script: Script,
    slots: Sequence[_Slot],
    index: int,
    is_head: bool,
    there: Truth,
    stage: int,
    a: Arithmetic,
) -> tuple[Truth, ...]:
    """For each member, whether a node's pages are left once the first `stage` slots are taken."""
    whole, window = there, there
    for slot in slots[:stage]:
        if slot.is_head == is_head and slot.insert == index:
            whole = a.all_of(whole, a.negate(slot.legal))
        if slot.is_head == is_head and slot.insert is None:
            window = a.all_of(window, a.negate(a.all_of(slot.legal, _locked(script, index, a))))
    return tuple(whole if role == "full" else a.all_of(whole, window) for _, role, _ in shape.chain)


def _stage(
    shape: Shape, script: Script, placed: Placement, owners: Sequence[Owner], stage: int, a: Arithmetic
) -> Stage:
    holdings = []
    for i in range(len(shape.chain)):
        mine = [(owner.runs[i], owner.live[stage][i]) for owner in owners]
        pinned = [
            (owner.runs[i], a.all_of(owner.live[stage][i], _pinned(shape, script, owner.born, a))) for owner in owners
        ]
        live, stuck = _extent(mine, placed.counts[i], a), _extent(pinned, placed.counts[i], a)
        holdings.append(Holding(*live, live[0] - stuck[0], *stuck))
    return tuple(holdings)


def _pinned(shape: Shape, script: Script, born: int, a: Arithmetic) -> Truth:
    """Behind a closed gate, or read by a forward launched since and not waited for."""
    if not shape.pins:
        return False
    closed = a.any_of(*(kind == CLOSE_GATE for kind in script.kinds))
    fired = a.any_of(*(kind == FIRE for kind in script.kinds))
    read = a.any_of(*(kind == LAUNCH for kind in script.kinds[born + 1 :]))
    return a.any_of(closed, a.all_of(read, a.negate(fired)))


def _extent(runs: Sequence[tuple[Run, Truth]], count: Quantity, a: Arithmetic) -> tuple[Quantity, Quantity, Quantity]:
    """(pages, lowest, one past the highest) of the runs that are there."""
    pages: Quantity = 0
    low, high = count, 0
    for run, there in runs:
        pages = pages + a.where(there, run.count, 0)
        some = a.all_of(there, run.count > 0)
        low = a.where(some, a.minimum(low, run.low), low)
        high = a.where(some, a.maximum(high, run.high), high)
    return pages, low, high
