"""What the model would do in a state that a target shows: the reference, set into that state, and asked the same."""

from typing import NamedTuple

from poolproof_reference.errors import RefusedError
from poolproof_reference.joint_pool import JointPool
from poolproof_reference.prefix_cache import Node
from poolproof_spec.calls import is_good_call
from poolproof_spec.operation import AnyOperation
from poolproof_spec.outcome import AnyOutcome, Refused
from poolproof_spec.state import PoolState
from poolproof_spec.units import PageId, VirtualId


class Modelled(NamedTuple):
    """The model's answer, and the state in which it leaves the pool."""

    outcome: AnyOutcome
    after: PoolState


def model_answer(state: PoolState, operation: AnyOperation) -> Modelled | None:
    """The reference's answer in `state`; None where that is no state in which a correct pool can be.

    A target that has lost a page or given one away twice is in no such state; then only the rules speak.
    """
    try:
        pool = pool_at(state)
        try:
            outcome = pool.apply(operation)
        except RefusedError as error:
            if is_good_call(state, operation):
                return None  # pages of a good call that are not there: lost before
            outcome = Refused(error=type(error).__name__, message=str(error))
        return Modelled(outcome, pool.observe())
    except (AssertionError, LookupError, ValueError, StopIteration):
        return None


def pool_at(state: PoolState) -> JointPool:
    """A reference pool in that state; its pages hold nothing."""
    pool = JointPool(state.geometry)
    arena, cache = pool.pool, pool.cache
    arena.page_of = [dict(member.bindings) for member in state.members]
    for index, member in enumerate(state.members):
        events: dict[PageId, set[str]] = {}
        for page, event in member.pending:
            events.setdefault(page, set()).add(event)
        arena.pending[index] = events
    arena.gate_open = all(member.gate_open for member in state.members)
    arena.flights = {
        flight.event: (_indexed(state, flight.reads), _indexed(state, flight.writes)) for flight in state.flights
    }
    arena.free_token_ids, arena.free_state_ids = set(state.free_token_ids), set(state.free_state_ids)
    cache.nodes = {
        entry.key: Node(list(entry.ids), bool(entry.swa_ids), entry.state_id, entry.last_use) for entry in state.entries
    }
    cache.locks = {lock.name: lock for lock in state.locks}
    cache.clock = max((entry.last_use for entry in state.entries), default=0)
    pool.holds = {hold.name: hold for hold in state.holds}
    pool.group_open, pool.queued = state.group_open, state.queued
    return pool


def _indexed(state: PoolState, pages: tuple[tuple[str, VirtualId], ...]) -> set[tuple[int, VirtualId]]:
    return {(state.geometry.index_of(name), identifier) for name, identifier in pages}
