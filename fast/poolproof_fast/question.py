"""One demand in one state: whether it fits once these or those victims are gone [D-fits].

All answers are the sweep's [D-sweep]: compiled for single numbers, on lanes for many alternatives at once.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolproof_fast.pages import MemberPages
from poolproof_fast.pins import Pins
from poolproof_fast.prefix_cache import PrefixCache, Victims
from poolproof_spec.geometry import Geometry, Member
from poolproof_spec.lanes import LANES
from poolproof_spec.occupancy import Occupancy
from poolproof_spec.source_text import compile_loose, compile_sweep
from poolproof_spec.sweep import sweep

Lanes = NDArray[np.int64]
"""One number for each victim."""
Needed = tuple[int, int, int]
"""Pages that are demanded of each role: FULL, SWA, state."""
ROLES = ("full", "swa", "state")
NOTHING = (0, 0, 0)
"""Pages of each role, when none is freed."""


class Rule(NamedTuple):
    """The sweep, compiled for a geometry."""

    geometry: Geometry
    pinned: Callable[..., bool]
    """(pinned count, start, end, loose count) of each member."""
    loose: Callable[..., bool]
    """Loose count of each member; nothing is pinned."""
    role_of: tuple[int, ...]
    """Which of ROLES each member holds."""


def rule_of(geometry: Geometry) -> Rule:
    """The sweep for this geometry."""
    return Rule(
        geometry,
        compile_sweep(geometry).decide,
        compile_loose(geometry).decide,
        tuple(ROLES.index(member.role) for member in geometry.members),
    )


class Question:
    """A demand, and the state in which it is asked."""

    __slots__ = ("cache", "free_state_ids", "free_token_ids", "live_of", "members", "needed", "pins", "rule")

    def __init__(
        self,
        rule: Rule,
        members: Sequence[MemberPages],
        cache: PrefixCache,
        needed: Needed,
        free_ids: tuple[int, int],
        pins: list[Pins] | None,
    ) -> None:
        self.rule, self.members, self.cache, self.needed, self.pins = rule, members, cache, needed, pins
        self.free_token_ids, self.free_state_ids = free_ids
        self.live_of = [(m.live + needed[role], role) for m, role in zip(members, rule.role_of, strict=True)]
        """For each member: live pages and demanded ones, and its role."""

    @property
    def live(self) -> list[int]:
        """For each member: live pages and demanded ones."""
        return [live for live, _ in self.live_of]

    def ids_suffice(self, freed_full: int, freed_state: int) -> bool:
        """Whether both id spaces have the ids that the demand takes."""
        full, _, state = self.needed
        return full <= self.free_token_ids + freed_full and state <= self.free_state_ids + freed_state

    def could_fit(self, freed: Sequence[int]) -> bool:
        """Whether it fits with that many pages of each role freed, were nothing pinned: exact where nothing is."""
        full, _, state = self.needed
        if full > self.free_token_ids + freed[0] or state > self.free_state_ids + freed[2]:
            return False
        return self.rule.loose(*[live - freed[role] for live, role in self.live_of])

    def fits_after(self, portions: Sequence[Victims]) -> bool:
        """Whether the demand fits once all these steps are taken."""
        freed: Sequence[int] = portions[0].freed() if portions else NOTHING
        for portion in portions[1:]:
            freed = [a + b for a, b in zip(freed, portion.freed(), strict=True)]
        if not self.could_fit(freed):
            return False
        if self.pins is None:
            return True
        if portions:
            return self.stages(Victims.concatenate(list(portions))).fits_without_any()
        arguments: list[int] = []
        for pin, member, live in zip(self.pins, self.members, self.live, strict=True):
            arguments += (pin.count, pin.start, pin.end, live - member.live + pin.loose)
        return self.rule.pinned(*arguments)

    def stages(self, victims: Victims) -> "LooseStages | PinnedStages":
        """The states between which these steps lead."""
        return LooseStages(self, victims) if self.pins is None else PinnedStages(self, self.pins, victims)


class LooseStages:
    """Nothing is pinned: only how much is freed matters."""

    def __init__(self, question: Question, victims: Victims) -> None:
        self.question = question
        self.freed: list[Lanes] = [victims.full, victims.swa, victims.state]
        self.total = [int(freed.sum()) for freed in self.freed]
        self.sums = [np.cumsum(freed) for freed in self.freed]

    def fits_without_any(self) -> bool:
        """With every step taken."""
        return self.question.could_fit(self.total)

    def fits(self, count: int) -> bool:
        """With the first `count` steps taken, at least one."""
        return self.question.could_fit([int(sums[count - 1]) for sums in self.sums])

    def fits_without(self, kept: NDArray[np.bool_], more: Lanes) -> bool:
        """With the kept steps taken less some of them."""
        return self.question.could_fit([int(freed[kept].sum() - freed[more].sum()) for freed in self.freed])

    def fit_without(self, kept: NDArray[np.bool_], each: Lanes) -> NDArray[np.bool_]:
        """With the kept steps taken less one of them: a lane for each such."""
        left = [int(freed[kept].sum()) - freed[each] for freed in self.freed]
        question = self.question
        needs = [
            Occupancy(
                page_bytes=member.page_bytes,
                first_page=member.first_page,
                page_count=member.page_count,
                **_anchors(member),
                loose_count=live - left[role],
            )
            for member, live, role in zip(
                question.rule.geometry.members, question.live, question.rule.role_of, strict=True
            )
        ]
        return _lanes(question, left, needs, len(each))


class PinnedStages:
    """Some pages are pinned: which pages a step frees matters too."""

    def __init__(self, question: Question, pins: Sequence[Pins], victims: Victims) -> None:
        self.question = question
        self.freed: list[Lanes] = [victims.full, victims.swa, victims.state]
        ids, steps = question.cache.freed_ids(victims), question.cache.freed_steps(victims)
        self.members = [
            _MemberSteps(member, pin, ids[role], steps[role], len(victims))
            for member, pin, role in zip(question.members, pins, question.rule.role_of, strict=True)
        ]

    def fits_without_any(self) -> bool:
        """With every step taken."""
        return self._decide(np.empty(0, dtype=np.int64))

    def fits(self, count: int) -> bool:
        """With the first `count` steps taken."""
        return self._decide(np.arange(count, len(self.freed[0])))

    def fits_without(self, kept: NDArray[np.bool_], more: Lanes) -> bool:
        """With the kept steps taken less some of them."""
        return self._decide(np.concatenate([np.flatnonzero(~kept), more]))

    def _decide(self, spared: Lanes) -> bool:
        """With every step taken but these."""
        question = self.question
        total = [int(freed.sum() - freed[spared].sum()) for freed in self.freed]
        if not question.ids_suffice(total[0], total[2]):
            return False
        arguments: list[int] = []
        for of, live, role in zip(self.members, question.live, question.rule.role_of, strict=True):
            count, start, end = of.pinned_with(spared)
            arguments += (count, start, end, live - total[role] - (count - of.pending))
        return question.rule.pinned(*arguments)

    def fit_without(self, kept: NDArray[np.bool_], each: Lanes) -> NDArray[np.bool_]:
        """With the kept steps taken less one of them: a lane for each such."""
        question, spared = self.question, np.flatnonzero(~kept)
        left = [int(freed[kept].sum()) - freed[each] for freed in self.freed]
        needs = []
        for member, of, live, role in zip(
            question.rule.geometry.members, self.members, question.live, question.rule.role_of, strict=True
        ):
            count, start, end = of.pinned_with(spared)
            counts = count + of.counts[each]
            needs.append(
                Occupancy(
                    page_bytes=member.page_bytes,
                    first_page=member.first_page,
                    page_count=member.page_count,
                    **_anchors(member),
                    pinned_count=counts,
                    pinned_start=np.minimum(start, of.starts[each]),
                    pinned_end=np.maximum(end, of.ends[each]),
                    loose_count=live - left[role] - (counts - of.pending),
                )
            )
        return _lanes(question, left, needs, len(each))


class _MemberSteps:
    """The pinned pages of one member that each step frees, and those that no step frees."""

    def __init__(self, member: MemberPages, pins: Pins, ids: NDArray[np.int32], steps: Lanes, count: int) -> None:
        self.counts = np.zeros(count, dtype=np.int64)
        self.starts = np.full(count, member.page_count, dtype=np.int64)
        self.ends = np.zeros(count, dtype=np.int64)
        self.rest = (pins.count, pins.start if pins.count else member.page_count, pins.end)
        self.pending = pins.count + pins.loose - member.live
        """Pinned pages that are not live."""
        if pins.mask is None:
            return
        pages = member.page_of_np[ids]
        pinned = pins.mask[pages] > 0
        pages, steps = pages[pinned], steps[pinned]
        np.add.at(self.counts, steps, 1)
        np.minimum.at(self.starts, steps, pages)
        np.maximum.at(self.ends, steps, pages + 1)
        left = pins.mask.copy()
        left[pages] = 0
        found = left.tobytes()
        if count_left := pins.count - len(pages):
            self.rest = (count_left, found.find(1), found.rfind(1) + 1)
        else:
            self.rest = (0, member.page_count, 0)

    def pinned_with(self, spared: Lanes) -> tuple[int, int, int]:
        """(count, start, end) of what stays pinned when all steps are taken but these."""
        count, start, end = self.rest
        if len(spared):
            count += int(self.counts[spared].sum())
            start = min(start, int(self.starts[spared].min()))
            end = max(end, int(self.ends[spared].max()))
        return count, start, end


def _anchors(member: Member) -> dict[str, bool]:
    return {
        "anchored_up": member.anchored and member.kind == "up",
        "anchored_down": member.anchored and member.kind == "down",
    }


def _lanes(question: Question, freed: Sequence[Lanes], needs: Sequence[Occupancy], count: int) -> NDArray[np.bool_]:
    full, _, state = question.needed
    enough = (full <= question.free_token_ids + freed[0]) & (state <= question.free_state_ids + freed[2])
    fits: NDArray[np.bool_] = np.broadcast_to(enough & sweep(needs, LANES).fits, (count,))
    return fits
