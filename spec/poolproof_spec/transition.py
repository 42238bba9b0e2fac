"""One operation as a checker sees it: the state before, what was asked, what was answered, the state after."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from poolproof_spec.calls import is_good_call
from poolproof_spec.demand import Demand, demand_of
from poolproof_spec.operation import AnyOperation
from poolproof_spec.outcome import Answer, AnyOutcome, Done, Granted, Refused, Rejected, Step
from poolproof_spec.state import Entry, Hold, PoolState
from poolproof_spec.steps import Key, after_free, after_group, after_steps, is_legal, policy_order, tree_of
from poolproof_spec.units import PageId, VirtualId
from poolproof_spec.verdict import after_events


@dataclass(frozen=True)
class Transition:
    """The four things that every property is a predicate over, and what is derived from them."""

    before: PoolState
    operation: AnyOperation
    outcome: AnyOutcome
    after: PoolState
    reports_steps: bool = True
    """Whether the target tells the order of its evictions; else they are derived from the two states."""
    tells_state_writes: bool = True
    """Whether the target knows which states a forward in flight writes; else only what it writes of FULL and SWA."""
    promises_waits: bool = False
    """Whether the target always waits for events where it must, so that what it says is available may need that."""

    @cached_property
    def demand(self) -> Demand | None:
        """What was demanded; None where the operation is no demand, or a bad call."""
        return demand_of(self.before, self.operation) if self.good_call else None

    @cached_property
    def good_call(self) -> bool:
        """Whether the call makes sense in the state before."""
        return is_good_call(self.before, self.operation)

    @cached_property
    def boundary(self) -> PoolState:
        """The state before, past the phase boundary at which grouped frees count [P8]."""
        return after_group(self.before)

    @cached_property
    def base(self) -> PoolState:
        """The state before, less what really left the group: a target need not flush where it need not evict."""
        return after_free(self.before, less(self.before.queued, self.after.queued))

    @property
    def granted(self) -> bool:
        """A demand that was met."""
        return isinstance(self.outcome, Granted)

    @property
    def rejected(self) -> bool:
        """A demand that was not met; a well-formed demand that is refused counts as one."""
        return self.demand is not None and isinstance(self.outcome, Rejected | Refused)

    @property
    def waited(self) -> tuple[str, ...]:
        """Events that the target waited for."""
        return self.outcome.waited if isinstance(self.outcome, Granted | Rejected | Done | Answer) else ()

    @cached_property
    def vanished(self) -> tuple[Step, ...]:
        """The steps that tell the cache before from the cache after: in default policy order, then the illegal ones."""
        steps = list(_vanished(self.before, self.after))
        legal = policy_order(tree_of(self.before), frozenset(steps))
        return (*legal, *(step for step in steps if step not in legal))

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """V: the eviction steps in order, as reported, else as derived."""
        if self.reports_steps and isinstance(self.outcome, Granted | Rejected):
            return self.outcome.steps
        return self.vanished

    @cached_property
    def stages(self) -> tuple[PoolState, ...]:
        """The states S, S-v1, S-v1v2, ..., S-V; they end before the first illegal step, which leads nowhere."""
        states = [self.boundary]
        for step in self.steps:
            if not is_legal(tree_of(states[-1]), step):
                break
            states.append(after_steps(states[-1], (step,)))
        return tuple(states)

    @property
    def illegal_step(self) -> Step | None:
        """The first step that is not legal at its turn [P9]; rules about V say nothing of such a transition."""
        taken = len(self.stages) - 1
        return self.steps[taken] if taken < len(self.steps) else None

    @cached_property
    def new_pages(self) -> frozenset[tuple[str, VirtualId]]:
        """(member, id) of pages that the outcome says are new."""
        return frozenset(getattr(self.outcome, "pages", ()))

    def moves(self) -> Iterator[tuple[int, VirtualId, PageId, PageId]]:
        """(member index, id, old page, new page) of each page that stayed live under its id and lies elsewhere."""
        for index, (old, new) in enumerate(zip(self.before.members, self.after.members, strict=True)):
            if old.bindings == new.bindings:
                continue
            name, place = self.before.geometry.members[index].name, dict(new.bindings)
            for identifier, page in old.bindings:
                moved_to = place.get(identifier, page)
                if moved_to != page and (name, identifier) not in self.new_pages:
                    yield index, identifier, page, moved_to

    @cached_property
    def past_waits(self) -> PoolState:
        """The state before with the events that were waited for fired."""
        return after_events(self.before, self.waited)


def _vanished(before: PoolState, after: PoolState) -> Iterator[Step]:
    still = cached_pages(after)
    for entry in before.entries:
        positions = positions_of(entry)
        if all(position not in still for position in positions):
            yield Step(kind="leaf", key=entry.key)
            continue
        if entry.swa_ids and not any(still[position][1] for position in positions if position in still):
            yield Step(kind="tombstone", key=entry.key)
        elif entry.state_id is not None and entry.key not in cached_states(after):
            yield Step(kind="state", key=entry.key)


def less(hold: Hold, rest: Hold) -> Hold:
    """What is in `hold` and no longer in `rest`."""
    return Hold(
        name=hold.name,
        ids=tuple(i for i in hold.ids if i not in rest.ids),
        swa_ids=tuple(i for i in hold.swa_ids if i not in rest.swa_ids),
        state_ids=tuple(i for i in hold.state_ids if i not in rest.state_ids),
    )


def positions_of(entry: Entry) -> list[Key]:
    """The prefix that ends at each page of a node, root side first: independent of how nodes are split."""
    return [entry.key[: len(entry.key) - back] for back in range(len(entry.ids) - 1, -1, -1)]


def cached_pages(state: PoolState) -> dict[Key, tuple[VirtualId, bool]]:
    """For each cached page position: its id, and whether it holds an SWA page."""
    pages = {}
    for entry in state.entries:
        swa_ids = set(entry.swa_ids)
        for position, identifier in zip(positions_of(entry), entry.ids, strict=True):
            pages[position] = (identifier, identifier in swa_ids)
    return pages


def cached_states(state: PoolState) -> dict[Key, VirtualId]:
    """For each prefix with a cached state: its id."""
    return {entry.key: entry.state_id for entry in state.entries if entry.state_id is not None}


def hold_of(state: PoolState, name: str) -> Hold:
    """What the running request of that name holds; nothing where there is none."""
    return next((hold for hold in state.holds if hold.name == name), Hold(name=name))


def owners(state: PoolState) -> list[Hold]:
    """Everything that owns ids: cached nodes, running requests, the open group."""
    cached = [
        Hold(
            name="",
            ids=entry.ids,
            swa_ids=entry.swa_ids,
            state_ids=() if entry.state_id is None else (entry.state_id,),
        )
        for entry in state.entries
    ]
    return [*cached, *state.holds, state.queued]
