"""Which calls are good in a state: a good one is answered, a bad one is refused and changes nothing [G2]."""

from poolproof_spec import operation as op
from poolproof_spec.state import PoolState
from poolproof_spec.units import LARGEST_QUANTITY
from poolproof_spec.verdict import unfired_events


def is_good_call(state: PoolState, operation: op.AnyOperation) -> bool:
    """Whether sizes make sense, and everything that is named exists, or does not exist yet where it is made."""
    return sizes_make_sense(operation) and names_exist(state, operation)


def sizes_make_sense(operation: op.AnyOperation) -> bool:
    """No negative or absurd size, no empty prefix, no request that shrinks, lengths in pairs."""
    sizes: tuple[int, ...] = ()
    growth: tuple[tuple[int, int], ...] = ()
    match operation:
        case op.Alloc(tokens=tokens):
            sizes = (tokens,)
        case op.AllocStates(count=count):
            sizes = (count,)
        case op.Extend(prefix_lens=prefix_lens, seq_lens=seq_lens):
            if len(prefix_lens) != len(seq_lens):
                return False
            sizes, growth = (*prefix_lens, *seq_lens), tuple(zip(prefix_lens, seq_lens, strict=True))
        case op.Decode(seq_lens=seq_lens):
            sizes = tuple(length - 1 for length in seq_lens)
        case op.ExtendTail(prefix_len=prefix_len, seq_len=seq_len, tail=tail):
            sizes, growth = (prefix_len, seq_len, tail), ((prefix_len, seq_len),)
        case op.Insert(key=key) | op.Match(key=key) | op.LockPrefix(key=key):
            return bool(key)
    return all(0 <= size <= LARGEST_QUANTITY for size in sizes) and all(first <= last for first, last in growth)


def names_exist(state: PoolState, operation: op.AnyOperation) -> bool:
    """The requests, locks and events that the call names; a cached state only where the chain caches states."""
    holds, locks = {hold.name for hold in state.holds}, {lock.name for lock in state.locks}
    match operation:
        case op.Free(name=name) | op.FreeWindow(name=name) | op.Recover(name=name):
            return name in holds
        case op.Unlock(name=name) | op.UnlockWindow(name=name):
            return name in locks
        case op.LockPrefix(name=name):
            return name not in locks
        case op.Launch(event=event, writes=writes):
            return event not in unfired_events(state) and holds >= set(writes)
        case op.Fire(event=event):
            return event in unfired_events(state)
        case op.GroupBegin():
            return not state.group_open
        case op.GroupEnd():
            return state.group_open
        case op.Insert(state=with_state):
            return not with_state or (state.geometry.has_role("state") and state.geometry.page_tokens == 1)
    return True
