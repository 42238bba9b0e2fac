"""Which cached entries to evict for a demand: the first sufficient ones in policy order, less those that can be spared.

The rule is the reference's (`reserve.py`), and the only capacity rule is the sweep [D-sweep]: compiled from the
specification's own formula for one number of victims, on lanes for all of them at once. Cost depends on the victims
looked at, never on what else is cached:

- *least sufficient number*: victims are taken in growing portions until they suffice, then halved (T2: a demand that
  fits still fits with more freed). A step is prefix sums and a compiled sweep.
- *spare pass*: see `spared`; a constant number of passes over lanes unless steps really can be spared.

Where pages are pinned (a closed gate, or a forward in flight and a caller that does not wait) it matters which pages a
victim frees: each portion then looks at the member's pages once.
"""

import numpy as np
from numpy.typing import NDArray

from poolproof_fast.prefix_cache import PrefixCache, Victims
from poolproof_fast.question import NOTHING, Lanes, Question
from poolproof_fast.victims import LEAF, Row
from poolproof_fast.walk import Walk

FEW = 16
"""Up to so many steps are looked at one by one, where nothing is pinned: that costs less than arrays."""
GROWTH = 2
"""From the third on, each portion of victims is that many times as large as all before it."""


NO_VICTIMS = Victims(rows=[])


class Planner:
    """Chooses victims; each decision is a method, so that a planner that is wrong on purpose differs in one."""

    def __init__(self, cache: PrefixCache) -> None:
        self.cache = cache

    def plan(self, question: Question) -> Victims | None:
        """V, in policy order; empty where the demand fits as is, None where no set of legal steps suffices."""
        if question.could_fit(NOTHING) and (question.pins is None or question.fits_after(())):
            return NO_VICTIMS
        victims = self.first_sufficient(question)
        return None if victims is None else self.spared(question, victims)

    def first_sufficient(self, question: Question) -> Victims | None:
        """The least number of steps of the policy order after which the demand fits [P1]."""
        walk = self.cache.walk()
        row = walk.next_row()
        if row is None:
            return None
        portion = Victims(rows=[row])
        if question.could_fit(row[2:5]) and (question.pins is None or question.fits_after((portion,))):
            return portion
        if not question.could_fit(self.cache.evictable):
            return None
        guess = self.guess(question)
        if guess <= FEW and question.pins is None:
            portion = self.few(question, walk, row)
            if question.fits_after((portion,)):
                return portion
        return self.many(question, walk, portion, guess)

    def few(self, question: Question, walk: Walk, first: Row) -> Victims:
        """Steps one by one until they suffice, or are a few; nothing is pinned."""
        rows, freed = [first], [*first[2:5]]
        while len(rows) < FEW and (row := walk.next_row()) is not None:
            rows.append(row)
            freed[0] += row[2]
            freed[1] += row[3]
            freed[2] += row[4]
            if question.could_fit(freed):
                break
        return Victims(rows=rows)

    def many(self, question: Question, walk: Walk, portion: Victims, size: int) -> Victims | None:
        """As `first_sufficient`, `portion` being the first steps, which do not suffice."""
        portions, seen = [portion], len(portion)
        while True:
            portion = walk.take(size)
            if not len(portion):
                return None
            portions.append(portion)
            if question.fits_after(portions):
                break
            seen += len(portion)
            size = GROWTH * seen
        victims = Victims.concatenate(portions)
        stages = question.stages(victims)
        low, high = seen + 1, len(victims)
        while low < high:
            middle = (low + high) // 2
            if stages.fits(middle):
                high = middle
            else:
                low = middle + 1
        return victims.select(slice(0, low))

    def guess(self, question: Question) -> int:
        """How many victims to look at next: as many entries of the average size as hold what is demanded.

        By T5 a demand fits once its pages have been freed; a wrong guess costs time, never a victim.
        """
        entries, cached = self.cache.entry_count, self.cache.cached
        pages = zip(question.needed, cached, strict=True)
        return max([1, *(-(-needed * entries // held) for needed, held in pages if held)])

    def spared(self, question: Question, victims: Victims) -> Victims:
        """[P1+] Without those, most recently used first, without which the demand still fits.

        Steps are considered in reverse order, as the reference does, all that fail alone being left out at once: what
        cannot be spared now cannot be spared once fewer are left (T2). Nor can a step be spared whose parent is kept,
        for the parent would have to stay too, and it was found that it cannot. Of the rest the longest run that can be
        spared together is found by halving. Where nothing can be spared that is one pass over lanes.
        """
        if len(victims) == 1:
            return victims
        if len(victims) <= FEW and question.pins is None:
            return self.spared_of_few(question, victims)
        kept = np.ones(len(victims), dtype=np.bool_)
        rest = np.arange(len(victims) - 2, -1, -1)  # the last one is needed: without it the demand did not fit
        stages = question.stages(victims)
        while len(rest := rest[stages.fit_without(kept, rest)]):
            rest = rest[~has_kept_ancestor(kept, rest, parent_positions(victims))]
            if not len(rest):
                break
            low, high = 1, len(rest)
            while low < high:
                middle = (low + high + 1) // 2
                if stages.fits_without(kept, rest[:middle]):
                    low = middle
                else:
                    high = middle - 1
            kept[rest[:low]] = False
            rest = rest[low + 1 :]
        return victims if kept.all() else victims.select(np.flatnonzero(kept))

    def spared_of_few(self, question: Question, victims: Victims) -> Victims:
        """The same, one step at a time; nothing is pinned."""
        rows, freed = victims.rows(), victims.freed()
        kept = [rows[-1]]
        kept_leaves = {rows[-1][1]} if rows[-1][0] == LEAF else set()
        for row in reversed(rows[:-1]):
            kind, node, full, swa, state, parent = row
            less = [freed[0] - full, freed[1] - swa, freed[2] - state]
            if parent not in kept_leaves and question.could_fit(less):
                freed = less
                continue
            kept.append(row)
            if kind == LEAF:
                kept_leaves.add(node)
        return victims if len(kept) == len(rows) else Victims(rows=kept[::-1])


def parent_positions(victims: Victims) -> Lanes:
    """For each step: the position among the victims of the step that evicts its node's parent; -1 where none does."""
    leaves = np.flatnonzero(victims.kind == 0)
    by_node = leaves[np.argsort(victims.node[leaves], kind="stable")]
    nodes = victims.node[by_node]
    found = np.full(len(victims), -1, dtype=np.int64)
    if len(nodes):
        wanted = victims.parent[leaves]
        at = np.minimum(np.searchsorted(nodes, wanted), len(nodes) - 1)
        found[leaves] = np.where(nodes[at] == wanted, by_node[at], -1)
    return found


def has_kept_ancestor(kept: NDArray[np.bool_], rest: Lanes, parents: Lanes) -> NDArray[np.bool_]:
    """Which of `rest` have an ancestor among the steps that are kept and not candidates themselves."""
    stays = kept.copy()
    stays[rest] = False
    under = np.zeros(len(kept), dtype=np.bool_)
    has_parent = parents >= 0
    while True:
        now = has_parent & (stays[parents] | under[parents])
        if (now == under).all():
            return under[rest]
        under = now
