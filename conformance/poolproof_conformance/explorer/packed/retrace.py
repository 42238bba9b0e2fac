"""From a packed state back to a history: level by level to the empty pool, then forward with the reference's pools."""

from __future__ import annotations

from poolproof_conformance.explorer.exploration import Found
from poolproof_conformance.explorer.packed.encoding import Encoder
from poolproof_conformance.explorer.packed.engine import CHUNK, Broken, PackedEngine, chunks
from poolproof_conformance.explorer.packed.lanes import Column
from poolproof_conformance.explorer.policies import ExploredPolicy
from poolproof_conformance.explorer.snapshot import Frozen
from poolproof_conformance.explorer.stepping import Stepper
from poolproof_spec.operation import AnyOperation


def found_by(engine: PackedEngine, broken: Broken, policy: ExploredPolicy) -> Found | None:
    """The violation as a history that shows it in the policy's own pool; None where that pool does not."""
    stepper = Stepper(policy, engine.model.geometry)
    last = broken.level - (broken.operation is None)
    line = _line(engine, broken.state, broken.level)[: last + 1]
    walked = _walk(engine, stepper, line)
    if walked is None:
        return None
    history, frozen = walked
    before = stepper.before(frozen)
    for operation in engine.model.operations:
        if stepper.applies(before, operation):
            violated = stepper.step(frozen, before, operation).violated
            if broken.rule in violated:
                return Found(property=broken.rule, message=violated[broken.rule], operations=(*history, operation))
    return None


def _line(engine: PackedEngine, state: Column, level: int) -> list[Column]:
    """A stored state of each level from the empty pool to this one, each a step from the one before."""
    line = [state]
    for number in range(level - 1, -1, -1):
        line.append(_before(engine, engine.stored.levels[number](), line[-1]))
    return line[::-1]


def _before(engine: PackedEngine, level: Column, state: Column) -> Column:
    """A state of the level from which one operation leads to the given one."""
    for chunk in chunks(level, CHUNK):
        for operation in engine.model.operations:
            rows, states = engine.step(chunk, operation)
            hit = engine.backend.which(states == state)
            if len(hit):
                return engine.backend.rows(chunk, engine.backend.rows(rows, hit[:1]))
    raise AssertionError("a state was stored that no state of the level before leads to")


def _walk(engine: PackedEngine, stepper: Stepper, line: list[Column]) -> tuple[tuple[AnyOperation, ...], Frozen] | None:
    """Operations that lead along the line in the policy's pool, and the state at its end."""
    encoder, frozen = Encoder(engine.model), stepper.initial()
    history: tuple[AnyOperation, ...] = ()
    for state in line[1:]:
        wanted = tuple(int(word[0]) for word in engine.backend.split(state, engine.model.words))
        before = stepper.before(frozen)
        for operation in engine.model.operations:
            if not stepper.applies(before, operation):
                continue
            after = stepper.step(frozen, before, operation).after
            if after is not None and encoder.representative(after) == wanted:
                history, frozen = (*history, operation), after
                break
        else:
            return None
    return history, frozen
