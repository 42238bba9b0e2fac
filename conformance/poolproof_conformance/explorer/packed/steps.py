"""One operation in every lane at once: where it is enabled, and the lanes that it leads to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from poolproof_conformance.explorer.packed.arena_steps import ArenaSteps
from poolproof_conformance.explorer.packed.cache_steps import CacheSteps
from poolproof_conformance.explorer.packed.demand_steps import DemandSteps
from poolproof_conformance.explorer.packed.lanes import Lanes
from poolproof_conformance.explorer.packed.step_base import Stepped
from poolproof_spec import operation as op


class Steps(CacheSteps, DemandSteps, ArenaSteps):
    """The step of each operation of a model."""

    def step(self, root: Lanes, operation: op.AnyOperation) -> Stepped:
        """Carry the operation out wherever it is a good call."""
        if isinstance(operation, op.DemandOperation):
            return self.demand(root, operation)
        method: Callable[[Lanes, Any], Stepped] = getattr(self, op.operation_name(operation))
        return method(root, operation)
