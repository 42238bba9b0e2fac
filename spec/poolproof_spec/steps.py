"""Eviction steps: what each frees, when it is legal, and the default policy order (docs/spec.md#eviction-steps)."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from heapq import heapify, heappop, heappush

from msgspec.structs import replace

from poolproof_spec.outcome import Step
from poolproof_spec.state import Entry, Hold, MemberState, PoolState
from poolproof_spec.units import PageKey, VirtualId

Key = tuple[PageKey, ...]
Tree = dict[Key, Entry]
"""The prefix tree: key of a node to the node."""


def tree_of(state: PoolState) -> Tree:
    """The prefix tree of a state."""
    return {entry.key: entry for entry in state.entries}


def has_children(tree: Tree, key: Key) -> bool:
    """Whether some node hangs directly below `key`."""
    return any(entry.parent_key == key for entry in tree.values())


def freed_by(tree: Tree, step: Step) -> Hold:
    """The ids whose pages the step frees."""
    entry = tree[step.key]
    state_ids = () if entry.state_id is None else (entry.state_id,)
    match step.kind:
        case "leaf":
            return Hold(name="", ids=entry.ids, swa_ids=entry.swa_ids, state_ids=state_ids)
        case "tombstone":
            return Hold(name="", swa_ids=entry.swa_ids, state_ids=state_ids)
        case "state":
            return Hold(name="", state_ids=state_ids)


def is_legal(tree: Tree, step: Step) -> bool:
    """A step is legal iff it frees something, all that it frees is unlocked, and a leaf has no children."""
    entry = tree.get(step.key)
    if entry is None:
        return False
    state_unlocked = entry.state_id is None or entry.state_locks == 0
    match step.kind:
        case "leaf":
            unlocked = entry.full_locks == entry.swa_locks == entry.state_locks == 0
            return unlocked and not has_children(tree, step.key)
        case "tombstone":
            return bool(entry.swa_ids) and entry.swa_locks == 0 and state_unlocked
        case "state":
            return entry.state_id is not None and state_unlocked


def after_step(tree: Tree, step: Step) -> Tree:
    """The tree once the step is taken."""
    entry = tree[step.key]
    rest = {key: other for key, other in tree.items() if key != step.key}
    match step.kind:
        case "leaf":
            return rest
        case "tombstone":
            return {**rest, step.key: replace(entry, swa_ids=(), state_id=None)}
        case "state":
            return {**rest, step.key: replace(entry, state_id=None)}


def age(entry: Entry) -> tuple[int, int, Key]:
    """Sort key: least recently used first, deeper first among equals."""
    return entry.last_use, -len(entry.key), entry.key


def policy_order(tree: Tree, allowed: Collection[Step] | None = None) -> list[Step]:
    """The order in which the default policy would take every legal step (of `allowed`, where given).

    Leaves, least recently used first, a parent following once its children are gone; then tombstones; then states.
    """
    leaves = leaf_order(tree, allowed)
    gone = {step.key for step in leaves}
    rest = sorted((entry for entry in tree.values() if entry.key not in gone), key=age)
    tombstones = _legal_of(tree, [Step(kind="tombstone", key=entry.key) for entry in rest], allowed)
    stripped = {step.key for step in tombstones}
    states = [Step(kind="state", key=entry.key) for entry in rest if entry.key not in stripped]
    return leaves + tombstones + _legal_of(tree, states, allowed)


def _legal_of(tree: Tree, steps: Iterable[Step], allowed: Collection[Step] | None) -> list[Step]:
    return [step for step in steps if (allowed is None or step in allowed) and is_legal(tree, step)]


def leaf_order(tree: Tree, allowed: Collection[Step] | None = None) -> list[Step]:
    """The leaf steps of `policy_order`."""
    children = Counter(entry.parent_key for entry in tree.values())
    order: list[Step] = []

    def may_go(entry: Entry) -> bool:
        unlocked = entry.full_locks == entry.swa_locks == entry.state_locks == 0
        return unlocked and not children[entry.key] and (allowed is None or Step(kind="leaf", key=entry.key) in allowed)

    heap = [age(entry) for entry in tree.values() if may_go(entry)]
    heapify(heap)
    while heap:
        _, _, key = heappop(heap)
        order.append(Step(kind="leaf", key=key))
        parent = tree.get(tree[key].parent_key)
        children[tree[key].parent_key] -= 1
        if parent is not None and may_go(parent):
            heappush(heap, age(parent))
    return order


def _without(member: MemberState, gone: set[VirtualId]) -> MemberState:
    """A member with the pages of some ids no longer live."""
    if not gone:
        return member
    return replace(member, bindings=tuple(b for b in member.bindings if b[0] not in gone), free_pages=None)


def after_free(state: PoolState, freed: Hold) -> PoolState:
    """The state once the ids' pages (of a step, a group, a request) are free; ownership is left to the caller."""
    if not (freed.ids or freed.swa_ids or freed.state_ids):
        return state
    ids_of = {"full": set(freed.ids), "swa": set(freed.swa_ids), "state": set(freed.state_ids)}
    gone = {member.name: ids_of[member.role] for member in state.geometry.members}
    return replace(
        state,
        members=tuple(
            _without(now, gone[member.name]) for member, now in zip(state.geometry.members, state.members, strict=True)
        ),
        free_token_ids=tuple(sorted({*state.free_token_ids, *freed.ids})),
        free_state_ids=tuple(sorted({*state.free_state_ids, *freed.state_ids})),
        payloads=tuple(payload for payload in state.payloads if payload[1] not in gone[payload[0]]),
    )


def after_steps(state: PoolState, steps: Iterable[Step]) -> PoolState:
    """S - V: the state once the steps are taken in order."""
    tree = tree_of(state)
    for step in steps:
        state = after_free(state, freed_by(tree, step))
        tree = after_step(tree, step)
    return replace(state, entries=tuple(tree[key] for key in sorted(tree)))


def after_group(state: PoolState) -> PoolState:
    """The state past a phase boundary: what the open group collected is free, the group stays open [P8]."""
    return replace(after_free(state, state.queued), queued=Hold(name=""))


def spared(steps: Sequence[Step], kept: Step) -> list[Step]:
    """V without one step and without those that depend on it: an ancestor is no leaf while a child stays."""
    if kept.kind != "leaf":
        return [step for step in steps if step != kept]
    return [
        step for step in steps if step != kept and not (step.kind == "leaf" and step.key == kept.key[: len(step.key)])
    ]
