"""Wrong moves: those that are not allowed, and those that lose bytes."""

from collections import Counter

from msgspec.structs import replace

from poolproof_conformance.faulty.placing import Placed
from poolproof_reference.joint_pool import JointPool
from poolproof_reference.pool import Pool
from poolproof_spec import operation as op
from poolproof_spec.demand import Demand
from poolproof_spec.moves import Batch
from poolproof_spec.outcome import AnyOutcome, Granted, Step
from poolproof_spec.state import PoolState
from poolproof_spec.units import VirtualId
from poolproof_spec.verdict import lift


class NoPendingArena(Pool):
    """Moves as if nobody read."""

    def readers(self, index: int, identifier: VirtualId) -> set[str]:
        """Nobody."""
        return set()


class VacatesAtOnce(JointPool):
    """A page moved under a reader leaves its old place free."""

    pool_class = NoPendingArena


class GatelessArena(Pool):
    """Plans as if every gate were open."""

    def place(self, demand: Demand) -> Placed | None:
        """With the gate held open for a moment."""
        gate_open, self.gate_open = self.gate_open, True
        try:
            return super().place(demand)
        finally:
            self.gate_open = gate_open


class IgnoresGate(JointPool):
    """Chooses and moves as if every gate were open."""

    pool_class = GatelessArena

    def choose(self, state: PoolState, demand: Demand, operation: op.DemandOperation) -> list[Step] | None:
        """Fewer victims, more moves."""
        return super().choose(lift(state, ("gates",)), demand, operation)


class WriteBlindArena(Pool):
    """Compacts whatever it holds."""

    def compact(self) -> None:
        """As if no forward in flight wrote anything."""
        flights = self.flights
        self.flights = {event: (reads, set()) for event, (reads, _) in flights.items()}
        super().compact()
        self.flights = flights


class MovesWritten(JointPool):
    """Housekeeping moves a page that a forward is writing."""

    pool_class = WriteBlindArena


class BackwardsArena(Pool):
    """Runs its batches in the order opposite to the one in which they vacate."""

    def place(self, demand: Demand) -> Placed | None:
        """Last batch first."""
        placed = super().place(demand)
        return placed and (placed[0], placed[1][::-1], placed[2])


class CopiesBackwards(JointPool):
    """A copy lands on a page that has yet to leave."""

    pool_class = BackwardsArena


class NoCopyArena(Pool):
    """Moves names, not bytes."""

    def move(self, batch: Batch) -> None:
        """The page table follows, the arena does not."""
        kept = bytes(self.arena)
        super().move(batch)
        self.arena[:] = kept


class ForgetsPayload(JointPool):
    """A page that moves leaves its payload behind."""

    pool_class = NoCopyArena


class HalvingArena(Pool):
    """Moves every member in two goes."""

    def place(self, demand: Demand) -> Placed | None:
        """Each batch of several moves in two halves."""
        placed = super().place(demand)
        if placed is None:
            return None
        halves: list[Batch] = []
        for batch in placed[1]:
            middle = len(batch.moves) // 2
            halves += [replace(batch, moves=part) for part in (batch.moves[:middle], batch.moves[middle:]) if part]
        return placed[0], tuple(halves), placed[2]


class CompactsTwice(JointPool):
    """One member is compacted twice for one demand."""

    pool_class = HalvingArena

    def grant(self, operation: op.DemandOperation, demand: Demand, steps: list[Step]) -> AnyOutcome:
        """With the count of batches, member by member."""
        outcome = super().grant(operation, demand, steps)
        if not isinstance(outcome, Granted):
            return outcome
        return replace(outcome, compactions=tuple(Counter(name for name, _ in outcome.compactions or ()).items()))
