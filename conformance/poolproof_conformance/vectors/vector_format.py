"""Format 1 of the vectors: four files of cases, each with what the model answers (docs/vectors.md)."""

from typing import Any, Final, Literal

import msgspec

from poolproof_spec.geometry import Geometry
from poolproof_spec.operation import AnyDemand, AnyOperation
from poolproof_spec.outcome import Blocked, Impossible, Step
from poolproof_spec.state import Entry, Flight, Hold, MemberState, PoolState
from poolproof_spec.units import PageId, VirtualId

FORMAT: Final = 1
"""The version that is read and written here."""


class Note(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a flag means, told once at the head of the file that uses it."""

    meaning: str
    source: str
    """Where the rule is told: a section of the specification."""


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every case has. Ids count up from 1 through a file; they are given by the export, never by hand."""

    tcId: int
    comment: str = ""
    """One line: what is asked."""
    flags: tuple[str, ...] = ()
    """Names in the file's notes."""


class PageDemand(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """New pages by role; as many token ids as FULL pages, as many state ids as state pages."""

    full_pages: int = 0
    swa_pages: int = 0
    state_pages: int = 0


class DemandCase(Case, frozen=True, kw_only=True):
    """What one call demands, from an empty pool and the setup."""

    setup: tuple[AnyOperation, ...] = ()
    """Calls made before it; they evict nothing."""
    operation: AnyDemand
    result: Literal["counted", "refused"]
    """refused: a bad call; it demands nothing and changes nothing."""
    pages: PageDemand | None = None
    """Exactly what it demands; absent where the call is refused."""


class Need(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one member must hold."""

    pinned: tuple[PageId, ...] = ()
    """Pages that cannot move."""
    loose: int = 0
    """Pages that may lie anywhere: movable live ones and new ones."""


class FitsCase(Case, frozen=True, kw_only=True):
    """Whether windows exist for what each member of the group's chain must hold."""

    needs: tuple[Need, ...]
    """One for each member, low bytes to high."""
    result: Literal["fits", "does_not_fit"]
    windows: tuple[tuple[int, int] | None, ...] | None = None
    """Where it fits: the least window [start, end) of each member, in pages; null for an empty one."""
    fails_at: str | None = None
    """Where it does not: the lowest member whose window fails."""
    needed_end: int | None = None
    """End of that member's least window, in pages."""


class VectorState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pool and its cache before a demand: all that the answer depends on."""

    members: tuple[MemberState, ...]
    entries: tuple[Entry, ...] = ()
    holds: tuple[Hold, ...] = ()
    flights: tuple[Flight, ...] = ()
    free_token_ids: tuple[VirtualId, ...] = ()
    free_state_ids: tuple[VirtualId, ...] = ()
    group_open: bool = False
    queued: Hold = Hold(name="")

    def in_arena(self, geometry: Geometry) -> PoolState:
        """As the specification's rules read it."""
        return PoolState(geometry=geometry, **{name: getattr(self, name) for name in self.__struct_fields__})


def vector_state(state: PoolState) -> VectorState:
    """The part of a state that a vector tells."""
    members = tuple(msgspec.structs.replace(member, free_pages=None) for member in state.members)
    told = {name: getattr(state, name) for name in VectorState.__struct_fields__ if name != "members"}
    return VectorState(members=members, **told)


class WrongAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a known target answers instead."""

    target: str
    """A release or range of releases, or `policy:NAME` for a policy restated as arithmetic."""
    tree_core: str = "any"
    mode: str = "any"
    result: str | None = None
    """granted or rejected; absent where the answer is right and something else is wrong."""
    evicted_pages: int | None = None
    violates: tuple[str, ...] = ()
    """Names of the properties that it violates there."""


class ReserveCase(Case, frozen=True, kw_only=True):
    """One demand in one state."""

    operations: tuple[AnyOperation, ...]
    """A history that leads the reference from an empty pool to the state."""
    state: VectorState
    operation: AnyDemand
    pages: PageDemand
    """What the operation demands in the state."""
    result: Literal["granted", "rejected"]
    steps: tuple[Step, ...] = ()
    """Granted: the eviction steps, in order: the first sufficient ones in policy order less those that are spared."""
    evicted_pages: int = 0
    """Cached FULL pages that the steps cost."""
    reason: Impossible | Blocked | None = None
    """Rejected: why."""
    wrong: tuple[WrongAnswer, ...] = ()


class Group(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Cases that share an arena."""

    geometry: Geometry


class DemandGroup(Group, frozen=True, kw_only=True):
    """See DemandCase."""

    tests: tuple[DemandCase, ...]


class FitsGroup(Group, frozen=True, kw_only=True):
    """See FitsCase."""

    tests: tuple[FitsCase, ...]


class ReserveGroup(Group, frozen=True, kw_only=True):
    """See ReserveCase."""

    tests: tuple[ReserveCase, ...]


class VectorFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """The head of a file."""

    format: Literal[1] = FORMAT
    title: str
    source: str
    """The section of the specification that the cases are about."""
    header: tuple[str, ...]
    """How to read the cases."""
    notes: dict[str, Note]
    """Every flag of the file, and no other."""
    numberOfTests: int
    checksum: int = 0
    """Over everything else in the file, so that nothing in it can change unseen: checksum.py."""


class DemandFile(VectorFile, frozen=True, kw_only=True, tag="demand"):
    """What operations demand."""

    testGroups: tuple[DemandGroup, ...]


class FitsFile(VectorFile, frozen=True, kw_only=True, tag="fits"):
    """What fits."""

    testGroups: tuple[FitsGroup, ...]


class ReserveFile(VectorFile, frozen=True, kw_only=True, tag="reserve"):
    """What a demand comes to."""

    testGroups: tuple[ReserveGroup, ...]


AnyVectorFile = DemandFile | FitsFile | ReserveFile
AnyCase = DemandCase | FitsCase | ReserveCase


def schema() -> dict[str, Any]:
    """JSON Schema, draft 2020-12, made from the types that read the files."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:poolproof:vectors:{FORMAT}",
        "title": f"poolproof vectors, format {FORMAT}",
        **msgspec.json.schema(AnyVectorFile),
    }
