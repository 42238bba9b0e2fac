"""The flags of the vectors, each told once; a file carries those that its cases use."""

from collections.abc import Iterable
from typing import NamedTuple

from poolproof_conformance.vectors.vector_format import Note


class Flag(NamedTuple):
    """A kind of case worth telling apart."""

    meaning: str
    section: str
    """Heading in docs/spec.md."""


FLAGS: dict[str, Flag] = {
    # demand.json
    "Nothing": Flag("Nothing is demanded: no page, no id.", "demand"),
    "PageBoundary": Flag("A length is a whole number of pages.", "demand"),
    "PartlyFilled": Flag("A length ends inside a page, which is demanded whole, or was there already.", "demand"),
    "OneTokenPages": Flag("A page holds one token: every length is a page boundary.", "demand"),
    "Batch": Flag("Several requests in one call: each is rounded by itself, then all are added.", "demand"),
    "GrowsInsidePage": Flag("A request grows inside its last page, which needs no new one.", "demand"),
    "TailCutsPage": Flag("The tail begins inside a page: that page counts.", "demand"),
    "NoTail": Flag("No token needs an SWA page: FULL pages alone are demanded.", "demand"),
    "TailIntoPrefix": Flag("The tail reaches back into the prefix: only new pages count.", "demand"),
    "Recovered": Flag("SWA pages alone, for ids that have FULL pages already.", "demand"),
    "States": Flag("State pages alone: one and its id for each state.", "demand"),
    "NoSuchMember": Flag("The chain has no member for what is asked, so nothing is demanded of it.", "demand"),
    "BadCall": Flag(
        "A size or length that makes no sense: refused, and nothing changes.", "g2-refusal-changes-nothing"
    ),
    # fits.json
    "Chain1": Flag("One member.", "d-sweep"),
    "Chain2": Flag("Two members, low and high.", "d-sweep"),
    "Chain3": Flag("Three members: one float between.", "d-sweep"),
    "Chain4": Flag("Four members: two floats.", "d-sweep"),
    "Chain5": Flag("Five members: three floats.", "d-sweep"),
    "ExactFit": Flag("One page more for the same member would not fit.", "d-sweep"),
    "OnePageTooMany": Flag("With one page less for the same member it fits.", "d-sweep"),
    "GridLoss": Flag("A member begins above the end of the one below, at the next page of its own grid.", "d-sweep"),
    "SinkBinds": Flag("The lowest non-empty member begins at its first page: the padding sink.", "geometry"),
    "PinBelowReach": Flag("A pinned page lies below where the members under it let its own begin.", "d-sweep"),
    "PinStretches": Flag("The window must reach a pinned page, further than the number of pages asks.", "d-sweep"),
    "BothSides": Flag("A pinned member has loose pages on both sides of its pinned ones.", "d-fits"),
    "HolesUsed": Flag("Loose pages of a pinned member lie between its pinned ones.", "d-fits"),
    "EmptyMember": Flag("An empty member bounds nobody.", "d-fits"),
    "AnchoredEmpty": Flag("An empty member that is anchored closes the bytes beyond its base.", "d-sweep"),
    "AnchorCosts": Flag("It would fit were no member anchored.", "d-sweep"),
    # reserve.json
    "FitsAsIs": Flag("Nothing need be evicted.", "p1-first-sufficient"),
    "OneVictim": Flag("One step suffices.", "p1-first-sufficient"),
    "ManyVictims": Flag("Several steps are needed.", "p1-first-sufficient"),
    "Spared": Flag("A step among the first sufficient ones can be spared.", "p1-irredundant"),
    "LeafStep": Flag("A whole node goes: FULL, SWA and state.", "eviction-steps"),
    "TombstoneStep": Flag("The SWA pages of a node go, with its state; FULL stays.", "eviction-steps"),
    "StateStep": Flag("The state of a node goes alone.", "eviction-steps"),
    "DearestGranted": Flag("The largest alloc that is granted in this state.", "p2-complete"),
    "OneTokenPageMore": Flag("One page more than the largest alloc that is granted.", "p2-complete"),
    "BytesFail": Flag("Impossible: a member's bytes fail, whatever is lifted.", "p4-honest-reason"),
    "IdsFail": Flag("Impossible: an id space fails, whatever is lifted.", "p4-honest-reason"),
    "BlockedByLocks": Flag("Would fit were the locked entries unlocked.", "p4-honest-reason"),
    "BlockedByGates": Flag("Would fit were the gates open.", "p4-honest-reason"),
    "BlockedByEvents": Flag("Would fit once the events have fired.", "p4-honest-reason"),
    "GateClosed": Flag("No live page may move.", "p7-gates-and-events"),
    "Pending": Flag("Pages that a reader in flight keeps until its event fires.", "p7-gates-and-events"),
    "InFlight": Flag("A forward in flight reads live pages.", "p7-gates-and-events"),
    "MayNotWait": Flag("The caller may not wait for events: what is read or pending is pinned.", "d-fits"),
    "Grouped": Flag("Frees wait in an open group: they count before the first eviction.", "p8-deferred-frees"),
    "Locked": Flag("Some entry is locked.", "p9-locks-kept"),
    "Tombstoned": Flag("Some node has lost its SWA pages.", "eviction-steps"),
    "StatesDemanded": Flag("States are demanded; token pages may pay for them.", "demand"),
    "Untied": Flag("SWA or FULL pages are demanded alone, or not equally many.", "demand"),
    # counterexamples.json
    "WrongRejection": Flag("A known target rejects what is to be granted.", "p2-complete"),
    "TooDear": Flag("A known target evicts more cached pages than the answer.", "p1-first-sufficient"),
    "LossyRejection": Flag("A known target evicts cached pages, and rejects.", "p3-preserving"),
    "Anchored": Flag("The members are anchored, as the target declares its own to be.", "d-sweep"),
    "SeedCase": Flag("One of the three cases on which sglang 0.5.22 and 0.5.23 differ.", "seed-cases"),
}


def notes_of(used: Iterable[str]) -> dict[str, Note]:
    """The notes of these flags, in the order of the table."""
    wanted = set(used)
    unknown = wanted - FLAGS.keys()
    assert not unknown, f"flags without a note: {unknown}"
    return {
        name: Note(meaning=flag.meaning, source=f"docs/spec.md#{flag.section}")
        for name, flag in FLAGS.items()
        if name in wanted
    }
