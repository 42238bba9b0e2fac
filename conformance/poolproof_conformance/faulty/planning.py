"""Fast pools whose planner is wrong in one decision: how many victims, which of them are spared, what is asked."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from poolproof_fast.grants import Grant, Refusal
from poolproof_fast.ids import HELD
from poolproof_fast.pages import Ids
from poolproof_fast.pins import Pins
from poolproof_fast.planner import GROWTH, Planner, has_kept_ancestor, parent_positions
from poolproof_fast.prefix_cache import Victims
from poolproof_fast.question import LooseStages, Needed, PinnedStages, Question
from poolproof_fast.reclaim import Reclaim
from poolproof_fast.store import NO_IDS
from poolproof_fast.victims import LEAF


class NoRoomError(Exception):
    """What was found to fit does not."""


class CredulousReclaim(Reclaim):
    """Believes its planner: it finds out when it takes the pages, its victims gone."""

    def place(self, needed: Needed, may_wait: bool, recovered: Ids = NO_IDS, owner: int = HELD) -> Grant:
        """Raises NoRoomError where there is none."""
        if not self.question(needed, may_wait).fits_after(()):
            raise NoRoomError
        return super().place(needed, may_wait, recovered, owner)

    def _reserve_under_pressure(self, needed: Needed, may_wait: bool, recovered: Ids) -> Grant | Refusal:
        try:
            return super()._reserve_under_pressure(needed, may_wait, recovered)
        except NoRoomError:
            return self._blocked(needed, may_wait)


# How many victims


class PortionWhole(Planner):
    """Takes all that it looked at together."""

    def first_sufficient(self, question: Question) -> Victims | None:
        """No halving after the portion that suffices."""
        walk, portions, size = self.cache.walk(), [], 1
        while len(portion := walk.take(size)):
            portions.append(portion)
            if question.fits_after(portions):
                return Victims.concatenate(portions)
            size = GROWTH * sum(map(len, portions))
        return None


class HalvesShort(Planner):
    """Halves to one below the least sufficient number."""

    def first_sufficient(self, question: Question) -> Victims | None:
        """Without the last one, unless it is the only one."""
        victims = super().first_sufficient(question)
        return victims if victims is None or len(victims) == 1 else victims.select(slice(0, -1))


class HalvesFar(Planner):
    """Halves to one above the least sufficient number."""

    def first_sufficient(self, question: Question) -> Victims | None:
        """With the next one, where there is one."""
        victims = super().first_sufficient(question)
        return None if victims is None else self.cache.walk().take(len(victims) + 1)


class TrustsGuess(Planner):
    """Takes its guess for the answer."""

    def first_sufficient(self, question: Question) -> Victims | None:
        """As many as would do on the average."""
        if super().first_sufficient(question) is None:
            return None
        return self.cache.walk().take(self.guess(question))


class NoTombstones(Planner):
    """Rules a demand out by totals in which what tombstones would free is missing."""

    def first_sufficient(self, question: Question) -> Victims | None:
        """None unless leaves alone could do."""
        steps = self.cache.walk().take(2 * self.cache.entry_count)
        freed = steps.select(steps.kind == LEAF).freed()
        return super().first_sufficient(question) if question.could_fit(freed) else None


class NewestFirst(Planner):
    """Begins with the newest leaf that has nothing below it."""

    def first_sufficient(self, question: Question) -> Victims | None:
        """As many as of the right ones, or more."""
        steps = self.cache.walk().take(2 * self.cache.entry_count)
        parents = parent_positions(steps)
        ends = np.setdiff1d(np.flatnonzero(steps.kind == LEAF), parents)
        order = np.arange(len(steps))
        if len(ends):
            order = np.concatenate([ends[-1:], np.delete(order, ends[-1])])
        for count in range(1, len(steps) + 1):
            if question.fits_after((steps.select(order[:count]),)):
                return steps.select(order[:count])
        return None


# Which of them are spared


class SparesNothing(Planner):
    """Gives no victim back that later ones have made needless."""

    def spared(self, question: Question, victims: Victims) -> Victims:
        """All of them."""
        return victims


class SparesOldest(Planner):
    """Gives back the oldest first, where the newest should be kept."""

    def spared(self, question: Question, victims: Victims) -> Victims:
        """What may be spared with all above it, in the order of the policy."""
        kept, parents, stages = (
            np.ones(len(victims), dtype=np.bool_),
            parent_positions(victims),
            question.stages(victims),
        )
        for first in range(len(victims) - 1):
            chain, node = [], first
            while node >= 0:
                chain += [node] if kept[node] else []
                node = int(parents[node])
            if kept[first] and stages.fits_without(kept, np.array(chain)):
                kept[chain] = False
        return victims.select(np.flatnonzero(kept))


class SparesChildrenAlone(Planner):
    """Spares a node and evicts the one above it."""

    def spared(self, question: Question, victims: Victims) -> Victims:
        """Each by itself, whatever hangs on it."""
        kept, stages = np.ones(len(victims), dtype=np.bool_), question.stages(victims)
        for step in range(len(victims) - 2, -1, -1):
            kept[step] = not stages.fits_without(kept, np.array([step]))
        return victims.select(np.flatnonzero(kept))


class SparesTogether(Planner):
    """Spares together what can be spared one at a time."""

    def spared(self, question: Question, victims: Victims) -> Victims:
        """All that fit alone, at once."""
        kept, rest = np.ones(len(victims), dtype=np.bool_), np.arange(len(victims) - 1)
        rest = rest[question.stages(victims).fit_without(kept, rest)]
        kept[rest[~has_kept_ancestor(kept, rest, parent_positions(victims))]] = False
        return victims.select(np.flatnonzero(kept))


# What is asked


class WrongQuestion(Planner):
    """Asks a question of another class."""

    question_class: ClassVar[type[Question]]

    def plan(self, question: Question) -> Victims | None:
        """As it is with that question."""
        question.__class__ = self.question_class
        return super().plan(question)


class OwnRoomQuestion(Question):
    """Once it evicts, it takes nothing for enough but each side's own pages."""

    __slots__ = ()

    def could_fit(self, freed: Sequence[int]) -> bool:
        """Whether every demanded page of every side was freed."""
        own = all(pages >= needed for pages, needed in zip(freed, self.needed, strict=True))
        return super().could_fit(freed) and (own or not any(freed))


class EarlyPinsQuestion(Question):
    """Keeps the extents of what is pinned as they were before the eviction."""

    __slots__ = ()

    def stages(self, victims: Victims) -> LooseStages | PinnedStages:
        """Nobody's eviction makes them smaller."""
        stages = super().stages(victims)
        if isinstance(stages, PinnedStages) and self.pins is not None:
            for of, member, pin in zip(stages.members, self.members, self.pins, strict=True):
                of.rest = (pin.count, pin.start if pin.count else member.page_count, pin.end)
                of.counts[:] = 0
        return stages


class OwnRoom(WrongQuestion):
    """Frees what is demanded of each side, where bytes of one would have done."""

    question_class = OwnRoomQuestion


class EarlyPins(WrongQuestion):
    """Does not see that its victims are pinned themselves."""

    question_class = EarlyPinsQuestion


class IgnoresPins(Planner):
    """Takes all that is live for movable."""

    def plan(self, question: Question) -> Victims | None:
        """By totals alone."""
        question.pins = None
        return super().plan(question)


class PendingAsFree(Planner):
    """Counts vacated pages as free before their events have fired."""

    def plan(self, question: Question) -> Victims | None:
        """Pinned is only what is live."""
        if question.pins is not None:
            question.pins = [
                pin if pin.mask is None else _pins_of(pin.mask & member.bound_np, pin.loose)
                for pin, member in zip(question.pins, question.members, strict=True)
            ]
        return super().plan(question)


def _pins_of(mask: np.ndarray, loose: int) -> Pins:
    found = np.flatnonzero(mask)
    start, end = (int(found[0]), int(found[-1]) + 1) if len(found) else (0, 0)
    return Pins(len(found), start, end, loose, mask)
