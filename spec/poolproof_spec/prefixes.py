"""[G4-G6]: what a prefix cache owes: prefixes that can be used, locks as held, recency as used (docs/spec.md#contract).

Each function takes a transition and returns None where the rule holds or does not apply, else one line that says what
was found. All of it is told by positions, the prefix that ends at each cached page, so that it does not matter how
nodes are split.
"""

from itertools import pairwise

from poolproof_spec.geometry import Geometry
from poolproof_spec.operation import Insert, LockPrefix, Match, Unlock, UnlockWindow
from poolproof_spec.outcome import Done
from poolproof_spec.state import PoolState
from poolproof_spec.steps import Key
from poolproof_spec.transition import Transition, cached_pages, cached_states, positions_of
from poolproof_spec.units import pages_for_tokens


def caches_states(geometry: Geometry) -> bool:
    """Whether cached prefixes have states: a prefix ends anywhere in a page of several tokens, a state does not."""
    return geometry.has_role("state") and geometry.page_tokens == 1


def window_pages(geometry: Geometry) -> int:
    """Pages that cover the sliding window; 0 where the chain has none."""
    return pages_for_tokens(geometry.window_tokens, geometry.page_tokens)


def usable_pages(state: PoolState, key: Key, with_state: bool) -> int:
    """Pages of the longest usable prefix of `key`: FULL throughout, SWA over the last window, a state where asked."""
    pages, states, window = cached_pages(state), cached_states(state), window_pages(state.geometry)
    has_swa, usable, covered = state.geometry.has_role("swa"), 0, 0
    for length in range(1, len(key) + 1):
        found = pages.get(key[:length])
        if found is None:
            break
        covered = covered + 1 if found[1] else 0
        if (not has_swa or covered >= min(window, length)) and (not with_state or key[:length] in states):
            usable = length
    return usable


def match_usable(t: Transition) -> str | None:
    """[G4] A match and a lock find the longest usable prefix."""
    if not isinstance(t.operation, Match | LockPrefix) or not isinstance(t.outcome, Done):
        return None
    usable = usable_pages(t.before, t.operation.key, caches_states(t.before.geometry))
    found = t.outcome.matched_pages
    return f"found {found} pages, {usable} can be used" if found is not None and found != usable else None


def handles_exact(t: Transition) -> str | None:
    """[G5] A lock handle holds what was found until it is given back, and what it holds is locked, nothing else."""
    return _handles_as_asked(t) or _locked_as_held(t.after)


def _handles_as_asked(t: Transition) -> str | None:
    before, after = ({lock.name: lock for lock in state.locks} for state in (t.before, t.after))
    if isinstance(t.outcome, Done):
        match t.operation:
            case LockPrefix(name=name, key=key):
                new, found = after.pop(name, None), t.outcome.matched_pages
                right = not found if new is None else new.key == key[:found] and not new.window_released
                if not right:
                    return f"lock {name} found {found} pages, and holds {new}"
            case Unlock(name=name):
                before.pop(name, None)
            case UnlockWindow(name=name):
                old, new = before.pop(name, None), after.pop(name, None)
                if old is None or new is None or new.key != old.key or not new.window_released:
                    return f"lock {name} gave its window back, and holds {new}"
    odd = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    return f"lock handles {odd} changed" if odd else None


def _locked_as_held(state: PoolState) -> str | None:
    """A component is locked iff a handle holds it: FULL the whole path, SWA the last window, a state the end."""
    window, has_swa = window_pages(state.geometry), state.geometry.has_role("swa")
    with_states = caches_states(state.geometry)
    for entry in state.entries:
        length = len(entry.key)
        above = [lock for lock in state.locks if lock.key[:length] == entry.key]
        still = [lock for lock in above if not lock.window_released]
        for what, count, holders in (
            ("FULL", entry.full_locks, above),
            ("SWA", entry.swa_locks, [lock for lock in still if has_swa and length > len(lock.key) - window]),
            ("state", entry.state_locks, [lock for lock in still if with_states and lock.key == entry.key]),
        ):
            if bool(count) != bool(holders):
                names = [lock.name for lock in holders]
                return f"entry {list(entry.key)}: {what} has {count} locks, handles {names} hold it"
    ends = {entry.key for entry in state.entries}
    lost = [lock for lock in state.locks if lock.key not in ends]
    return f"lock {lost[0].name} holds {list(lost[0].key)}, which is not cached" if lost else None


def recency_exact(t: Transition) -> str | None:
    """[G6] A match, a lock and an insert make the prefix that they found the newest; nothing else changes the order."""
    used: Key = ()
    if isinstance(t.outcome, Done):
        match t.operation:
            case Match(key=key) | LockPrefix(key=key):
                used = key[: t.outcome.matched_pages or 0]
            case Insert(key=key):
                used = key
    path = {used[:length] for length in range(1, len(used) + 1)}
    before, after = _ages(t.before), _ages(t.after)
    others = sorted((before[position], position) for position in (before.keys() & after.keys()) - path)
    for (age, one), (next_age, other) in pairwise(others):
        if (age < next_age) != (after[one] < after[other]) or (age == next_age) != (after[one] == after[other]):
            return f"{list(one)} and {list(other)} changed their order of recency"
    newest = max((after[position] for _, position in others), default=-1)
    stale = sorted(position for position in path if after.get(position, newest + 1) <= newest)
    return f"{list(stale[0])} was used, and is not the newest" if stale else None


def _ages(state: PoolState) -> dict[Key, int]:
    """How recently each position was used."""
    return {position: entry.last_use for entry in state.entries for position in positions_of(entry)}
