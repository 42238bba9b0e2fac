"""Wrong places and wrong moves: pages outside their window, copies that lose bytes, moves that are not allowed."""

from collections.abc import Sequence

from poolproof_conformance.faulty.choosing import WalkingPool
from poolproof_reference.joint_pool import JointPool
from poolproof_reference.pool import Pool
from poolproof_spec.arithmetic import IntegerArithmetic
from poolproof_spec.demand import Demand
from poolproof_spec.fits import ids_suffice
from poolproof_spec.moves import Batch
from poolproof_spec.occupancy import Occupancy, occupancies
from poolproof_spec.state import PoolState
from poolproof_spec.sweep import Sweep, Window, sweep
from poolproof_spec.units import VirtualId

Placed = tuple[list[Window | None], tuple[Batch, ...], bool]
Pages = list[tuple[int, VirtualId]]


class RoundingDown(IntegerArithmetic):
    """Places a member on its own grid from the page in which the one below ends."""

    def ceil_div(self, dividend: int, divisor: int) -> int:
        """Forgets to round up."""
        return dividend // divisor


class RoundingDownArena(Pool):
    """Plans with windows that begin in the middle of a neighbour's page."""

    def sweep(self, needs: Sequence[Occupancy]) -> Sweep:
        """The wrong sweep."""
        return sweep(needs, RoundingDown())


class GridRoundedDown(WalkingPool):
    """Believes and plans by a sweep that rounds a member's first byte down to its grid."""

    pool_class = RoundingDownArena

    def enough(self, start: PoolState, stage: PoolState, demand: Demand) -> bool:
        """Whether the wrong sweep finds windows."""
        return ids_suffice(stage, demand) and bool(self.pool.sweep(occupancies(stage, demand)).fits)


class AnywhereArena(Pool):
    """Has a float take pages near its own, whoever's bytes they are."""

    def bind(self, index: int, ids: Sequence[VirtualId], window: Window | None) -> Pages:
        """In a window as wide as the arena."""
        member = self.geometry.members[index]
        if member.kind == "float":
            window = Window(member.first_page, member.page_count, True)
        return super().bind(index, ids, window)


class FloatAnywhere(JointPool):
    """New pages of a float are not held to its place in the chain."""

    pool_class = AnywhereArena


class SinkArena(Pool):
    """Begins one page too low."""

    def bind(self, index: int, ids: Sequence[VirtualId], window: Window | None) -> Pages:
        """The padding sink counts as free."""
        member = self.geometry.members[index]
        if window is not None and window.start == member.first_page:
            window = window._replace(start=member.first_page - 1)
        return super().bind(index, ids, window)


class HandsOutSink(JointPool):
    """The first page is off by one."""

    pool_class = SinkArena


class PendingReusedArena(Pool):
    """Takes a vacated page for a free one at once."""

    def bind(self, index: int, ids: Sequence[VirtualId], window: Window | None) -> Pages:
        """Forgets the readers of what it hands out."""
        pending, self.pending[index] = self.pending[index], {}
        pages = super().bind(index, ids, window)
        taken = set(self.page_of[index].values())
        self.pending[index] = {page: events for page, events in pending.items() if page not in taken}
        return pages


class HandsOutPending(JointPool):
    """Pending pages are handed out before their event."""

    pool_class = PendingReusedArena
