"""Wrong answers: dishonest reasons, questions with effects, room that is not there, refusals that leave a trace."""

from msgspec.structs import replace

from poolproof_reference.joint_pool import JointPool
from poolproof_spec import operation as op
from poolproof_spec.demand import Demand
from poolproof_spec.outcome import AnyOutcome, Blocked, Impossible, Rejected
from poolproof_spec.state import PoolState
from poolproof_spec.steps import policy_order, tree_of


class AllImpossible(JointPool):
    """What cannot be had now can never be had."""

    def reject(self, state: PoolState, demand: Demand) -> Rejected:
        """Bytes of the highest member, always."""
        member = state.geometry.members[-1]
        most = member.page_count
        reason = Impossible(bound="bytes", where=member.name, needed=most + 1, available=most)
        return replace(super().reject(state, demand), reason=reason)


class WrongBound(JointPool):
    """Blames the id space for want of bytes."""

    def reject(self, state: PoolState, demand: Demand) -> Rejected:
        """The right reason but for its bound."""
        rejected = super().reject(state, demand)
        if isinstance(rejected.reason, Impossible) and rejected.reason.bound == "bytes":
            return replace(rejected, reason=replace(rejected.reason, bound="ids", where="token"))
        return rejected


class BlamesLocks(JointPool):
    """Whatever blocks a demand, the locks did it."""

    def reject(self, state: PoolState, demand: Demand) -> Rejected:
        """The right reason but for the blocker."""
        rejected = super().reject(state, demand)
        return replace(rejected, reason=Blocked(by=("locks",))) if isinstance(rejected.reason, Blocked) else rejected


class TouchesOnRejection(JointPool):
    """The walk for victims takes the oldest leaf out and puts it back as the newest."""

    def reject(self, state: PoolState, demand: Demand) -> Rejected:
        """After the walk."""
        steps = policy_order(tree_of(state))
        self.cache.touch(step.key for step in steps[:1])
        return super().reject(state, demand)


class QueryFlushes(JointPool):
    """Carries the group's frees out in order to answer."""

    def query(self, operation: op.Query) -> AnyOutcome:
        """A phase boundary that nobody asked for."""
        self.flush_group()
        return super().query(operation)


class OverPromises(JointPool):
    """Says that one page more is available than is."""

    def available_pages(self) -> int:
        """One too many."""
        return super().available_pages() + 1


class UnderPromises(JointPool):
    """Says that one page less is available than is."""

    def available_pages(self) -> int:
        """One too few."""
        return max(0, super().available_pages() - 1)


class RefusesTooLate(JointPool):
    """Begins a call before it looks whether the call is good."""

    def insert(self, operation: op.Insert) -> AnyOutcome:
        """The key of no pages has the whole cache looked at, and that is its newest use."""
        if not operation.key:
            self.cache.touch(self.cache.nodes)
        return super().insert(operation)
