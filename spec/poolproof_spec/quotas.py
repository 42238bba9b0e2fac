"""[P5, T5, T6]: amounts after which freeing more is never needed (docs/spec.md#quotas)."""

from collections.abc import Iterator

from poolproof_spec.demand import Demand
from poolproof_spec.occupancy import pinned_pages
from poolproof_spec.state import PoolState


def freed_pages(start: PoolState, now: PoolState) -> Iterator[int]:
    """Pages of each member that were live at `start` and are no longer."""
    return (len(old.live_ids - new.live_ids) for old, new in zip(start.members, now.members, strict=True))


def own_quota_reached(start: PoolState, now: PoolState, demand: Demand) -> bool:
    """[T5] As many pages of each demanded member freed as demanded, and the ids: then it fits, whatever is pinned."""
    return all(
        freed >= demand.pages(member.role)
        for member, freed in zip(start.geometry.members, freed_pages(start, now), strict=True)
    )


def funding_bytes(state: PoolState, demand: Demand, payer_index: int) -> int:
    """[T6] Bytes of pages of one member whose freeing surely funds a demand of others, grid slack included.

    sum of d_i * e_i over the other members, plus e_i - 1 for each float, whose start is rounded up on its own grid.
    """
    total = 0
    for index, member in enumerate(state.geometry.members):
        if index != payer_index:
            total += demand.pages(member.role) * member.page_bytes
        if member.kind == "float":
            total += member.page_bytes - 1
    return total


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
