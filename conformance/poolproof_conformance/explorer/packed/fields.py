"""What a packed state consists of: the items that own pages, and a bit field for each thing that can differ.

Items are told by what owns a page, not by ids: each position of the prefix trie, and each slot of a running request, in
the order of its ids. Ids are fields of their own, and are left out where states that differ in names alone are one.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from poolproof_conformance.errors import PoolproofError
from poolproof_conformance.explorer.configuration import Configuration, Key
from poolproof_spec import operation as op
from poolproof_spec.demand import Demand, demand_of
from poolproof_spec.fits import fits
from poolproof_spec.geometry import Geometry, Member
from poolproof_spec.prefixes import caches_states, window_pages
from poolproof_spec.state import MemberState, PoolState

TAKEN = (
    op.Insert | op.Match | op.LockPrefix | op.Unlock | op.UnlockWindow | op.DemandOperation | op.Free | op.FreeWindow
    | op.Gate | op.Launch | op.Fire | op.Compact | op.Query
)  # fmt: skip
"""The operations that this engine has."""
MOST_PAGES = 14
"""Usable pages of a member: its sets of pages are looked up in tables of two to that power."""
MOST_POSITIONS = 5
"""Positions of the prefix trie."""
MOST_BYTES = 8192
"""Of an arena: bytes are computed in 16 bits."""
WORD_BITS = 63
"""A state in one signed word."""
HALF_BITS = 53
"""A state in two numbers that a double holds exactly: NumPy sorts pairs of those as complex numbers."""


class PackedError(PoolproofError):
    """A configuration that the packed engine does not take."""


@dataclass(frozen=True)
class Field:
    """Bits of a packed state."""

    name: str
    bits: int
    word: int
    """0, or 1 where a state needs two words."""
    shift: int


@dataclass(frozen=True)
class Band:
    """One member and the items that may own its pages."""

    index: int
    member: Member
    items: tuple[int, ...]
    """Items in order, by number: token items for FULL and SWA, state items for states."""

    @property
    def width(self) -> int:
        """Usable pages."""
        return len(self.member.usable_pages)


class Model:
    """The static part of a packed configuration. Raises PackedError where this engine does not take it."""

    def __init__(self, configuration: Configuration, symmetry: bool) -> None:
        self.configuration, self.symmetry = configuration, symmetry
        self.geometry: Geometry = configuration.geometry
        self.operations = configuration.operations
        self._require()
        keys = {o.key[:n] for o in self._keyed() for n in range(1, len(o.key) + 1)}
        inner = {key[:-1] for key in keys}
        self.positions: list[Key] = sorted(keys, key=lambda key: (key not in inner, len(key), key))
        """Every prefix of every key in the alphabet: those that another extends first, then shallow before deep."""
        self.inner = sum(key in inner for key in self.positions)
        """How many of them another extends: only there a node may or may not end; at the others it ends."""
        number = {key: index for index, key in enumerate(self.positions)}
        self.parent = [number.get(key[:-1], -1) for key in self.positions]
        self.depth = [len(key) for key in self.positions]
        self.path_of = {key: [number[key[:n]] for n in range(1, len(key) + 1)] for key in self.positions}
        self.age_order = sorted(number.values(), key=lambda p: (-self.depth[p], self.positions[p]))
        """Positions as the policy takes them among equally old ones."""
        self.window_pages = window_pages(self.geometry)
        self.caches_swa = self.geometry.has_role("swa")
        self.caches_states = caches_states(self.geometry)
        self.requests = sorted({o.name for o in self.operations if isinstance(o, op.DemandOperation)})
        self.handles = sorted({o.name for o in self.operations if isinstance(o, op.LockPrefix)})
        self.launches = [tuple(o.writes) for o in self.operations if isinstance(o, op.Launch)]
        self._number_items()
        self._lay_out()

    def _keyed(self) -> Iterable[op.Insert | op.Match | op.LockPrefix]:
        return (o for o in self.operations if isinstance(o, op.Insert | op.Match | op.LockPrefix))

    def _require(self) -> None:
        """What is outside the sub-family, with the first thing that is."""
        wrong = [op.operation_name(o) for o in self.operations if not isinstance(o, TAKEN)]
        wide = [m.name for m in self.geometry.members if len(m.usable_pages) > MOST_PAGES]
        events = {o.event for o in self.operations if isinstance(o, op.Launch | op.Fire)}
        empty = PoolState(geometry=self.geometry, members=tuple(MemberState() for _ in self.geometry.members))
        demands = [(o, demand_of(empty, o)) for o in self.operations if not isinstance(o, op.Recover)]
        positions = {o.key[:n] for o in self._keyed() for n in range(1, len(o.key) + 1)}
        problems = (
            (wrong, f"has {', '.join(wrong)}"),
            (self.configuration.bad_calls, "makes bad calls"),
            (wide, f"has more than {MOST_PAGES} pages of {', '.join(wide)}"),
            (self.geometry.total_bytes > MOST_BYTES, f"has more than {MOST_BYTES} bytes"),
            (len(events) > 1, f"has {len(events)} events"),
            (len(positions) > MOST_POSITIONS, f"has {len(positions)} positions in its prefixes"),
            (any(m.anchored for m in self.geometry.members), "has anchored members"),
            (any(d and not d.full_pages + d.swa_pages + d.state_pages for _, d in demands), "has a demand of nothing"),
        )
        for is_wrong, what in problems:
            if is_wrong:
                raise PackedError(f"{self.configuration.name} {what}: not in the packed engine", "--engine reference")

    def _number_items(self) -> None:
        """Token items: positions, then slots of each request. State items: positions, then slots."""
        count = len(self.positions)
        self.slots: dict[str, list[int]] = {}
        self.state_slots: dict[str, list[int]] = {}
        for name in self.requests:
            demanding = [o for o in self.operations if isinstance(o, op.DemandOperation) and o.name == name]
            self.slots[name] = list(range(count, count := count + self._most_tokens(demanding)))
        self.token_items = range(count)
        count = len(self.positions) if self.caches_states else 0
        for name in self.requests:
            asks = any(isinstance(o, op.AllocStates) and o.name == name for o in self.operations)
            most = self._most(lambda n: Demand(state_pages=n)) if asks else 0
            self.state_slots[name] = list(range(count, count := count + most))
        self.state_items = range(count)
        self.bands = [
            Band(i, m, tuple(self.state_items if m.role == "state" else self.token_items))
            for i, m in enumerate(self.geometry.members)
        ]
        self.full = next(self.geometry.with_role("full"))
        self.swa = list(self.geometry.with_role("swa"))
        self.state = list(self.geometry.with_role("state"))

    def _most_tokens(self, demanding: Sequence[op.DemandOperation]) -> int:
        """Token pages that one request can hold at most: what fits an empty arena, with their SWA pages if all have."""
        asking = [o for o in demanding if not isinstance(o, op.AllocStates | op.Recover)]
        if not asking:
            return 0
        loses = any(isinstance(o, op.FreeWindow) and o.name == asking[0].name for o in self.operations)
        pairs = self.caches_swa and not loses and not any(isinstance(o, op.ExtendTail) for o in asking)
        return self._most(lambda n: Demand(full_pages=n, swa_pages=n if pairs else 0))

    def _most(self, demand: Callable[[int], Demand]) -> int:
        empty = PoolState(
            geometry=self.geometry,
            members=tuple(MemberState() for _ in self.geometry.members),
            free_token_ids=tuple(self.geometry.id_range("full")),  # type: ignore[arg-type]
            free_state_ids=tuple(self.geometry.id_range("state")),  # type: ignore[arg-type]
        )
        count = 0
        while fits(empty, demand(count + 1)):
            count += 1
        return count

    def _lay_out(self) -> None:
        """The fields, the widest words first come."""
        wanted: list[tuple[str, int]] = []
        for band in self.bands:
            wanted += [(page_field(band.index, item), band.width.bit_length()) for item in band.items]
        wanted += [(f"rank.{p}", len(self.positions).bit_length()) for p in range(len(self.positions))]
        wanted += [("END", self.inner)] if self.inner else []
        early = {o.name for o in self.operations if isinstance(o, op.UnlockWindow)}
        for handle in self.handles:
            wanted += [(f"lock.{handle}", len(self.positions).bit_length())]
            wanted += [(f"released.{handle}", 1)] if handle in early else []
        if any(isinstance(o, op.Gate) for o in self.operations):
            wanted += [("closed", 1)]
        if self.launches:
            wanted += [("flight", len(self.launches).bit_length())]
            wanted += [(f"read.{band.index}", len(band.items)) for band in self.bands if band.items]
            if any(isinstance(o, op.Compact) for o in self.operations):
                wanted += [(f"pend.{band.index}", band.width) for band in self.bands]
        if not self.symmetry:
            wanted += [(f"id.{i}", (len(self.geometry.id_range("full")) - 1).bit_length()) for i in self.token_items]
            states = len(self.geometry.id_range("state")) - 1
            wanted += [(f"sid.{i}", states.bit_length()) for i in self.state_items] if states > 0 else []
        self.bits = sum(bits for _, bits in wanted)
        self.words = 1 if self.bits <= WORD_BITS else 2
        self.fields = {field.name: field for field in self._placed(wanted)}

    def _placed(self, wanted: list[tuple[str, int]]) -> Iterable[Field]:
        """Each in the first word that has room for it."""
        room = WORD_BITS if self.words == 1 else HALF_BITS
        used = [0] * self.words
        for name, bits in wanted:
            word = next((number for number, taken in enumerate(used) if taken + bits <= room), None)
            if word is None:
                raise PackedError(
                    f"{self.configuration.name}: a state has {self.bits} bits, {self.words * room} can be sorted",
                    "--symmetry leaves the ids out; or --engine reference",
                )
            yield Field(name, bits, word, used[word])
            used[word] += bits

    def written(self, launch: int, member: int) -> int:
        """The set of items of a member that a launch writes."""
        slots_of = self.state_slots if self.bands[member].member.role == "state" else self.slots
        return sum(1 << slot for name in self.launches[launch] for slot in slots_of[name])


def page_field(member: int, item: int) -> str:
    """The field of an item's page in a member: 0 for none, else one more than the place among the usable pages."""
    return f"page.{member}.{item}"
