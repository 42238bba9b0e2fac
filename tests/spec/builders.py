"""States, operations and transitions made by hand, in few words."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from poolproof_spec import operation as op
from poolproof_spec.catalogue import findings
from poolproof_spec.geometry import Geometry, derive, layout
from poolproof_spec.outcome import AnyOutcome, Granted, Step, StepKind
from poolproof_spec.state import Entry, Flight, Hold, Lock, MemberState, PoolState
from poolproof_spec.steps import Key
from poolproof_spec.transition import Transition, owners
from poolproof_spec.units import PageId, PageKey, TokenCount, VirtualId, ceil_div


def key(*page_keys: int) -> Key:
    return tuple(PageKey(page_key) for page_key in page_keys)


def ids(*numbers: int) -> tuple[VirtualId, ...]:
    return tuple(VirtualId(number) for number in numbers)


def step(kind: StepKind, *page_keys: int) -> Step:
    return Step(kind=kind, key=key(*page_keys))


def alloc(tokens: int, name: str = "r", *, may_wait: bool = True) -> op.Alloc:
    return op.Alloc(name=name, tokens=TokenCount(tokens), may_wait=may_wait)


def swa2(pages: int) -> Geometry:
    """SWA below FULL, `pages` usable pages of one byte between them; as many ids."""
    return layout("swa2", 1 + pages, SWA=1, FULL=1)


def tri(total_bytes: int = 12, state_bytes: int = 1) -> Geometry:
    """STATE, SWA, FULL: one byte a token page."""
    return layout("tri", total_bytes, STATE=state_bytes, SWA=1, FULL=1)


def four_members(total_bytes: int = 20) -> Geometry:
    """A chain with two floats of different page sizes."""
    chain = [("A", "state", 2, "up"), ("B", "swa", 1, "float"), ("C", "swa", 2, "float"), ("D", "full", 1, "down")]
    return derive(total_bytes, chain)  # type: ignore[arg-type]


def entry(
    page_keys: Key,
    own: Sequence[int],
    *,
    swa: bool = True,
    state: int | None = None,
    locks: tuple[int, int, int] = (0, 0, 0),
    last_use: int = 0,
) -> Entry:
    """A node whose last pages have the ids `own`; locks of FULL, SWA and state."""
    full_locks, swa_locks, state_locks = locks
    return Entry(
        key=page_keys,
        ids=ids(*own),
        swa_ids=ids(*own) if swa else (),
        state_id=None if state is None else VirtualId(state),
        full_locks=full_locks,
        swa_locks=swa_locks,
        state_locks=state_locks,
        last_use=last_use,
    )


def handles(one: Entry) -> list[Lock]:
    """Lock handles that end at the node and account for its FULL locks; the first ones have their windows still."""
    held = max(one.swa_locks, one.state_locks)
    return [
        Lock(name=f"on-{'-'.join(map(str, one.key))}-{count}", key=one.key, window_released=count >= held)
        for count in range(one.full_locks)
    ]


def hold(name: str, own: Sequence[int] = (), *, swa: bool = True, states: Sequence[int] = ()) -> Hold:
    """A running request; `own` are ids of FULL pages."""
    return Hold(name=name, ids=ids(*own), swa_ids=ids(*own) if swa else (), state_ids=ids(*states))


def pool(
    geometry: Geometry,
    *entries: Entry,
    holds: Sequence[Hold] = (),
    queued: Hold | None = None,
    group_open: bool = False,
    gate_open: bool = True,
    flights: Sequence[Flight] = (),
    pending: Mapping[str, Mapping[int, str]] | None = None,
) -> PoolState:
    """A state without holes that owns exactly what is named, locked by handles of that node alone.

    `pending` is member name -> page -> event.
    """
    state = PoolState(
        geometry=geometry,
        members=(),
        entries=tuple(sorted(entries, key=lambda one: one.key)),
        holds=tuple(holds),
        locks=tuple(handle for one in sorted(entries, key=lambda one: one.key) for handle in handles(one)),
        queued=queued or Hold(name=""),
        group_open=group_open or queued is not None,
        flights=tuple(flights),
    )
    owned: dict[str, list[VirtualId]] = {
        "full": sorted({i for owner in owners(state) for i in owner.ids}),
        "swa": sorted({i for owner in owners(state) for i in owner.swa_ids}),
        "state": sorted({i for owner in owners(state) for i in owner.state_ids}),
    }
    members, payloads, position = [], [], 0
    for member in geometry.members:
        mine = owned[member.role]
        start = max(member.first_page, ceil_div(position, member.page_bytes))
        if member.kind == "down":
            start = member.page_count - len(mine)
        bindings = tuple((identifier, PageId(start + offset)) for offset, identifier in enumerate(mine))
        waiting = (pending or {}).get(member.name, {})
        members.append(
            MemberState(
                bindings=bindings,
                gate_open=gate_open,
                pending=tuple((PageId(page), event) for page, event in sorted(waiting.items())),
            )
        )
        payloads += [(member.name, identifier, 100 + identifier) for identifier in mine]
        position = (start + len(mine)) * member.page_bytes if mine else position
    return PoolState(
        geometry=geometry,
        entries=state.entries,
        holds=state.holds,
        locks=state.locks,
        queued=state.queued,
        group_open=state.group_open,
        flights=state.flights,
        members=tuple(members),
        free_token_ids=tuple(VirtualId(i) for i in geometry.id_range("full") if i not in owned["full"]),
        free_state_ids=tuple(VirtualId(i) for i in geometry.id_range("state") if i not in owned["state"]),
        payloads=tuple(sorted(payloads)),
        written=tuple(sorted(payloads)),
    )


def went(before: PoolState, operation: op.AnyOperation, outcome: AnyOutcome, after: PoolState) -> Transition:
    """One judged step of a target that reports its evictions."""
    return Transition(before, operation, outcome, after)


OLD, NEW = entry(key(1), [1], last_use=1), entry(key(2), [2], last_use=2)
FULL_ARENA = pool(swa2(4), OLD, NEW)
"""Two cached prefixes of one page; not a byte is free."""
ROOMY = pool(swa2(8), OLD, NEW)


def pages(*numbers: int) -> tuple[tuple[str, VirtualId], ...]:
    """FULL and SWA pages of some ids, as a grant reports them."""
    return tuple((member, identifier) for member in ("FULL", "SWA") for identifier in ids(*numbers))


def grant(*steps: Step, new: Sequence[int] = (1,), waited: tuple[str, ...] = (), walks: int = 1) -> Granted:
    return Granted(steps=steps, pages=pages(*new), waited=waited, walks=walks)


def moved(state: PoolState, member: str, identifier: int, page: int, pending: str | None = None) -> PoolState:
    """The state with one page elsewhere, its old place pending on an event where one is given."""
    index = state.geometry.index_of(member)
    now = state.members[index]
    table = dict(now.bindings)
    left = ((table[VirtualId(identifier)], pending),) if pending else ()
    table[VirtualId(identifier)] = PageId(page)
    members = [*state.members]
    members[index] = replace(now, bindings=tuple(sorted(table.items())), pending=(*now.pending, *left))
    return replace(state, members=tuple(members))


def found(
    before: PoolState, operation: op.AnyOperation, outcome: AnyOutcome, after: PoolState, *, reports_steps: bool = True
) -> dict[str, str]:
    """Name of each violated rule, and what it found."""
    return findings(Transition(before, operation, outcome, after, reports_steps))
