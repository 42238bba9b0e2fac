"""An allocation under pressure: granted with the fewest of the oldest entries evicted, or refused with nothing changed.

In this order: what never fits an empty arena, what fits as it lies, what can never fit beside that which requests hold
(all in constant time); then the planner.
"""

from collections.abc import Callable, Sequence

import numpy as np

from poolproof_fast.grants import Grant, Refusal
from poolproof_fast.ids import HELD
from poolproof_fast.pages import Ids, MemberPages
from poolproof_fast.pins import nothing_pinned
from poolproof_fast.planner import Planner
from poolproof_fast.prefix_cache import PrefixCache, Victims
from poolproof_fast.question import Needed, Question
from poolproof_fast.reasons import Blockers, failing_bound
from poolproof_fast.store import NO_IDS, Store
from poolproof_spec.outcome import Impossible
from poolproof_spec.units import LARGEST_QUANTITY


class Reclaim:
    """Reserves room in a store, at the cost of a cache."""

    def __init__(self, store: Store, cache: PrefixCache) -> None:
        self.store, self.cache = store, cache
        self.planner = Planner(cache)
        self.snapshot = snapshot_of(store.members, cache.cached)
        self.blockers = Blockers(store.rule, store.members, store.flights, cache)
        self.on_evict: Callable[[Victims], None] | None = None
        """Told of the steps just before they are taken."""
        roles = [any(member.role == role for member in store.geometry.members) for role in ("full", "swa", "state")]
        self.most_tokens = largest(lambda pages: self._fits_empty((pages, pages * roles[1], 0)))
        """Token pages that an empty arena has room for."""
        self.most_states = largest(lambda pages: self._fits_empty((0, 0, pages))) if roles[2] else 0

    def _fits_empty(self, needed: Needed) -> bool:
        ids = needed[0] <= self.store.tokens.size and needed[2] <= self.store.states.size
        return ids and self.store.rule.loose(*[needed[role] for role in self.store.role_of])

    def reserve(self, needed: Needed, may_wait: bool, recovered: Ids = NO_IDS) -> Grant | Refusal:
        """Pages for a request; `recovered` are ids among whose pages those of SWA are to be had again."""
        if needed[2] > self.most_states or (needed[0] > self.most_tokens and needed[0] == needed[1]):
            return self.impossible(needed)
        if self.store.fits_as_it_lies(needed):
            return self._take(needed, recovered, HELD)
        return self._reserve_under_pressure(needed, may_wait, recovered)

    def _reserve_under_pressure(self, needed: Needed, may_wait: bool, recovered: Ids) -> Grant | Refusal:
        store = self.store
        if not nothing_pinned(store.flights, store.gate_open, may_wait) and not self._could_ever_fit(needed):
            return self.impossible(needed)  # before anything is looked at that takes longer with more pages
        victims = self.planner.plan(self.question(needed, may_wait))
        if victims is None:
            return self.refuse(needed, may_wait)
        count = len(victims)
        if count:
            self.evict(victims)
        grant = self.place(needed, may_wait, recovered)
        grant.evicted = count
        return grant

    def question(self, needed: Needed, may_wait: bool) -> Question:
        """What is to be asked of the state as it is."""
        store = self.store
        free_ids = store.tokens.top, store.states.top
        return Question(store.rule, store.members, self.cache, needed, free_ids, store.pins(may_wait))

    def refuse(self, needed: Needed, may_wait: bool) -> Refusal:
        """Why a demand cannot be met; no reason where evicting entries would do."""
        possible = self._could_ever_fit(needed)
        return self._blocked(needed, may_wait) if possible else self.impossible(needed)

    def _could_ever_fit(self, needed: Needed) -> bool:
        """Whether it fits beside what requests hold: every cached entry freed, gates open, events fired."""
        store, (cached_full, cached_swa, cached_state) = self.store, self.cache.cached
        if needed[0] > store.tokens.top + cached_full or needed[2] > store.states.top + cached_state:
            return False
        cached = (cached_full, cached_swa, cached_state)
        return store.rule.loose(
            *[m.live - cached[role] + needed[role] for m, role in zip(store.members, store.role_of, strict=True)]
        )

    def _blocked(self, needed: Needed, may_wait: bool) -> Refusal:
        store = self.store
        free_ids = store.tokens.top, store.states.top
        return Refusal(self.blockers.blocked_by(needed, free_ids, store.gate_open, may_wait))

    def impossible(self, needed: Needed) -> Refusal:
        """The demand can never fit beside what requests hold now. Cheap: the reason is worked out when asked for."""
        return Refusal(None, self.bound_of, needed, self.snapshot())

    def bound_of(self, needed: Needed, counts: tuple[int, ...]) -> Impossible | None:
        """The bound that failed at the moment of `snapshot`."""
        store, (live, cached) = self.store, (counts[:-3], counts[-3:])
        held = [pages - cached[role] for pages, role in zip(live, store.role_of, strict=True)]
        return failing_bound(store.rule, needed, held, (store.tokens.size, store.states.size))

    def evict(self, victims: Victims) -> None:
        """Take the steps: nodes and flags in the cache, pages and ids in the store."""
        if self.on_evict is not None:
            self.on_evict(victims)
        store = self.store
        freed = self.cache.freed_ids(victims)
        self.cache.evict(victims)
        for index, role in enumerate(store.role_of):
            store.release(index, freed[role])
        store.tokens.give_back(freed[0])
        if len(freed[2]):
            store.states.give_back(freed[2])

    def place(self, needed: Needed, may_wait: bool, recovered: Ids = NO_IDS, owner: int = HELD) -> Grant:
        """Take pages for a demand that fits: as it lies if that will do, else moving what may move, else waiting."""
        store = self.store
        if store.fits_as_it_lies(needed):
            return self._take(needed, recovered, owner)
        windows, moved, waited = store.make_room(needed, may_wait)
        grant = self._take(needed, recovered, owner, windows)
        grant.batches, grant.waited = moved, waited
        return grant

    def _take(
        self, needed: Needed, recovered: Ids, owner: int, windows: list[tuple[int, int] | None] | None = None
    ) -> Grant:
        store = self.store
        full, swa, state = needed
        ends = store.ends_as_it_lies(needed) if windows is None and store.has_floats else None
        ids = store.tokens.take(full, owner) if full else NO_IDS
        state_ids = store.states.take(state, owner) if state else NO_IDS
        new = swa - len(recovered)
        swa_ids = ids if new == full else ids[full - new :]
        if len(recovered):
            swa_ids = np.concatenate([swa_ids, recovered])
        given = (ids, swa_ids, state_ids)
        for index, role in enumerate(store.role_of):
            if len(given[role]):
                window = store.whole[index]
                if ends is not None:
                    window = store.room(index, ends[index])
                elif windows is not None:
                    assert windows[index] is not None, "a member that is asked for pages has a window"
                    window = windows[index]  # type: ignore[assignment]
                store.bind(index, given[role], window)
        return Grant(ids, swa_ids, state_ids)


def snapshot_of(members: Sequence[MemberPages], cached: list[int]) -> Callable[[], tuple[int, ...]]:
    """A function that takes down each member's live pages and the cached ones of each role.

    Written out for the usual chains: a refusal costs hardly more than this.
    """
    if len(members) == 2:
        low, high = members
        return lambda: (low.live, high.live, *cached)
    if len(members) == 3:
        low, middle, high = members
        return lambda: (low.live, middle.live, high.live, *cached)
    return lambda: (*[member.live for member in members], *cached)


def largest(holds: Callable[[int], bool]) -> int:
    """The largest n for which a condition holds that holds for 0 and, once it fails, for nothing larger."""
    low, high = 0, 1
    while high < LARGEST_QUANTITY and holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
