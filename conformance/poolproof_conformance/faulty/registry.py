"""The table of wrong pools: name, fault, and the rule that names the fault."""

from dataclasses import dataclass

from poolproof_conformance.faulty import (
    answering,
    caching,
    choosing,
    demanding,
    freeing,
    idling,
    moving,
    placing,
)
from poolproof_reference.joint_pool import JointPool


@dataclass(frozen=True)
class Faulty:
    """One pool that is wrong on purpose."""

    name: str
    fault: str
    """In one sentence."""
    caught_by: tuple[str, ...]
    """Names of the rules that name the fault, the aptest first: that one must catch it."""
    pool_class: type[JointPool]


def _faulty(name: str, fault: str, caught_by: str, pool_class: type[JointPool]) -> Faulty:
    return Faulty(name, fault, tuple(caught_by.split()), pool_class)


FAULTY: tuple[Faulty, ...] = (
    _faulty(
        "stops-at-own-shortfall",
        "Frees what each side lacks by itself, and fails where together they lack more.",
        "complete",
        choosing.OwnShortfall,
    ),
    _faulty(
        "frees-own-quota",
        "Frees every demanded page of every side where bytes of one would have done.",
        "first-sufficient irredundant",
        choosing.OwnQuota,
    ),
    _faulty(
        "empties-the-cache",
        "Evicts all that it may as soon as it must evict anything.",
        "within-quota first-sufficient",
        choosing.EmptiesTheCache,
    ),
    _faulty(
        "falls-back-to-whole-cache",
        "Evicts the whole cache before it fails.",
        "preserving",
        choosing.WholeCacheFallback,
    ),
    _faulty(
        "adds-slack",
        "Keeps one largest entry to spare where the need is exact.",
        "first-sufficient complete",
        choosing.SlackOfOneEntry,
    ),
    _faulty(
        "counts-cascade-twice",
        "Counts a leaf's SWA pages and state twice, stops early, and fails with its victims gone.",
        "complete preserving",
        choosing.CascadeCountedTwice,
    ),
    _faulty(
        "tombstones-all-at-once",
        "Takes every tombstone where one would do.",
        "first-sufficient irredundant",
        choosing.TombstonesAllAtOnce,
    ),
    _faulty(
        "skips-spare-pass",
        "Gives no victim back that later ones have made needless.",
        "irredundant",
        choosing.NoSparePass,
    ),
    _faulty("evicts-locked", "Chooses victims as if nothing were locked.", "locks-kept", choosing.EvictsLocked),
    _faulty(
        "conservative-probe",
        "Rejects a prefill for which tokens + batch * page_tokens could not be had.",
        "complete",
        demanding.ConservativeProbe,
    ),
    _faulty(
        "decode-probe",
        "Evicts for a page a request in a decode step that needs fewer.",
        "first-sufficient irredundant",
        demanding.DecodeProbe,
    ),
    _faulty("rounds-tokens-down", "Gives whole pages only, for fewer tokens.", "grant-exact", demanding.WholePagesOnly),
    _faulty("ignores-tail", "Takes SWA pages for all of a prefill, not its tail.", "grant-exact", demanding.WholeTail),
    _faulty("gives-one-page-less", "Grants a page less than was asked for.", "grant-exact", demanding.OnePageShort),
    _faulty(
        "extends-float-one-way",
        "Lets a float grow upwards only, and fails or over-evicts where room lies below it.",
        "complete first-sufficient",
        demanding.OneWayFloat,
    ),
    _faulty(
        "forgets-grid-rounding",
        "Begins a member's window on the page in which the neighbour below ends.",
        "extents-ordered",
        placing.GridRoundedDown,
    ),
    _faulty(
        "places-float-anywhere", "Binds a float's pages out of chain order.", "extents-ordered", placing.FloatAnywhere
    ),
    _faulty("hands-out-sink", "First page off by one.", "pages-in-range", placing.HandsOutSink),
    _faulty(
        "hands-out-pending",
        "Binds a vacated page before its event has fired.",
        "gates-and-events",
        placing.HandsOutPending,
    ),
    _faulty(
        "vacates-at-once", "Frees the old place under a reader in flight.", "gates-and-events", moving.VacatesAtOnce
    ),
    _faulty("ignores-gate", "Moves pages behind a closed gate.", "gates-and-events", moving.IgnoresGate),
    _faulty("moves-written", "Moves a page that a forward is writing.", "gates-and-events", moving.MovesWritten),
    _faulty(
        "copies-backwards", "Runs its batches of moves in the wrong order.", "payloads-kept", moving.CopiesBackwards
    ),
    _faulty("forgets-payload", "Moves the name of a page and not its bytes.", "payloads-kept", moving.ForgetsPayload),
    _faulty("compacts-twice", "Moves one member in two batches for one demand.", "bounded-work", moving.CompactsTwice),
    _faulty(
        "calls-all-impossible", "Says of every rejection that it is final.", "honest-reason", answering.AllImpossible
    ),
    _faulty("names-wrong-bound", "Blames the id space for want of bytes.", "honest-reason", answering.WrongBound),
    _faulty("blames-locks", "Blames locks for gates and events.", "honest-reason", answering.BlamesLocks),
    _faulty(
        "touches-on-rejection",
        "Makes the oldest leaf the newest while it looks for victims in vain.",
        "preserving",
        answering.TouchesOnRejection,
    ),
    _faulty(
        "query-flushes", "Carries grouped frees out in order to answer a query.", "pure-query", answering.QueryFlushes
    ),
    _faulty(
        "over-promises", "Says one page too many is available.", "capacity-honesty pure-query", answering.OverPromises
    ),
    _faulty("under-promises", "Says one page too few is available.", "capacity-honesty", answering.UnderPromises),
    _faulty(
        "refuses-too-late",
        "Touches the cache for a call that it then refuses.",
        "refusal-changes-nothing",
        answering.RefusesTooLate,
    ),
    _faulty("never-settles", "Does not count grouped frees.", "deferred-frees complete", freeing.NeverSettles),
    _faulty(
        "settles-too-late", "Counts grouped frees once it has chosen victims.", "deferred-frees", freeing.SettlesTooLate
    ),
    _faulty("closes-group", "Ends the caller's group of frees.", "deferred-frees", freeing.ClosesGroup),
    _faulty(
        "victims-into-group",
        "Collects what an eviction frees in the caller's group, where it helps nobody.",
        "deferred-frees preserving",
        freeing.VictimsIntoGroup,
    ),
    _faulty("leaks-page", "Leaves a page of an ended request live.", "owned-once effects-exact", freeing.LeaksPage),
    _faulty(
        "keeps-swa-of-freed", "Evicts FULL pages and keeps their SWA pages.", "swa-within-full", freeing.KeepsSwaOfFreed
    ),
    _faulty("window-takes-states", "Frees states with the window.", "effects-exact", freeing.WindowTakesStates),
    _faulty(
        "frees-tombstoned-twice",
        "Frees the SWA page of a tombstoned id once more with its FULL page.",
        "pages-and-ids-partition",
        freeing.TombstoneFreedTwice,
    ),
    _faulty(
        "frees-sentinel",
        "Puts the mark of a missing page among the free ids.",
        "pages-and-ids-partition",
        freeing.FreesSentinel,
    ),
    _faulty(
        "split-loses-state", "Drops a node's state when it splits it.", "owned-once locks-kept", caching.SplitLosesState
    ),
    _faulty(
        "split-lifts-state",
        "Gives a node's state to its upper half when it splits it.",
        "locks-kept",
        caching.SplitLiftsState,
    ),
    _faulty("split-turns-ids", "Leaves prefixes with each other's pages.", "effects-exact", caching.SplitTurnsIds),
    _faulty("drops-inserts", "Says that it cached what it did not.", "effects-exact", idling.DropsInserts),
    _faulty("ignores-launch", "Takes no note of reads and writes in flight.", "effects-exact", idling.IgnoresLaunch),
    _faulty("ignores-fire", "Keeps pages pending for ever.", "effects-exact", idling.IgnoresFire),
    _faulty("ignores-gate-call", "Never closes a gate.", "effects-exact", idling.IgnoresGateCall),
    _faulty("ignores-group", "Frees at once, group or not.", "effects-exact", idling.IgnoresGroup),
    _faulty("gives-to-another", "Books new pages to another request.", "grant-exact", demanding.GivesToAnother),
    _faulty("head-for-tail", "Gives a tail's SWA pages to the head.", "grant-exact", demanding.HeadForTail),
    _faulty("waits-unasked", "Waits for events where it may not.", "gates-and-events", demanding.WaitsUnasked),
    _faulty("newest-first", "Evicts the most recently used first.", "policy-order", choosing.NewestFirst),
    _faulty("matches-tombstoned", "Finds prefixes that cannot be used.", "match-usable", caching.MatchesTombstoned),
    _faulty("locks-one-node", "Leaves the ancestors of a lock unlocked.", "handles-exact", caching.LocksOneNode),
    _faulty("unlocks-others-window", "Releases everybody's window.", "handles-exact", caching.UnlocksOthersWindow),
    _faulty("ignores-lock", "Answers a lock and holds none.", "handles-exact", idling.IgnoresLock),
    _faulty("forgets-use", "Leaves what was matched as old as it was.", "recency-exact", caching.ForgetsUse),
    _faulty("touches-on-grant", "Makes the oldest survivor the newest.", "recency-exact", caching.TouchesOnGrant),
)
"""Each is caught by the first rule that it names; the tests find a history for it."""
