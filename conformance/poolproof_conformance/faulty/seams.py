"""The reference with a method for each decision of a demand, so that a fault is one method; otherwise the same."""

from typing import ClassVar

from poolproof_reference.joint_pool import JointPool
from poolproof_reference.pool import Pool
from poolproof_reference.prefix_cache import PrefixCache
from poolproof_reference.reserve import victims
from poolproof_spec import operation as op
from poolproof_spec.demand import Demand, demand_of
from poolproof_spec.fits import ids_suffice
from poolproof_spec.geometry import Geometry
from poolproof_spec.outcome import AnyOutcome, Blocked, Granted, Impossible, Rejected, Step
from poolproof_spec.state import Hold, PoolState
from poolproof_spec.steps import after_step, freed_by, tree_of
from poolproof_spec.verdict import honest_reason


class SeamedPool(JointPool):
    """Behaves as the reference does; a wrong pool replaces one of its methods, or its arena, or its cache."""

    pool_class: ClassVar[type[Pool]] = Pool
    cache_class: ClassVar[type[PrefixCache]] = PrefixCache

    def __init__(self, geometry: Geometry) -> None:
        super().__init__(geometry)
        self.pool = self.pool_class(geometry)
        self.cache = self.cache_class(geometry)

    def reserve(self, operation: op.DemandOperation) -> AnyOutcome:
        """The phases of a demand, in the order in which the reference takes them."""
        if isinstance(operation, op.Recover):
            self.hold_named(operation.name)
        self.settle()
        state = self.observe()
        demand = self.demand(state, operation)
        steps = self.choose(state, demand, operation)
        if steps is None:
            return self.reject(state, demand)
        self.evict(steps)
        return self.grant(operation, demand, tuple(steps))

    def settle(self) -> None:
        """The phase boundary before the first eviction."""
        self.flush_group()

    def demand(self, state: PoolState, operation: op.DemandOperation) -> Demand:
        """What the operation asks for."""
        demand = demand_of(state, operation)  # type: ignore[arg-type]
        assert demand is not None, "every demand operation has a demand"
        return demand

    def choose(self, state: PoolState, demand: Demand, operation: op.DemandOperation) -> list[Step] | None:
        """V, or None where the demand is to be rejected."""
        return victims(state, demand)

    def reject(self, state: PoolState, demand: Demand) -> Rejected:
        """The answer where nothing was evicted."""
        return Rejected(reason=self.reason(state, demand), compactions=(), walks=1)

    def reason(self, state: PoolState, demand: Demand) -> Impossible | Blocked | None:
        """Why a demand cannot be met."""
        return honest_reason(state, demand)

    def evict(self, steps: list[Step]) -> None:
        """Take the steps, in order."""
        tree = tree_of(self.observe())
        for step in steps:
            self.release(freed_by(tree, step))
            self.cache.evict(step)
            tree = after_step(tree, step)

    def release(self, freed: Hold) -> None:
        """Free what one step gives up."""
        self.pool.free(freed)

    def grant(self, operation: op.DemandOperation, demand: Demand, steps: tuple[Step, ...]) -> AnyOutcome:
        """Take the pages. A pool that believed wrongly that they fit finds out here, its victims gone."""
        state = self.observe()
        if not ids_suffice(state, demand) or self.pool.place(demand) is None:
            return Rejected(reason=self.reason(state, demand), steps=steps, compactions=(), walks=1)
        pages, waited, compactions = self.take(demand, recovered=self.holds.get(operation.name, Hold(name="")))
        self.holds[operation.name] = self.with_pages(operation.name, pages)
        return Granted(
            steps=steps, pages=self.named(pages), waited=waited, compactions=compactions, walks=1 if steps else 0
        )
