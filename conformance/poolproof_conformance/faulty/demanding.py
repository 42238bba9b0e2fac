"""Wrong readings of a demand: pages counted wrongly, probes in place of the exact need, waits that were not allowed."""

from collections.abc import Sequence

from msgspec.structs import replace

from poolproof_conformance.faulty.choosing import WalkingPool
from poolproof_reference.joint_pool import JointPool
from poolproof_reference.pool import Pool
from poolproof_reference.reserve import victims
from poolproof_spec import operation as op
from poolproof_spec.demand import Demand
from poolproof_spec.fits import ids_suffice
from poolproof_spec.occupancy import occupancies
from poolproof_spec.outcome import AnyOutcome, Step
from poolproof_spec.state import PoolState
from poolproof_spec.sweep import Window, sweep
from poolproof_spec.units import PageCount, VirtualId, pages_for_tokens


def token_probe(state: PoolState, demand: Demand, pages: int) -> Demand:
    """The demand with its token pages replaced by a guess."""
    return replace(demand, full_pages=pages, swa_pages=pages if state.geometry.has_role("swa") else 0)


class ConservativeProbe(JointPool):
    """A prefill must fit by a rounded-up guess before it is looked at."""

    def choose(self, state: PoolState, demand: Demand, operation: op.DemandOperation) -> list[Step] | None:
        """None where tokens + batch * page_tokens could not be had."""
        if isinstance(operation, op.Extend):
            page_tokens = state.geometry.page_tokens
            tokens = sum(operation.seq_lens) - sum(operation.prefix_lens)
            guess = pages_for_tokens(tokens + len(operation.seq_lens) * page_tokens, page_tokens)
            if victims(state, token_probe(state, demand, guess)) is None:
                return None
        return super().choose(state, demand, operation)


class DecodeProbe(JointPool):
    """Every request of a decode step is taken to begin a page."""

    def choose(self, state: PoolState, demand: Demand, operation: op.DemandOperation) -> list[Step] | None:
        """Victims for a page a request, where there are enough."""
        steps = None
        if isinstance(operation, op.Decode):
            steps = victims(state, token_probe(state, demand, len(operation.seq_lens)))
        return super().choose(state, demand, operation) if steps is None else steps


class WholePagesOnly(JointPool):
    """Rounds tokens down to pages."""

    def demand(self, state: PoolState, operation: op.DemandOperation) -> Demand:
        """floor(tokens / page_tokens)."""
        demand = super().demand(state, operation)
        if isinstance(operation, op.Alloc):
            return token_probe(state, demand, operation.tokens // state.geometry.page_tokens)
        return demand


class WholeTail(JointPool):
    """Takes SWA pages for all of a prefill."""

    def demand(self, state: PoolState, operation: op.DemandOperation) -> Demand:
        """Whatever the tail."""
        demand = super().demand(state, operation)
        if isinstance(operation, op.ExtendTail):
            return token_probe(state, demand, demand.full_pages)
        return demand


class OnePageShort(JointPool):
    """Gives one token page less than was asked for, where it was asked for several."""

    def grant(self, operation: op.DemandOperation, demand: Demand, steps: list[Step]) -> AnyOutcome:
        """Room was made for all of them."""
        pages = PageCount(demand.full_pages - 1 if demand.full_pages > 1 else demand.full_pages)
        return super().grant(
            operation, replace(demand, full_pages=pages, swa_pages=min(pages, demand.swa_pages)), steps
        )


class GivesToAnother(JointPool):
    """Books new pages to the first running request, whoever asked."""

    def grant(self, operation: op.DemandOperation, demand: Demand, steps: list[Step]) -> AnyOutcome:
        """Every page has an owner all the same."""
        return super().grant(replace(operation, name=min(self.holds, default=operation.name)), demand, steps)


class HeadForTailArena(Pool):
    """Turns the ids round when a tail is asked for."""

    def take(self, demand: Demand, windows: Sequence[Window | None]) -> list[tuple[int, VirtualId]]:
        """SWA pages first, for the first ids."""
        pages = super().take(demand, windows)
        members = self.geometry.members
        with_swa = {identifier for index, identifier in pages if members[index].role == "swa"}
        return sorted(pages, key=lambda page: (page[0], page[1] not in with_swa))


class HeadForTail(JointPool):
    """Gives SWA pages to the head of a prefill that needs them for its tail."""

    pool_class = HeadForTailArena


class OneWayFloat(WalkingPool):
    """A float is taken to grow upwards only."""

    def enough(self, start: PoolState, stage: PoolState, demand: Demand) -> bool:
        """Whether it fits with no float's window beginning below its lowest page."""
        needs = list(occupancies(stage, demand))
        for index, (member, now) in enumerate(zip(stage.geometry.members, stage.members, strict=True)):
            pages = now.live_pages | now.pending_pages
            if member.kind == "float" and pages:
                needs[index] = replace(needs[index], first_page=min(pages))
        return ids_suffice(stage, demand) and bool(sweep(needs).fits)


class WaitsUnasked(JointPool):
    """Waits for events rather than reject, whether or not the caller allows it."""

    def choose(self, state: PoolState, demand: Demand, operation: op.DemandOperation) -> list[Step] | None:
        """With waiting, where there is no other way."""
        steps = super().choose(state, demand, operation)
        return victims(state, replace(demand, may_wait=True)) if steps is None else steps

    def grant(self, operation: op.DemandOperation, demand: Demand, steps: list[Step]) -> AnyOutcome:
        """As it was chosen."""
        return super().grant(operation, demand if self.pool.place(demand) else replace(demand, may_wait=True), steps)
