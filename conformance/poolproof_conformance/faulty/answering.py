"""Wrong answers: dishonest reasons, questions with effects, room that is not there, refusals that leave a trace."""

from msgspec.structs import replace

from poolproof_conformance.faulty.seams import SeamedPool
from poolproof_spec import operation as op
from poolproof_spec.demand import Demand
from poolproof_spec.outcome import AnyOutcome, Blocked, Impossible, Rejected
from poolproof_spec.state import PoolState
from poolproof_spec.steps import policy_order, tree_of


class AllImpossible(SeamedPool):
    """What cannot be had now can never be had."""

    def reason(self, state: PoolState, demand: Demand) -> Impossible | Blocked | None:
        """Bytes of the highest member, always."""
        member = state.geometry.members[-1]
        return Impossible(bound="bytes", where=member.name, needed=member.page_count + 1, available=member.page_count)


class WrongBound(SeamedPool):
    """Blames the id space for want of bytes."""

    def reason(self, state: PoolState, demand: Demand) -> Impossible | Blocked | None:
        """The right reason but for its bound."""
        reason = super().reason(state, demand)
        if isinstance(reason, Impossible) and reason.bound == "bytes":
            return replace(reason, bound="ids", where="token")
        return reason


class BlamesLocks(SeamedPool):
    """Whatever blocks a demand, the locks did it."""

    def reason(self, state: PoolState, demand: Demand) -> Impossible | Blocked | None:
        """The right reason but for the blocker."""
        reason = super().reason(state, demand)
        return Blocked(by=("locks",)) if isinstance(reason, Blocked) else reason


class TouchesOnRejection(SeamedPool):
    """The walk for victims takes the oldest leaf out and puts it back as the newest."""

    def reject(self, state: PoolState, demand: Demand) -> Rejected:
        """After the walk."""
        steps = policy_order(tree_of(state))
        self.cache.touch(step.key for step in steps[:1])
        return super().reject(state, demand)


class QueryFlushes(SeamedPool):
    """Carries the group's frees out in order to answer."""

    def query(self, operation: op.Query) -> AnyOutcome:
        """A phase boundary that nobody asked for."""
        self.flush_group()
        return super().query(operation)


class OverPromises(SeamedPool):
    """Says that one page more is available than is."""

    def available_pages(self) -> int:
        """One too many."""
        return super().available_pages() + 1


class UnderPromises(SeamedPool):
    """Says that one page less is available than is."""

    def available_pages(self) -> int:
        """One too few."""
        return max(0, super().available_pages() - 1)


class RefusesTooLate(SeamedPool):
    """Begins a call before it looks whether the call is good."""

    def insert(self, operation: op.Insert) -> AnyOutcome:
        """The key of no pages has the whole cache looked at, and that is its newest use."""
        if not operation.key:
            self.cache.touch(self.cache.nodes)
        return super().insert(operation)
