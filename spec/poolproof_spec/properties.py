"""[P1-P12]: the contract of one operation (docs/spec.md#contract).

Each function takes a transition and returns None where the rule holds or does not apply, else one line that says what
was found. The table of them, with claims and witnesses, is in catalogue.py.
"""

from collections import Counter

from poolproof_spec.demand import Demand
from poolproof_spec.fits import fits
from poolproof_spec.operation import Capacity, Fire, Query
from poolproof_spec.outcome import Answer, Blocked, Granted, Impossible, Rejected, Step
from poolproof_spec.quotas import cross_quota_reached, own_quota_reached
from poolproof_spec.state import Entry, PoolState
from poolproof_spec.steps import after_steps, policy_order, spared, tree_of
from poolproof_spec.transition import Transition, cached_pages, cached_states
from poolproof_spec.verdict import everything_freed, failing_bound, fits_after_lifting


def first_sufficient(t: Transition) -> str | None:
    """[P1] No proper prefix of the evicted steps leaves a state that fits the demand."""
    if t.demand is None or not t.granted or t.illegal_step:
        return None
    for count, stage in enumerate(t.stages[:-1]):
        if fits(stage, t.demand):
            return f"{len(t.steps)} evicted, {count} suffice"
    return None


def irredundant(t: Transition) -> str | None:
    """[P1+] No evicted step can be spared, with the steps that depend on it, and the demand still fit."""
    if t.demand is None or not t.granted or t.illegal_step:
        return None
    for step in t.steps:
        if fits(after_steps(t.boundary, spared(t.steps, step)), t.demand):
            return f"{_named(step)} could be spared"
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
    if t.demand is None or not t.granted or t.illegal_step or not t.steps:
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
    promised = t.outcome.token_pages
    if promised > 0 and not fits(t.before, token_demand(t.before, promised, may_wait=t.promises_waits)):
        return f"promises {promised} token pages, which do not fit"
    return None


def gates_and_events(t: Transition) -> str | None:
    """[P7] No move behind a closed gate or of what is being written; nothing in flight or pending is forgotten early.

    And no demand waits for an event where its caller does not allow it.
    """
    if t.demand is not None and t.waited and not t.demand.may_wait:
        return f"waited for {', '.join(t.waited)}, and the caller does not wait"
    return _moves_allowed(t) or _events_kept(t) or _pending_kept(t)


def _moves_allowed(t: Transition) -> str | None:
    written = {page for flight in t.past_waits.flights for page in flight.writes}
    for index, identifier, old, new in t.moves():
        name = t.before.geometry.members[index].name
        if not t.before.members[index].gate_open:
            return f"{name}: id {identifier} moved from page {old} to {new} behind a closed gate"
        if (name, identifier) in written:
            return f"{name}: id {identifier} moved from page {old} to {new} while a forward writes it"
    return None


def _events_kept(t: Transition) -> str | None:
    """What is in flight or pending stays so until its event fires or is waited for."""
    fired = t.operation.event if isinstance(t.operation, Fire) else None
    for member, old_state, new_state in zip(
        t.before.geometry.members, t.past_waits.members, t.after.members, strict=True
    ):
        early = {page for page, event in old_state.pending if event != fired} - new_state.pending_pages
        if early:
            return f"{member.name}: pages {sorted(early)} left pending before their event fired"
    forgotten = {flight.event for flight in t.past_waits.flights} - {flight.event for flight in t.after.flights}
    if forgotten - {fired}:
        return f"forwards {sorted(forgotten - {fired})} are no longer in flight, and their events have not fired"
    return None


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
        return f"{_named(t.vanished[0])} left the cache without a demand" if t.vanished else None
    step = t.illegal_step
    illegal = f"{_named(step)} is no legal step: locked, not there, or it has children" if step else None
    if illegal and t.reports_steps:
        return illegal
    return _locked_lost(t) or illegal


def _locked_lost(t: Transition) -> str | None:
    """Locked parts of the cache that are gone, whatever was reported."""
    pages, states = cached_pages(t.after), cached_states(t.after)

    def lost(entry: Entry) -> str | None:
        found = pages.get(entry.key)
        if entry.full_locks and found is None:
            return f"locked entry {list(entry.key)} was evicted"
        if entry.swa_locks and entry.swa_ids and not (found and found[1]):
            return f"entry {list(entry.key)} with a locked window was tombstoned"
        if entry.state_locks and entry.state_id is not None and entry.key not in states:
            return f"locked state of entry {list(entry.key)} was evicted"
        return None

    return next((message for entry in t.before.entries if (message := lost(entry))), None)


def _named(step: Step) -> str:
    return f"{step.kind} {list(step.key)}"


def bounded_work(t: Transition) -> str | None:
    """[P10] At most one batch of moves a member, and one walk a kind of step."""
    if not isinstance(t.outcome, Granted | Rejected):
        return None
    batches: Counter[str] = Counter()
    for name, count in t.outcome.compactions or ():
        batches[name] += count
    for name, count in batches.items():
        if count > 1:
            return f"{name} was compacted {count} times"
    walks = t.outcome.walks or 0
    return f"{walks} eviction walks for one kind of step" if walks > 1 else None


def capacity_honesty(t: Transition) -> str | None:
    """[P11] What is said to be available can be had without eviction; one page more cannot.

    The target tries both for real; the model holds against it that what does not fit cannot be had.
    """
    if not isinstance(t.operation, Capacity) or not isinstance(t.outcome, Answer):
        return None
    said = t.outcome.token_pages
    if t.vanished:
        return "an entry was evicted"
    if t.outcome.exact_granted is False:
        return f"says {said} token pages, and cannot give them"
    if t.outcome.one_more_granted:
        return f"says {said} token pages, and gives one more"
    if t.outcome.exact_granted and said > 0 and not fits(t.past_waits, token_demand(t.past_waits, said)):
        return f"says that it gave {said} token pages, which do not fit"
    return None


def policy_order_kept(t: Transition) -> str | None:
    """[P12] As far as they were needed, the evicted steps are taken in turn from the first sufficient of the policy."""
    if t.demand is None or not t.granted or t.illegal_step:
        return None
    needed = next((count for count, stage in enumerate(t.stages) if fits(stage, t.demand)), len(t.steps))
    policy = _first_sufficient_of_policy(t.boundary, t.demand) if needed else []
    rest = iter(policy)
    for step in t.steps[:needed]:
        if step not in rest:
            return f"{_named(step)} is not among the {len(policy)} steps that the policy takes first, or out of turn"
    return None


def _first_sufficient_of_policy(state: PoolState, demand: Demand) -> list[Step]:
    """The least prefix of the policy order after which the demand fits."""
    order = policy_order(tree_of(state))
    for count in range(len(order)):
        if fits(state, demand):
            return order[:count]
        state = after_steps(state, order[count : count + 1])
    return order


def token_demand(state: PoolState, pages: int, *, may_wait: bool = False) -> Demand:
    """The demand of `pages` token pages, by default without waiting: FULL, and SWA where the chain has it."""
    return Demand(full_pages=pages, swa_pages=pages if state.geometry.has_role("swa") else 0, may_wait=may_wait)
