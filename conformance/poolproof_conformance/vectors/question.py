"""What a demand is really asked of: two states that differ in names of ids alone put the same question."""

from collections.abc import Sequence

from poolproof_spec.occupancy import pinned_pages
from poolproof_spec.state import PoolState


def question(state: PoolState, may_wait: bool) -> object:
    """All that the answer depends on, whatever the ids are called: equal questions have equal answers."""
    pinned = [pinned_pages(state, index, may_wait) for index in range(len(state.members))]
    ranks = {use: rank for rank, use in enumerate(sorted({entry.last_use for entry in state.entries}))}

    def places(ids: Sequence[int], index: int) -> tuple[int, ...]:
        found: dict[int, int] = dict(state.members[index].bindings)
        held: frozenset[int] = frozenset(pinned[index])
        return tuple(sorted(page for page in map(found.get, ids) if page is not None and page in held))

    def owned(ids: Sequence[int], swa_ids: Sequence[int], state_ids: Sequence[int]) -> tuple[object, ...]:
        by_role = {"full": ids, "swa": swa_ids, "state": state_ids}
        members = enumerate(state.geometry.members)
        return (len(ids), len(swa_ids), len(state_ids), tuple(places(by_role[m.role], i) for i, m in members))

    entries = [
        (
            entry.key,
            owned(entry.ids, entry.swa_ids, () if entry.state_id is None else (entry.state_id,)),
            (entry.full_locks > 0, entry.swa_locks > 0, entry.state_locks > 0),
            ranks[entry.last_use],
        )
        for entry in state.entries
    ]
    queued = state.queued
    return (
        [
            (frozenset(pages), len(now.bindings), now.gate_open)
            for pages, now in zip(pinned, state.members, strict=True)
        ],
        sorted(entries),
        owned(queued.ids, queued.swa_ids, queued.state_ids),
        (len(state.free_token_ids), len(state.free_state_ids)),
    )
