"""The table of fast pools that are wrong on purpose: name, fault, the rule that names the fault, the wrong part."""

from dataclasses import dataclass

from poolproof_conformance.faulty import planning, storing
from poolproof_fast.planner import Planner
from poolproof_fast.pool import FastPool
from poolproof_spec.geometry import Geometry

SAME_VICTIMS = "same-victims"
"""No rule of the catalogue: the steps are exactly the reference's, in the fast pool's own state."""
CLEAN_PAGES = "clean-pages"
"""No rule of the catalogue: a page is handed out without another member's bytes in it."""


@dataclass(frozen=True)
class FaultyFast:
    """One fast pool that is wrong on purpose."""

    name: str
    fault: str
    """In one sentence."""
    caught_by: tuple[str, ...]
    """Names of the rules that name the fault, the aptest first: that one must catch it."""
    wrong: type[object]
    """Takes the place of the part of the pool that it is a subclass of."""

    def make_pool(self, geometry: Geometry) -> FastPool:
        """An empty pool with the wrong part.

        That differs from the right one in its methods alone, so the right one is turned into it.
        """
        pool = FastPool(geometry)
        if issubclass(self.wrong, Planner):
            pool.reclaim.__class__ = planning.CredulousReclaim
        for part in parts_of(pool):
            if issubclass(self.wrong, type(part)):
                part.__class__ = self.wrong
        return pool


def parts_of(pool: FastPool) -> list[object]:
    """Everything in a pool that takes a decision."""
    store, cache = pool.store, pool.cache
    of_store = (store, *store.members, store.flights, store.arena, store.hygiene)
    return [pool, pool.reclaim, pool.reclaim.planner, *of_store, cache.locks, cache.tree.recency]


def _faulty(name: str, fault: str, caught_by: str, wrong: type[object]) -> FaultyFast:
    return FaultyFast(name, fault, tuple(caught_by.split()), wrong)


FAULTY_FAST: tuple[FaultyFast, ...] = (
    _faulty(
        "takes-portion-whole",
        "Takes all the victims that it looked at together.",
        "first-sufficient irredundant",
        planning.PortionWhole,
    ),
    _faulty("halves-one-short", "Halves to one victim too few.", "complete preserving", planning.HalvesShort),
    _faulty("halves-one-far", "Halves to one victim too many.", "first-sufficient irredundant", planning.HalvesFar),
    _faulty(
        "trusts-its-guess",
        "Takes as many victims as would do on the average.",
        "first-sufficient complete",
        planning.TrustsGuess,
    ),
    _faulty(
        "totals-without-tombstones", "Rejects what only tombstones would make fit.", "complete", planning.NoTombstones
    ),
    _faulty("newest-leaf-first", "Begins with the newest leaf.", "policy-order", planning.NewestFirst),
    _faulty(
        "spares-nothing", "Gives no victim back that later ones made needless.", "irredundant", planning.SparesNothing
    ),
    _faulty(
        "spares-oldest-first", "Gives back the oldest victims, not the newest.", SAME_VICTIMS, planning.SparesOldest
    ),
    _faulty(
        "spares-children-alone", "Spares a node and evicts its parent.", "locks-kept", planning.SparesChildrenAlone
    ),
    _faulty(
        "spares-together", "Spares together what can be spared alone.", "complete preserving", planning.SparesTogether
    ),
    _faulty(
        "frees-own-room",
        "Frees what is demanded of each side, where less would do.",
        "complete first-sufficient",
        planning.OwnRoom,
    ),
    _faulty("pins-before-eviction", "Does not see that victims are pinned too.", "complete", planning.EarlyPins),
    _faulty("ignores-pins", "Takes all that is live for movable.", "complete", planning.IgnoresPins),
    _faulty("counts-pending-as-free", "Counts pages that a reader holds as free.", "complete", planning.PendingAsFree),
    _faulty("impossible-for-locks", "Calls final what only locks forbid.", "honest-reason", storing.UnlockedTotals),
    _faulty("blames-all", "Blames all that can block.", "honest-reason", storing.BlamesAll),
    _faulty("waits-unasked", "Waits for events where its caller does not.", "gates-and-events", storing.WaitsUnasked),
    _faulty(
        "keeps-victims-ids",
        "Frees the pages of its victims and not their ids.",
        "pages-and-ids-partition",
        storing.KeepsIds,
    ),
    _faulty("never-settles", "Does not count grouped frees.", "deferred-frees complete", storing.NeverSettles),
    _faulty(
        "swa-freed-twice",
        "Frees SWA pages again that left with the window.",
        "pages-and-ids-partition",
        storing.SwaTwice,
    ),
    _faulty("float-at-home", "Begins an empty float at its first page.", "extents-ordered", storing.FloatAtHome),
    _faulty(
        "forgets-birth", "Takes new pages for older than forwards in flight.", "effects-exact", storing.ForgetsBirth
    ),
    _faulty(
        "forgets-waits",
        "Frees a pending page at the first of its events.",
        "pages-and-ids-partition",
        storing.ForgetsWaits,
    ),
    _faulty("moves-behind-gate", "Moves pages behind a closed gate.", "gates-and-events", storing.IgnoresGate),
    _faulty("moves-written", "Moves pages that a forward is writing.", "gates-and-events", storing.MovesWritten),
    _faulty("copies-backwards", "Runs its batches in the wrong order.", "payloads-kept", storing.CopiesBackwards),
    _faulty("moves-without-bytes", "Moves names and not bytes.", "payloads-kept", storing.NoCopies),
    _faulty("moves-without-pending", "Leaves nothing pending behind.", "gates-and-events", storing.LeavesNothing),
    _faulty("forgets-hygiene", "Hands pages out with another member's bytes.", CLEAN_PAGES, storing.NoHygiene),
    _faulty(
        "split-unlocks", "Splits a locked node and locks the lower part alone.", "handles-exact", storing.SplitUnlocks
    ),
    _faulty(
        "forgets-unlocked",
        "Overlooks old entries that were unlocked since.",
        "policy-order complete",
        storing.ForgetsUnlocked,
    ),
)
"""Each is caught by the first rule that it names; the tests find a history for it."""
