"""[G1-G3]: an operation does what it says, all of it and nothing else (docs/spec.md#contract).

Each function takes a transition and returns None where the rule holds or does not apply, else one line that says what
was found. What an operation says of gates and flights is judged of all of them; the rest of G3 is about operations that
are no demands, for which G1, P3 and P9 say as much.
"""

from msgspec.structs import replace

from poolproof_spec.demand import Demand
from poolproof_spec.geometry import Role
from poolproof_spec.operation import (
    Fire,
    Free,
    FreeWindow,
    Gate,
    GroupBegin,
    GroupEnd,
    Insert,
    Launch,
    Recover,
)
from poolproof_spec.outcome import Crashed, Done, Granted, Refused, Unsupported
from poolproof_spec.prefixes import usable_pages
from poolproof_spec.state import Hold, PoolState
from poolproof_spec.steps import Key, after_free, after_group
from poolproof_spec.transition import Transition, cached_pages, cached_states, hold_of, less, positions_of
from poolproof_spec.units import VirtualId

Page = tuple[str, VirtualId]
"""(member name, virtual id)."""


def grant_exact(t: Transition) -> str | None:
    """[G1] A grant gives exactly the demanded pages to the request that asked, and reports them and its steps."""
    if t.demand is None or not isinstance(t.outcome, Granted) or t.illegal_step:
        return None
    evicted, after = t.stages[-1], after_group(t.after)
    gained: set[Page] = set()
    for member, old, new in zip(t.before.geometry.members, evicted.members, after.members, strict=True):
        more, lost = new.live_ids - old.live_ids, old.live_ids - new.live_ids
        if len(more) != t.demand.pages(member.role) or lost:
            demanded = t.demand.pages(member.role)
            return f"{member.name}: {len(more)} new pages, {demanded} demanded, {len(lost)} others lost"
        gained |= {(member.name, identifier) for identifier in more}
    if sorted(t.outcome.pages) != sorted(gained):
        return f"reports pages {sorted(t.outcome.pages)}, the new ones are {sorted(gained)}"
    if cached_pages(evicted) != cached_pages(t.after) or cached_states(evicted) != cached_states(t.after):
        return "the reported steps are not what left the cache"
    return _booked(t, t.demand, gained)


def _booked(t: Transition, demand: Demand, gained: set[Page]) -> str | None:
    """The new pages belong to the request that asked, SWA pages to its last new ids; no other request changed."""
    name = getattr(t.operation, "name", "")
    old, new = hold_of(t.before, name), hold_of(t.after, name)
    if _requests(t.before, but=name) != _requests(t.after, but=name):
        return "pages of another request changed"
    ids = new.ids[len(old.ids) :]
    if isinstance(t.operation, Recover):
        swa_ids = [identifier for identifier in old.ids if identifier not in old.swa_ids]
    else:
        swa_ids = list(ids[len(ids) - demand.swa_pages :])
    states = {identifier for member, identifier in gained if _role(t.before, member) == "state"}
    expected = Hold(
        name=name,
        ids=(*old.ids, *ids),
        swa_ids=(*old.swa_ids, *swa_ids),
        state_ids=(*old.state_ids, *sorted(states)),
    )
    token_ids = {identifier for member, identifier in gained if _role(t.before, member) == "full"}
    if set(ids) != token_ids or _content(new) != _content(expected):
        return f"request {name} holds {_told(new)}, and should hold {_told(expected)}"
    return None


def refusal_changes_nothing(t: Transition) -> str | None:
    """[G2] A bad call is refused, and a refused call changes nothing at all."""
    if isinstance(t.outcome, Refused):
        return "a refused call changed the state" if t.before != t.after else None
    if not t.good_call and not isinstance(t.outcome, Crashed | Unsupported):
        return f"a bad call was not refused: {t.operation}"
    return None


def effects_exact(t: Transition) -> str | None:
    """[G3] An operation changes what it names, as it says, and nothing else."""
    if isinstance(t.outcome, Refused | Crashed | Unsupported):
        return None
    return _gates(t) or _flights(t) or (_calm(t) if t.demand is None else None)


def _calm(t: Transition) -> str | None:
    """What holds of an operation that is no demand: what is live, deferred, held and cached."""
    return _live(t) or _group(t) or _held(t) or _cached(t)


def _gates(t: Transition) -> str | None:
    """Gates are as they were, or as they were asked to be."""
    for member, old, new in zip(t.before.geometry.members, t.before.members, t.after.members, strict=True):
        asked = t.operation.open if isinstance(t.operation, Gate) else old.gate_open
        if new.gate_open != asked:
            return f"{member.name}: the gate is {'open' if new.gate_open else 'closed'} and should not be"
    return None


def _flights(t: Transition) -> str | None:
    """What was launched is in flight and what has fired is not, and each still reads and writes what it did."""
    launched = {t.operation.event} if isinstance(t.operation, Launch) else set()
    fired = {t.operation.event, *t.waited} if isinstance(t.operation, Fire) else set(t.waited)
    before, after = ({flight.event: flight for flight in state.flights} for state in (t.before, t.after))
    if odd := (after.keys() - before.keys()) ^ launched:
        return f"forwards {sorted(odd)} are in flight and should not be, or the other way round"
    if late := fired & (after.keys() | {event for member in t.after.members for _, event in member.pending}):
        return f"events {sorted(late)} have fired, and something still waits for them"
    live = _live_pages(t.after)
    kept = live & (_live_pages(t.before) - t.new_pages)
    for event, flight in after.items():
        if event in launched:
            reads, writes = live, live & _pages_written(t)
        else:
            reads, writes = kept & {*before[event].reads}, kept & {*before[event].writes}
        if {*flight.reads} != reads or {*flight.writes} != writes:
            odd_pages = sorted(({*flight.reads} ^ reads) | ({*flight.writes} ^ writes))
            return f"forward {event}: what it reads or writes is wrong about {odd_pages}"
    return None


def _live(t: Transition) -> str | None:
    """Live are the ids that were, less those that the operation frees, and those that it reports as new."""
    expected = t.before
    match t.operation:
        case Free(name=name):
            expected = after_free(t.before, less(hold_of(t.before, name), t.after.queued))
        case FreeWindow(name=name):
            expected = after_free(t.before, replace(hold_of(t.before, name), ids=(), state_ids=()))
        case GroupEnd():
            expected = t.base
        case Insert():
            expected = after_free(t.base, less(Hold(name="", ids=tuple(_renewed(t).values())), t.after.queued))
    for member, old, new in zip(t.before.geometry.members, expected.members, t.after.members, strict=True):
        named = {identifier for name, identifier in t.new_pages if name == member.name}
        if new.live_ids != old.live_ids | named:
            odd = sorted(new.live_ids ^ (old.live_ids | named))
            return f"{member.name}: ids {odd} are live and should not be, or the other way round"
        if again := sorted(named & old.live_ids):
            return f"{member.name}: ids {again} are reported as new and were live already"
    return None


def _group(t: Transition) -> str | None:
    """The group is open if it was, or was begun, and not ended; in it is what was freed meanwhile.

    Whether SWA pages and states wait with their ids is the target's choice: what does not wait must be free.
    """
    match t.operation:
        case GroupBegin():
            is_open = True
        case GroupEnd():
            is_open = False
        case _:
            is_open = t.before.group_open
    if t.after.group_open != is_open:
        return f"the group is {'open' if t.after.group_open else 'closed'} and should not be"
    old, new = t.before.queued, t.after.queued
    least, most = old, old
    match t.operation:
        case Free(name=name) if is_open:
            freed = hold_of(t.before, name)
            least, most = _both(old, Hold(name="", ids=freed.ids)), _both(old, freed)
        case Insert():
            # A phase boundary; and what turns out to be there twice is freed into the group.
            twice = Hold(name="", ids=(*_renewed(t).values(), *_new_ids(t, "full")), swa_ids=_new_ids(t, "swa"))
            least, most = Hold(name=""), _both(old, twice)
        case GroupEnd():
            least = most = Hold(name="")
    if not {*least.ids} <= {*new.ids} <= {*most.ids}:
        return f"ids {sorted(new.ids)} are queued, should be {sorted(most.ids)}"
    if not ({*new.swa_ids} <= {*most.swa_ids} and {*new.state_ids} <= {*most.state_ids}):
        return "SWA pages or states are queued that nobody freed"
    return None


def _held(t: Transition) -> str | None:
    """Requests hold what they held, but what a free takes from the one that it names."""
    expected = _requests(t.before)
    match t.operation:
        case Free(name=name):
            expected.pop(name, None)
        case FreeWindow(name=name):
            expected[name] = _content(replace(hold_of(t.before, name), swa_ids=()))
    found = _requests(t.after)
    odd = sorted(name for name in {*expected, *found} if expected.get(name) != found.get(name))
    return f"requests {odd} do not hold what they should" if odd else None


def _cached(t: Transition) -> str | None:
    """Each cached page keeps its id, and only an insert adds any: those of its prefix, which can then be used."""
    inserted = t.operation.key if isinstance(t.operation, Insert) and isinstance(t.outcome, Done) else ()
    path, renewed = _prefixes(inserted), _renewed(t)
    old, new = cached_pages(t.before), cached_pages(t.after)
    old_states, new_states = cached_states(t.before), cached_states(t.after)
    for position in old.keys() | new.keys():
        was, now = old.get(position), new.get(position)
        kept = was is None or (now is not None and (now[0] == was[0] or position in renewed) and now[1] >= was[1])
        if was != now and not (position in path and kept):
            return f"cached page {list(position)} was {was}, and is {now}"
    for position in old_states.keys() | new_states.keys():
        added = position == inserted and position not in old_states
        if old_states.get(position) != new_states.get(position) and not added:
            return f"the state of {list(position)} changed"
    with_state = isinstance(t.operation, Insert) and t.operation.state
    if inserted and usable_pages(t.after, inserted, with_state) < len(inserted):
        return f"{list(inserted)} was inserted, and cannot be used"
    return None


def _renewed(t: Transition) -> dict[Key, VirtualId]:
    """Positions for which an insert brought another page, and the ids that they had.

    Allowed where the SWA page was gone, so that the pair of pages is new, and nobody has the FULL page locked.
    """
    if not isinstance(t.operation, Insert) or not isinstance(t.outcome, Done):
        return {}
    new, brought = cached_pages(t.after), {*_new_ids(t, "full")}
    free = {position for entry in t.before.entries if not entry.full_locks for position in positions_of(entry)}
    return {
        position: identifier
        for position, (identifier, has_swa) in cached_pages(t.before).items()
        if position in free & _prefixes(t.operation.key)
        and not has_swa
        and new.get(position, (identifier, False))[0] in brought
    }


def _prefixes(key: Key) -> set[Key]:
    return {key[:length] for length in range(1, len(key) + 1)}


def _new_ids(t: Transition, role: Role) -> tuple[VirtualId, ...]:
    names = {member.name for member in t.before.geometry.members if member.role == role}
    return tuple(identifier for member, identifier in t.new_pages if member in names)


def _both(one: Hold, other: Hold) -> Hold:
    return Hold(
        name="",
        ids=(*one.ids, *other.ids),
        swa_ids=(*one.swa_ids, *other.swa_ids),
        state_ids=(*one.state_ids, *other.state_ids),
    )


def _live_pages(state: PoolState) -> set[Page]:
    members = zip(state.geometry.members, state.members, strict=True)
    return {(member.name, identifier) for member, now in members for identifier in now.live_ids}


def _pages_written(t: Transition) -> set[Page]:
    """Pages of the requests that a forward writes, as far as the target can tell."""
    names = t.operation.writes if isinstance(t.operation, Launch) else ()
    written: dict[str, set[VirtualId]] = {"full": set(), "swa": set(), "state": set()}
    for hold in t.before.holds:
        if hold.name in names:
            written["full"] |= {*hold.ids}
            written["swa"] |= {*hold.swa_ids}
            written["state"] |= {*hold.state_ids} if t.tells_state_writes else set()
    return {(member.name, identifier) for member in t.before.geometry.members for identifier in written[member.role]}


def _role(state: PoolState, member_name: str) -> Role:
    return state.geometry.members[state.geometry.index_of(member_name)].role


def _content(hold: Hold) -> tuple[object, ...]:
    """What a request holds: the order of ids counts, as they are its tokens; that of the others does not."""
    return hold.ids, sorted(hold.swa_ids), sorted(hold.state_ids)


def _requests(state: PoolState, but: str | None = None) -> dict[str, tuple[object, ...]]:
    return {hold.name: _content(hold) for hold in state.holds if hold.name != but}


def _told(hold: Hold) -> str:
    return f"ids {list(hold.ids)}, SWA {sorted(hold.swa_ids)}, states {sorted(hold.state_ids)}"
