"""What the model demands of an engine at the last operation of a trace, its members anchored as the engine's are."""

import msgspec
from msgspec.structs import replace

from poolproof_conformance.export_test.export_errors import ExportError
from poolproof_conformance.trace_format import Trace
from poolproof_reference.errors import RefusedError
from poolproof_reference.joint_pool import JointPool
from poolproof_spec.operation import AnyDemand, DemandOperation, operation_name
from poolproof_spec.outcome import Granted
from poolproof_spec.state import PoolState


class ModelAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer, and what it may cost."""

    demand: AnyDemand
    granted: bool
    lost_tokens: int
    """Cached tokens that the answer costs, at most."""
    keeps_all: bool
    """Nothing of the cache may go: no FULL or SWA page, no state."""


def model_answer(trace: Trace) -> ModelAnswer:
    """Raises ExportError where the last operation is no demand, or the model refuses one of them."""
    if not trace.operations or not isinstance(trace.operations[-1], DemandOperation):
        what = operation_name(trace.operations[-1]) if trace.operations else "nothing"
        raise ExportError(
            f"{trace.name} ends with {what}; a test in an engine's own API asserts what becomes of a demand",
            "poolproof export-test TRACE --for pytest",
        )
    members = tuple(replace(member, anchored=True) for member in trace.geometry.members)
    pool = JointPool(replace(trace.geometry, members=members))
    try:
        for operation in trace.operations[:-1]:
            pool.apply(operation)
        before, outcome = pool.observe(), pool.apply(trace.operations[-1])
    except RefusedError as error:
        raise ExportError(
            f"{trace.name}: the model refuses a call: {error}", "poolproof export-test TRACE --for pytest"
        ) from None
    lost = [had - has for had, has in zip(_cached(before), _cached(pool.observe()), strict=True)]
    return ModelAnswer(
        demand=trace.operations[-1],
        granted=isinstance(outcome, Granted),
        lost_tokens=lost[0] * trace.geometry.page_tokens,
        keeps_all=not any(lost),
    )


def _cached(state: PoolState) -> tuple[int, int, int]:
    """Cached FULL pages, SWA pages, states."""
    entries = state.entries
    return (
        sum(len(entry.ids) for entry in entries),
        sum(len(entry.swa_ids) for entry in entries),
        sum(entry.state_id is not None for entry in entries),
    )
