"""Wrong frees: leaks, pages freed twice, ids that never were, frees that land in the wrong place."""

from msgspec.structs import replace

from poolproof_conformance.faulty.choosing import CredulousPool
from poolproof_reference.joint_pool import JointPool
from poolproof_reference.pool import Pool
from poolproof_spec import operation as op
from poolproof_spec.geometry import Geometry
from poolproof_spec.outcome import AnyOutcome, Done, Step
from poolproof_spec.state import Hold, MemberState
from poolproof_spec.units import PageId, VirtualId

NO_ID = VirtualId(-1)
"""What engines write where an id has no page."""


class NeverSettles(JointPool):
    """Leaves the group's frees uncounted until the group ends."""

    def settle(self) -> None:
        """No phase boundary."""


class SettlesTooLate(JointPool):
    """Counts the group's frees after it has chosen its victims."""

    def settle(self) -> None:
        """Not yet."""

    def evict(self, steps: list[Step]) -> None:
        """The boundary comes with the first eviction."""
        self.flush_group()
        super().evict(steps)


class ClosesGroup(JointPool):
    """Ends the caller's group at the phase boundary."""

    def settle(self) -> None:
        """Carries the frees out, and forgets that more may come."""
        super().settle()
        self.group_open = False


class VictimsIntoGroup(CredulousPool):
    """What an eviction frees is collected in the caller's group instead of being free."""

    def release(self, freed: Hold) -> None:
        """As any other free."""
        self.holds["victim"] = freed
        self.free(op.Free(name="victim"))


class LeaksPage(JointPool):
    """One page of a request outlives it."""

    def free(self, operation: op.Free) -> AnyOutcome:
        """All but the last token page."""
        hold = self.hold_named(operation.name)
        self.holds[operation.name] = replace(
            hold, ids=hold.ids[:-1], swa_ids=tuple(set(hold.swa_ids) - {*hold.ids[-1:]})
        )
        return super().free(operation)


class KeepsSwaOfFreed(CredulousPool):
    """A victim gives its FULL pages and keeps the SWA pages of the same ids."""

    def release(self, freed: Hold) -> None:
        """One member of two."""
        super().release(replace(freed, swa_ids=()) if freed.ids else freed)


class WindowTakesStates(JointPool):
    """What leaves the window takes the request's states with it."""

    def free_window(self, operation: op.FreeWindow) -> AnyOutcome:
        """SWA pages and states."""
        hold = self.hold_named(operation.name)
        self.pool.free(Hold(name="", swa_ids=hold.swa_ids, state_ids=hold.state_ids))
        self.holds[operation.name] = replace(hold, swa_ids=(), state_ids=())
        return Done()


class StaleArena(Pool):
    """Its lists of free pages take what they are given."""

    def __init__(self, geometry: Geometry) -> None:
        super().__init__(geometry)
        self.tombstoned: list[dict[VirtualId, PageId]] = [{} for _ in geometry.members]
        self.freed_twice: list[list[PageId]] = [[] for _ in geometry.members]

    def _member_state(self, index: int) -> MemberState:
        state = super()._member_state(index)
        return replace(state, free_pages=tuple(sorted((*(state.free_pages or ()), *self.freed_twice[index]))))

    def free(self, freed: Hold) -> None:
        """An id's SWA page is looked up in a table that a tombstone has not cleared."""
        for index in self.geometry.with_role("swa"):
            tombstoned = set(freed.swa_ids) - set(freed.ids)
            self.tombstoned[index].update((i, page) for i, page in self.page_of[index].items() if i in tombstoned)
            stale = [i for i in freed.ids if i in self.tombstoned[index]]
            self.freed_twice[index] += [self.tombstoned[index].pop(identifier) for identifier in stale]
        super().free(freed)


class TombstoneFreedTwice(JointPool):
    """The SWA page of a tombstoned id is freed once with the tombstone and once with the leaf."""

    pool_class = StaleArena


class SentinelArena(Pool):
    """Reads an id for every token page, also where there is none."""

    def free(self, freed: Hold) -> None:
        """The mark of a missing SWA page goes the way of an id."""
        super().free(freed)
        if self.geometry.has_role("swa") and set(freed.ids) - set(freed.swa_ids):
            self.free_token_ids.add(NO_ID)


class FreesSentinel(JointPool):
    """The mark of a missing page enters the free ids."""

    pool_class = SentinelArena
