"""[P5, T5, T6]: amounts after which freeing more is never needed (docs/spec.md#quotas)."""

from collections.abc import Iterator, Sequence

from poolproof_spec.arithmetic import INTEGERS, Arithmetic, Quantity, Truth
from poolproof_spec.demand import Demand
from poolproof_spec.occupancy import pinned_pages
from poolproof_spec.state import PoolState


def freed_pages(start: PoolState, now: PoolState) -> Iterator[int]:
    """Pages of each member that were live at `start` and are no longer."""
    return (len(old.live_ids - new.live_ids) for old, new in zip(start.members, now.members, strict=True))


def covers(freed: Sequence[Quantity], demanded: Sequence[Quantity], arithmetic: Arithmetic = INTEGERS) -> Truth:
    """[T5] Of each member at least as many pages freed as demanded."""
    return arithmetic.all_of(*(have >= want for have, want in zip(freed, demanded, strict=True)))


def own_quota_reached(start: PoolState, now: PoolState, demand: Demand) -> bool:
    """[T5] As many pages of each demanded member freed as demanded, and the ids: then it fits, whatever is pinned."""
    demanded = [demand.pages(member.role) for member in start.geometry.members]
    return bool(covers(list(freed_pages(start, now)), demanded))


def grid_slack(page_bytes: Quantity) -> Quantity:
    """[T6] Bytes that a float may lose when its start is rounded up on its own grid: e - 1."""
    return page_bytes - 1


def exchange_bytes(
    demanded: Sequence[Quantity], page_bytes: Sequence[Quantity], floats: Sequence[bool], payer_index: int
) -> Quantity:
    """[T6] Bytes of one member's pages whose freeing surely funds `demanded` pages of the others, grid slack included.

    sum of d_i * e_i over the other members, plus e_i - 1 for each float, whose start is rounded up on its own grid.
    Which members float, and who pays, is fixed; the rest may be terms.
    """
    total: Quantity = 0
    for index, (count, size, is_float) in enumerate(zip(demanded, page_bytes, floats, strict=True)):
        if index != payer_index:
            total = total + count * size
        if is_float:
            total = total + grid_slack(size)
    return total


def funding_bytes(state: PoolState, demand: Demand, payer_index: int) -> int:
    """[T6] The same for a demand in a state."""
    members = state.geometry.members
    return int(
        exchange_bytes(
            [demand.pages(member.role) for member in members],
            [member.page_bytes for member in members],
            [member.kind == "float" for member in members],
            payer_index,
        )
    )


def cross_quota_reached(start: PoolState, now: PoolState, demand: Demand) -> str | None:
    """The member whose freed bytes alone surely fund the demand of others by T6; None where there is none.

    T6 speaks of nothing pinned, every demanded member holding a page, and a payer that is not demanded itself.
    """
    members = start.geometry.members
    if any(pinned_pages(now, index, demand.may_wait) for index in range(len(members))):
        return None
    if any(
        demand.pages(member.role) and not state.bindings for member, state in zip(members, now.members, strict=True)
    ):
        return None
    if demand.full_pages > len(now.free_token_ids) or demand.state_pages > len(now.free_state_ids):
        return None
    for index, (member, freed) in enumerate(zip(members, freed_pages(start, now), strict=True)):
        funded = freed * member.page_bytes >= funding_bytes(now, demand, index)
        if not demand.pages(member.role) and freed and funded:
            return member.name
    return None
