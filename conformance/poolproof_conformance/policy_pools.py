"""Pools that follow a policy: the reference, with its victims taken from the policy's reading on ints."""

from collections.abc import Sequence
from functools import cache
from typing import ClassVar

from msgspec.structs import replace

from poolproof_conformance.adapter import Description
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_reference.joint_pool import JointPool
from poolproof_reference.pool import Pool
from poolproof_spec import operation as op
from poolproof_spec.arithmetic import INTEGERS
from poolproof_spec.demand import Demand
from poolproof_spec.fits import ids_suffice
from poolproof_spec.geometry import Geometry
from poolproof_spec.moves import Batch
from poolproof_spec.outcome import AnyOutcome, Rejected, Step
from poolproof_spec.policies import Ask, Choice, View, ask_of, view_of
from poolproof_spec.policies_known import POLICIES, Policy
from poolproof_spec.state import PoolState
from poolproof_spec.steps import policy_order, tree_of
from poolproof_spec.sweep import Window
from poolproof_spec.units import PageId, VirtualId, ceil_div


class SpanPool(Pool):
    """Remembers how far each member has reached since it was last empty, which released engines go by."""

    def __init__(self, geometry: Geometry) -> None:
        super().__init__(geometry)
        self.spans: list[tuple[int, int]] = [(0, 0) for _ in geometry.members]

    def extent(self, index: int) -> tuple[int, int]:
        """[lowest, one past highest) live page; (0, 0) where there is none."""
        pages = self.page_of[index].values()
        return min(pages, default=0), max(pages, default=-1) + 1

    def bind(self, index: int, ids: Sequence[VirtualId], window: Window | None) -> list[tuple[int, VirtualId]]:
        """The span grows by what is taken, and begins anew from empty."""
        was_empty, (low, high) = not self.page_of[index], self.spans[index]
        taken = super().bind(index, ids, window)
        new_low, new_high = self.extent(index)
        self.spans[index] = (new_low, new_high) if was_empty else (min(low, new_low), max(high, new_high))
        return taken

    def move(self, batch: Batch) -> None:
        """A member that moves gives back what is free at its edges."""
        super().move(batch)
        self.spans[batch.member_index] = self.extent(batch.member_index)


class OneSidedPool(SpanPool):
    """A float takes new pages in the middle of an empty band, else all on one side, the roomier one first."""

    def take(self, demand: Demand, windows: Sequence[Window | None]) -> list[tuple[int, VirtualId]]:
        """FULL takes its pages before the float looks for room, states take theirs after it."""
        self.room: tuple[int, int] | None = None
        if len(self.page_of) == 3:
            state, band, full = self.geometry.members
            below = (state.first_page + len(self.page_of[0])) * state.page_bytes
            above = (full.page_count - len(self.page_of[2]) - demand.full_pages) * full.page_bytes
            start = max(band.first_page, ceil_div(below, band.page_bytes))
            self.room = start, min(band.page_count, above // band.page_bytes)
        return super().take(demand, windows)

    def bind(self, index: int, ids: Sequence[VirtualId], window: Window | None) -> list[tuple[int, VirtualId]]:
        """On one side where that is free; else as the reference does."""
        start = self._start(index, len(ids)) if ids and self.geometry.members[index].kind == "float" else None
        if start is None:
            return super().bind(index, ids, window)
        was_empty, (low, high) = not self.page_of[index], self.spans[index]
        for offset, identifier in enumerate(ids):
            self.page_of[index][identifier] = PageId(start + offset)
        self.spans[index] = (start, start + len(ids))
        if not was_empty:
            self.spans[index] = min(low, start), max(high, start + len(ids))
        return [(index, identifier) for identifier in ids]

    def _start(self, index: int, count: int) -> int | None:
        """Where a run of new pages begins; None where there is none, or holes come first."""
        low, high = self.extent(index)
        if self.room is None or high - low > len(self.page_of[index]):
            return None
        start, end = self.room
        if not self.page_of[index]:
            found = start + (end - start - count) // 2 if count <= end - start else None
        else:
            above, below = end - high, low - start
            sides = [(above, high), (below, low - count)]
            found = next((at for room, at in (sides if above >= below else sides[::-1]) if count <= room), None)
        return found if found is not None and self._is_clear(index, found, count) else None

    def _is_clear(self, index: int, start: int, count: int) -> bool:
        """Whether no other member lies where the pages go."""
        size = self.geometry.members[index].page_bytes
        for other, member in enumerate(self.geometry.members):
            low, high = (page * member.page_bytes for page in self.extent(other))
            if other < index and high > start * size:
                return False
            if other > index and self.page_of[other] and low < (start + count) * size:
                return False
        return True


class PolicyPool(JointPool):
    """The reference in everything but the choice of victims, and whether it believes that they suffice."""

    policy: ClassVar[Policy]
    pool_class = SpanPool
    pool: SpanPool

    def choice(self, state: PoolState, demand: Demand, operation: op.DemandOperation) -> tuple[View, Ask, Choice]:
        """What the policy sees, is asked and does."""
        probe = len(operation.seq_lens) if self.policy.release and isinstance(operation, op.Decode) else None
        ask = ask_of(demand, probe)
        view = view_of(state, demand, self.pool.spans, self.policy.anchored)
        return view, ask, self.policy.choose(view, ask, INTEGERS)

    def choose(self, state: PoolState, demand: Demand, operation: op.DemandOperation) -> list[Step] | None:
        """The policy's victims, also where it then gives up."""
        _, _, choice = self.choice(state, demand, operation)
        self.believes = bool(choice.granted)
        steps = policy_order(tree_of(state))[: choice.victims]
        return steps if steps or self.believes else None

    def grant(self, operation: op.DemandOperation, demand: Demand, steps: list[Step]) -> AnyOutcome:
        """Rejected with its victims gone where the policy gives up, or was wrong."""
        state = self.observe()
        if self.believes and ids_suffice(state, demand) and self.pool.place(demand) is not None:
            return super().grant(operation, demand, steps)
        return replace(self.reject(state, demand), steps=tuple(steps))

    def reject(self, state: PoolState, demand: Demand) -> Rejected:
        """A policy gives no reason."""
        return Rejected(compactions=(), walks=1)


@cache
def policy_pool(name: str) -> type[PolicyPool]:
    """The pool of a policy."""
    policy = POLICIES[name]
    fields = {
        "policy": policy,
        "pool_class": OneSidedPool if policy.one_sided else SpanPool,
        "__doc__": policy.claim,
        "__module__": __name__,
    }
    return type(f"{name.title().replace('-', '')}Pool", (PolicyPool,), fields)


class PolicyAdapter(ReferenceAdapter):
    """A policy's pool as a target, called `policy:NAME`."""

    def __init__(self, name: str) -> None:
        super().__init__(policy_pool(name), f"policy:{name}")
        self.policy = POLICIES[name]

    def describe(self) -> Description:
        """A policy gives no reasons; members are anchored as those of the engine that has it."""
        return Description(target=self.target, anchored=self.policy.anchored, cannot=("reasons",))
