"""[P1-P11]: the contract of one operation (docs/spec.md#contract).

Each function takes a transition and returns None where the rule holds or does not apply, else one line that says what
was found. The table of them, with claims and witnesses, is in catalogue.py.
"""

from msgspec.structs import replace

from poolproof_spec.demand import Demand
from poolproof_spec.fits import fits
from poolproof_spec.operation import Capacity, Fire, Free, FreeWindow, GroupEnd, Insert, Query
from poolproof_spec.outcome import (
    Answer,
    Blocked,
    Crashed,
    Granted,
    Impossible,
    Refused,
    Rejected,
    Unsupported,
)
from poolproof_spec.quotas import cross_quota_reached, own_quota_reached
from poolproof_spec.state import Hold, PoolState
from poolproof_spec.steps import after_free, after_group, after_step, after_steps, is_legal, spared, tree_of
from poolproof_spec.transition import Transition, cached_pages, cached_states, less
from poolproof_spec.verdict import everything_freed, failing_bound, fits_after_lifting


def first_sufficient(t: Transition) -> str | None:
    """[P1] No proper prefix of the evicted steps leaves a state that fits the demand."""
    if t.demand is None or not t.granted:
        return None
    for count, stage in enumerate(t.stages[:-1]):
        if fits(stage, t.demand):
            return f"{len(t.steps)} evicted, {count} suffice"
    return None


def irredundant(t: Transition) -> str | None:
    """[P1+] No evicted step can be spared, with the steps that depend on it, and the demand still fit."""
    if t.demand is None or not t.granted:
        return None
    for step in t.steps:
        if fits(after_steps(t.boundary, spared(t.steps, step)), t.demand):
            return f"{step.kind} {list(step.key)} could be spared"
    return None


def complete(t: Transition) -> str | None:
    """[P2] If the state after freeing every legal step fits the demand, it is granted."""
    if t.demand is None or not t.rejected:
        return None
    if fits(t.boundary, t.demand):
        return "rejected, and it fits with nothing evicted"
    if fits(everything_freed(t.boundary), t.demand):
        return "rejected, and it fits once unlocked entries are freed"
    return None


def preserving(t: Transition) -> str | None:
    """[P3] A rejected demand evicts nothing; no page, id, payload, lock or recency rank changes. A page may move."""
    if not t.rejected:
        return None
    if t.steps or t.vanished:
        return f"rejected, and {len(t.steps or t.vanished)} cached steps were evicted"
    return _content_changed(t.base, t.after)


def _content_changed(before: PoolState, after: PoolState) -> str | None:
    for member, old, new in zip(before.geometry.members, before.members, after.members, strict=True):
        if old.live_ids != new.live_ids:
            return f"{member.name}: live ids changed by {sorted(old.live_ids ^ new.live_ids)}"
    for what in ("free_token_ids", "free_state_ids", "holds", "locks", "payloads"):
        if getattr(before, what) != getattr(after, what):
            return f"{what} changed"
    if _ranked(before) != _ranked(after):
        return "the cache changed: an entry, a lock or the order of recency"
    return None


def _ranked(state: PoolState) -> list[tuple[object, ...]]:
    by_age = sorted(state.entries, key=lambda entry: (entry.last_use, entry.key))
    return [(e.key, e.ids, e.swa_ids, e.state_id, e.full_locks, e.swa_locks, e.state_locks) for e in by_age]


def honest_reason(t: Transition) -> str | None:
    """[P4] `impossible` names a bound that fails whatever is lifted; `blocked` names all that must be lifted."""
    if t.demand is None or not isinstance(t.outcome, Rejected):
        return None
    match t.outcome.reason:
        case Impossible() as reason:
            bound = failing_bound(t.boundary, t.demand)
            if bound is None:
                return "called impossible, and it fits once gates, events and locks are lifted"
            return None if bound == reason else f"names {reason}, the bound that fails is {bound}"
        case Blocked(by=by):
            if not by:
                return "called blocked, and names nothing"
            if not fits_after_lifting(t.boundary, t.demand, by):
                return f"blocked by {', '.join(by)}, and lifting them is not enough"
            needless = [b for b in by if fits_after_lifting(t.boundary, t.demand, [x for x in by if x != b])]
            return f"names {needless[0]}, which need not be lifted" if needless else None
        case None:
            return "rejected without a reason"


def within_quota(t: Transition) -> str | None:
    """[P5] Before the last step neither the demanded pages nor the bytes that surely fund them had been freed."""
    if t.demand is None or not t.granted or not t.steps:
        return None
    last_but_one = t.stages[-2]
    if own_quota_reached(t.boundary, last_but_one, t.demand):
        return "before the last step every demanded page and id had been freed"
    payer = cross_quota_reached(t.boundary, last_but_one, t.demand)
    return f"before the last step {payer} had freed bytes that surely fund the demand" if payer else None


def pure_query(t: Transition) -> str | None:
    """[P6] Asking changes nothing, and promises no more than fits without evicting."""
    if not isinstance(t.operation, Query) or not isinstance(t.outcome, Answer):
        return None
    if t.before != t.after:
        changed = [f for f in PoolState.__struct_fields__ if getattr(t.before, f) != getattr(t.after, f)]
        return f"a query changed {', '.join(changed)}"
    if t.outcome.token_pages > 0 and not fits(t.before, token_demand(t.before, t.outcome.token_pages)):
        return f"promises {t.outcome.token_pages} token pages, which do not fit"
    return None


def gates_and_events(t: Transition) -> str | None:
    """[P7] No move behind a closed gate; nothing pending is handed out early; no copy of a page being written."""
    written = {page for flight in t.past_waits.flights for page in flight.writes}
    for index, identifier, old, new in t.moves():
        name = t.before.geometry.members[index].name
        if not t.before.members[index].gate_open:
            return f"{name}: id {identifier} moved from page {old} to {new} behind a closed gate"
        if (name, identifier) in written:
            return f"{name}: id {identifier} moved from page {old} to {new} while a forward writes it"
    fired = t.operation.event if isinstance(t.operation, Fire) else None
    for member, old_state, new_state in zip(
        t.before.geometry.members, t.past_waits.members, t.after.members, strict=True
    ):
        early = {page for page, event in old_state.pending if event != fired} - new_state.pending_pages
        if early:
            return f"{member.name}: pages {sorted(early)} left pending before their event fired"
    return _pending_kept(t)


def _pending_kept(t: Transition) -> str | None:
    """A page that a reader in flight still reads must be live or pending wherever it was when the forward began."""
    for index, identifier, old, _ in t.moves():
        name = t.before.geometry.members[index].name
        read = any((name, identifier) in flight.reads for flight in t.past_waits.flights)
        if read and old not in t.after.members[index].pending_pages:
            return f"{name}: page {old} was moved away under a reader in flight and is not pending"
    return None


def deferred_frees(t: Transition) -> str | None:
    """[P8] Grouped frees count at the phase boundary before the first eviction; the caller's group stays open."""
    if t.demand is None or not t.before.group_open:
        return None
    if not t.after.group_open:
        return "the caller's group was closed"
    if t.before != t.boundary and fits(t.boundary, t.demand) and not fits(t.before, t.demand):
        if t.rejected:
            return "rejected, and the grouped frees suffice"
        if t.steps:
            return "evicted, and the grouped frees suffice"
    queued = t.after.queued
    if t.steps and (queued.ids or queued.swa_ids or queued.state_ids):
        return "ids are still queued after an eviction"
    return None


def locks_kept(t: Transition) -> str | None:
    """[P9] Every step is legal at its turn, and nothing leaves the cache but by a demand's steps."""
    if t.demand is None:
        return f"{t.vanished[0].kind} {list(t.vanished[0].key)} left the cache without a demand" if t.vanished else None
    tree = tree_of(t.before)
    for step in t.steps:
        if not is_legal(tree, step):
            return f"{step.kind} {list(step.key)} is no legal step: locked, not there, or it has children"
        tree = after_step(tree, step)
    locked = [entry for entry in t.before.entries if entry.full_locks or entry.swa_locks or entry.state_locks]
    pages, states = cached_pages(t.after), cached_states(t.after)
    for entry in locked:
        if entry.full_locks and entry.key not in pages:
            return f"locked entry {list(entry.key)} was evicted"
        if entry.swa_locks and entry.swa_ids and not pages[entry.key][1]:
            return f"entry {list(entry.key)} with a locked window was tombstoned"
        if entry.state_locks and entry.state_id is not None and entry.key not in states:
            return f"locked state of entry {list(entry.key)} was evicted"
    return None


def bounded_work(t: Transition) -> str | None:
    """[P10] At most one batch of moves a member, one walk a kind of step, and no more moves than live pages."""
    if isinstance(t.outcome, Granted | Rejected):
        for name, count in t.outcome.compactions or ():
            if count > 1:
                return f"{name} was compacted {count} times"
        if (t.outcome.walks or 0) > 1:
            return f"{t.outcome.walks} eviction walks for one kind of step"
    moves = sum(1 for _ in t.moves())
    live = sum(len(member.bindings) for member in t.before.members)
    return f"{moves} moves of {live} live pages" if moves > live else None


def capacity_honesty(t: Transition) -> str | None:
    """[P11] What is said to be available can be had without eviction; one page more cannot."""
    if not isinstance(t.operation, Capacity) or not isinstance(t.outcome, Answer):
        return None
    if t.vanished:
        return "an entry was evicted"
    if t.outcome.exact_granted is False:
        return f"says {t.outcome.token_pages} token pages, and cannot give them"
    if t.outcome.one_more_granted:
        return f"says {t.outcome.token_pages} token pages, and gives one more"
    return None


def grant_exact(t: Transition) -> str | None:
    """[G1] A grant gives exactly the demanded pages, and its reported steps are what left the cache."""
    if t.demand is None or not t.granted:
        return None
    evicted, after = t.stages[-1], after_group(t.after)
    for member, old, new in zip(t.before.geometry.members, evicted.members, after.members, strict=True):
        gained, lost = new.live_ids - old.live_ids, old.live_ids - new.live_ids
        if len(gained) != t.demand.pages(member.role) or lost:
            demanded = t.demand.pages(member.role)
            return f"{member.name}: {len(gained)} new pages, {demanded} demanded, {len(lost)} others lost"
    if cached_pages(evicted) != cached_pages(t.after) or cached_states(evicted) != cached_states(t.after):
        return "the reported steps are not what left the cache"
    return None


def refusal_changes_nothing(t: Transition) -> str | None:
    """[G2] A bad call is refused, and a refused call changes nothing at all."""
    if isinstance(t.outcome, Refused):
        return "a refused call changed the state" if t.before != t.after else None
    if not t.good_call and not isinstance(t.outcome, Crashed | Unsupported):
        return f"a bad call was not refused: {t.operation}"
    return None


def effects_exact(t: Transition) -> str | None:
    """[G3] What is no demand frees and takes exactly the pages that it names."""
    if t.demand is not None or isinstance(t.outcome, Refused | Crashed | Unsupported):
        return None
    expected = t.before
    match t.operation:
        case Free(name=name):
            expected = after_free(t.before, less(_hold(t.before, name), t.after.queued))
        case FreeWindow(name=name):
            expected = after_free(t.before, replace(_hold(t.before, name), ids=(), state_ids=()))
        case GroupEnd() | Insert():
            expected = t.base
    for member, old, new in zip(t.before.geometry.members, expected.members, t.after.members, strict=True):
        named = {identifier for name, identifier in t.new_pages if name == member.name}
        if new.live_ids != old.live_ids | named:
            odd = sorted(new.live_ids ^ (old.live_ids | named))
            return f"{member.name}: ids {odd} are live and should not be, or the other way round"
    return None


def _hold(state: PoolState, name: str) -> Hold:
    return next((hold for hold in state.holds if hold.name == name), Hold(name=name))


def token_demand(state: PoolState, pages: int) -> Demand:
    """The demand of `pages` token pages, without waiting: FULL, and SWA where the chain has it."""
    return Demand(full_pages=pages, swa_pages=pages if state.geometry.has_role("swa") else 0, may_wait=False)
