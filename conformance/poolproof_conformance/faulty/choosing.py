"""Wrong choices of victims: too many of them, too few, or the wrong ones."""

from msgspec.structs import replace

from poolproof_reference.joint_pool import JointPool
from poolproof_reference.reserve import spare, victims
from poolproof_spec import operation as op
from poolproof_spec.demand import Demand
from poolproof_spec.fits import fits, ids_suffice
from poolproof_spec.outcome import AnyOutcome, Rejected, Step
from poolproof_spec.quotas import own_quota_reached
from poolproof_spec.state import PoolState
from poolproof_spec.steps import after_step, after_steps, age, is_legal, policy_order, tree_of


class CredulousPool(JointPool):
    """May believe wrongly that a demand fits: it finds out when it takes the pages, its victims gone."""

    def grant(self, operation: op.DemandOperation, demand: Demand, steps: list[Step]) -> AnyOutcome:
        """Rejected too late where there is no room."""
        state = self.observe()
        if ids_suffice(state, demand) and self.pool.place(demand) is not None:
            return super().grant(operation, demand, steps)
        return replace(self.reject(state, demand), steps=tuple(steps))


class WalkingPool(CredulousPool):
    """Walks its order of steps up to the first stage that it takes for enough; spares nothing."""

    def order(self, state: PoolState) -> list[Step]:
        """Every step that it may take, first to last."""
        return policy_order(tree_of(state))

    def enough(self, start: PoolState, stage: PoolState, demand: Demand) -> bool:
        """Whether the walk that began at `start` may stop at `stage`."""
        return fits(stage, demand)

    def choose(self, state: PoolState, demand: Demand, operation: op.DemandOperation) -> list[Step] | None:
        """The least prefix of the order that is enough."""
        order, stage = self.order(state), state
        for count in range(len(order) + 1):
            if self.enough(state, stage, demand):
                return order[:count]
            stage = after_steps(stage, order[count : count + 1])
        return None


class NoSparePass(WalkingPool):
    """As it stands: the first sufficient prefix, nothing of it given back."""


class OwnShortfall(WalkingPool):
    """Each side's lack is found and freed by itself."""

    def enough(self, start: PoolState, stage: PoolState, demand: Demand) -> bool:
        """Whether each side of the demand fits alone."""
        sides = (
            Demand(full_pages=demand.full_pages, may_wait=demand.may_wait),
            Demand(swa_pages=demand.swa_pages, may_wait=demand.may_wait),
            Demand(state_pages=demand.state_pages, may_wait=demand.may_wait),
        )
        return all(fits(stage, side) for side in sides)

    def choose(self, state: PoolState, demand: Demand, operation: op.DemandOperation) -> list[Step] | None:
        """None also where a few victims more would have done."""
        steps = super().choose(state, demand, operation)
        return steps if steps is None or fits(after_steps(state, steps), demand) else None


class OwnQuota(WalkingPool):
    """Knows no other way to be sure of enough than to free all that is asked for."""

    def enough(self, start: PoolState, stage: PoolState, demand: Demand) -> bool:
        """Whether nothing need be freed, or as much has been as is demanded."""
        return fits(start, demand) or own_quota_reached(start, stage, demand)

    def choose(self, state: PoolState, demand: Demand, operation: op.DemandOperation) -> list[Step] | None:
        """As the reference does where there is not that much to free."""
        steps = super().choose(state, demand, operation)
        return victims(state, demand) if steps is None else steps


class EmptiesTheCache(JointPool):
    """All or nothing."""

    def choose(self, state: PoolState, demand: Demand, operation: op.DemandOperation) -> list[Step] | None:
        """Every legal step, once one is needed."""
        steps = super().choose(state, demand, operation)
        return policy_order(tree_of(state)) if steps else steps


class WholeCacheFallback(JointPool):
    """Tries with the whole cache gone before it gives up."""

    def reject(self, state: PoolState, demand: Demand) -> Rejected:
        """Nothing helped."""
        steps = policy_order(tree_of(state))
        self.evict(steps)
        return replace(super().reject(state, demand), steps=tuple(steps))


class SlackOfOneEntry(WalkingPool):
    """Keeps bytes to spare where the need is exact."""

    def enough(self, start: PoolState, stage: PoolState, demand: Demand) -> bool:
        """Whether it fits an arena shorter by the largest page."""
        geometry = stage.geometry
        shorter = geometry.total_bytes - max(member.page_bytes for member in geometry.members)
        members = tuple(replace(member, page_count=shorter // member.page_bytes) for member in geometry.members)
        return fits(replace(stage, geometry=replace(geometry, members=members)), demand)


class CascadeCountedTwice(WalkingPool):
    """Books what a leaf's cascade frees in other members once with the leaf and once more by itself."""

    def enough(self, start: PoolState, stage: PoolState, demand: Demand) -> bool:
        """Whether what the second booking leaves of the demand fits."""
        swa_pages, states = 0, 0
        for entry in set(start.entries) - set(stage.entries):
            swa_pages += len(entry.swa_ids)
            states += entry.state_id is not None
        rest = replace(
            demand,
            swa_pages=max(0, demand.swa_pages - swa_pages),
            state_pages=max(0, demand.state_pages - states),
        )
        return fits(stage, rest)


class TombstonesAllAtOnce(JointPool):
    """Knows no single tombstone."""

    def choose(self, state: PoolState, demand: Demand, operation: op.DemandOperation) -> list[Step] | None:
        """Every tombstone that is left, once one is needed."""
        steps = super().choose(state, demand, operation)
        if not steps or steps[-1].kind != "tombstone":
            return steps
        left = policy_order(tree_of(after_steps(state, steps)))
        return steps + [step for step in left if step.kind == "tombstone"]


class EvictsLocked(WalkingPool):
    """Looks at no lock."""

    def order(self, state: PoolState) -> list[Step]:
        """The order of the same tree, all unlocked."""
        unlocked = (replace(entry, full_locks=0, swa_locks=0, state_locks=0) for entry in state.entries)
        return policy_order({entry.key: entry for entry in unlocked})


class NewestFirst(WalkingPool):
    """Legal steps only, no more than needed, none that could be spared: but the most recently used go first."""

    def order(self, state: PoolState) -> list[Step]:
        """Leaves, then tombstones, then states; each time the newest that may go."""
        tree, order = tree_of(state), list[Step]()
        for kind in ("leaf", "tombstone", "state"):
            while steps := [
                s for e in sorted(tree.values(), key=age) if is_legal(tree, s := Step(kind=kind, key=e.key))
            ]:
                order.append(steps[-1])
                tree = after_step(tree, steps[-1])
        return order

    def choose(self, state: PoolState, demand: Demand, operation: op.DemandOperation) -> list[Step] | None:
        """With the spare pass of the reference."""
        steps = super().choose(state, demand, operation)
        return None if steps is None else spare(state, demand, steps)
