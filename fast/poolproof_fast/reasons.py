"""The honest reason for a refusal [P4]: the bound that fails whatever is lifted, else the fewest things that block.

What can never fit is decided from totals alone: what requests hold, and what is demanded. What is only blocked needs a
look at pages where gates or events pin them.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from poolproof_fast.flights import Flights
from poolproof_fast.pages import MemberPages
from poolproof_fast.pins import nothing_pinned, pinned_mask
from poolproof_fast.prefix_cache import PrefixCache
from poolproof_fast.question import Needed, Rule
from poolproof_spec.occupancy import Occupancy
from poolproof_spec.outcome import Blocked, BlockerKind, Impossible
from poolproof_spec.sweep import sweep
from poolproof_spec.verdict import BLOCKERS

Held = Sequence[int]
"""For each member: live pages that are not in the cache."""


def failing_bound(rule: Rule, needed: Needed, held: Held, id_counts: tuple[int, int]) -> Impossible | None:
    """The bound that fails with every gate open, every event fired and every cached entry freed; None if it fits."""
    held_of = dict(zip(rule.role_of, held, strict=True))
    for where, role, ids in (("token", 0, id_counts[0]), ("state", 2, id_counts[1])):
        available = ids - held_of.get(role, 0)
        if needed[role] > available:
            return Impossible(bound="ids", where=where, needed=needed[role], available=available)
    needs = [
        Occupancy(
            page_bytes=member.page_bytes,
            first_page=member.first_page,
            page_count=member.page_count,
            anchored_up=member.anchored and member.kind == "up",
            anchored_down=member.anchored and member.kind == "down",
            loose_count=count + needed[role],
        )
        for member, count, role in zip(rule.geometry.members, held, rule.role_of, strict=True)
    ]
    for member, window in zip(rule.geometry.members, sweep(needs).windows, strict=True):
        if not window.fits:
            return Impossible(
                bound="bytes", where=member.name, needed=int(window.end), available=int(member.page_count)
            )
    return None


class Blockers:
    """What blocks a demand that is not impossible."""

    def __init__(self, rule: Rule, members: Sequence[MemberPages], flights: Flights, cache: PrefixCache) -> None:
        self.rule, self.members, self.flights, self.cache = rule, members, flights, cache

    def blocked_by(self, needed: Needed, free_ids: tuple[int, int], gate_open: bool, may_wait: bool) -> Blocked | None:
        """The fewest of events, gates and locks that must be lifted, the first such choice in that order.

        None where nothing must: evicting will do.
        """
        for size in range(len(BLOCKERS) + 1):
            for lifted in combinations(BLOCKERS, size):
                if self._fits_after_lifting(needed, free_ids, gate_open, may_wait, lifted):
                    return Blocked(by=lifted) if lifted else None
        raise AssertionError("unreachable: with all of them lifted no bound failed")

    def _fits_after_lifting(
        self,
        needed: Needed,
        free_ids: tuple[int, int],
        gate_open: bool,
        may_wait: bool,
        lifted: tuple[BlockerKind, ...],
    ) -> bool:
        freed = self.cache.cached if "locks" in lifted else self.cache.evictable
        if needed[0] > free_ids[0] + freed[0] or needed[2] > free_ids[1] + freed[2]:
            return False
        gate_open, may_wait = gate_open or "gates" in lifted, may_wait or "events" in lifted
        roles = zip(self.members, self.rule.role_of, strict=True)
        if not self.rule.loose(*[member.live - freed[role] + needed[role] for member, role in roles]):
            return False
        if nothing_pinned(self.flights, gate_open, may_wait):
            return True
        freed_ids = self.cache.all_ids() if "locks" in lifted else self._evictable_ids()
        arguments: list[int] = []
        for member, role in zip(self.members, self.rule.role_of, strict=True):
            mask = pinned_mask(member, self.flights, gate_open, may_wait)
            pages = member.page_of_np[freed_ids[role]]
            pinned = int(mask.sum()) if not len(pages) else int(mask.sum() - mask[pages].sum())
            pending = 0 if may_wait else member.pending
            mask[pages] = 0
            found = mask.tobytes()
            loose = member.live - freed[role] - (pinned - pending) + needed[role]
            arguments += (pinned, found.find(1) if pinned else 0, found.rfind(1) + 1, loose)
        return self.rule.pinned(*arguments)

    def _evictable_ids(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        walk = self.cache.walk()
        return self.cache.freed_ids(walk.take(self.cache.entry_count))
