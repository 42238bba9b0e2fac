"""Requests and answers as sentences: what is asked for, with its page counts, and what came of it."""

from poolproof_conformance.reporting.owners import key_words
from poolproof_conformance.wording import plural
from poolproof_spec import operation as op
from poolproof_spec.demand import Demand, demand_of
from poolproof_spec.outcome import (
    Answer,
    AnyOutcome,
    Blocked,
    Crashed,
    Done,
    Granted,
    Impossible,
    Refused,
    Rejected,
    Unsupported,
)
from poolproof_spec.state import PoolState


def request_words(state: PoolState, operation: op.AnyOperation, good: bool) -> str:
    """What is asked for, in a sentence or two; `good` tells whether the call makes sense in `state`."""
    if not good:
        return f"A bad call ({op.operation_name(operation)}): it is to be refused, and to change nothing."
    demand = demand_of(state, operation)
    if demand is not None:
        return f"{_demand_subject(operation)}: {_pages(demand)}. {_patience(demand)}"
    return _plain_words(operation)


def _demand_subject(operation: op.AnyOperation) -> str:
    match operation:
        case op.Alloc(name=name, tokens=tokens):
            return f"Request {name} demands {plural(tokens, 'new token')}"
        case op.Extend(name=name, prefix_lens=prefix, seq_lens=seq):
            return f"Prefill batch {name} grows from {_list(prefix)} to {_list(seq)} tokens"
        case op.Decode(name=name, seq_lens=seq):
            return f"Batch {name} decodes one token each, to {_list(seq)} tokens"
        case op.ExtendTail(name=name, prefix_len=prefix, seq_len=seq, tail=tail):
            return f"Request {name} grows from {prefix} to {seq} tokens, of which the last {tail} need SWA pages"
        case op.AllocStates(name=name, count=count):
            return f"Request {name} demands {plural(count, 'state')}"
        case op.Recover(name=name):
            return f"Request {name} wants SWA pages again for those of its tokens that have none"
    return f"{op.operation_name(operation)}"


def _pages(demand: Demand) -> str:
    parts = [(demand.full_pages, "FULL page"), (demand.swa_pages, "SWA page"), (demand.state_pages, "state page")]
    wanted = [plural(count, what) for count, what in parts if count]
    return " and ".join(wanted) or "no page at all"


def _patience(demand: Demand) -> str:
    return "It may wait for readers in flight." if demand.may_wait else "It may not wait for anybody."


def _plain_words(operation: op.AnyOperation) -> str:
    match operation:
        case op.Insert(key=key, state=state):
            return f"Cache the prefix {key_words(key)}{', with one state at its end' if state else ''}; evict nothing."
        case op.Match(key=key):
            return f"Look up the longest usable prefix of {key_words(key)}; what is found becomes the newest."
        case op.LockPrefix(name=name, key=key):
            return f"Lock what is cached of {key_words(key)}, as {name}."
        case op.Unlock(name=name):
            return f"Give the lock {name} back."
        case op.UnlockWindow(name=name):
            return f"Give the window and state of the lock {name} back early; FULL stays locked."
        case op.Free(name=name):
            return f"Request {name} ends: all that it holds is freed, or queued while a group is open."
        case op.FreeWindow(name=name):
            return f"The SWA pages of request {name} have left the window: free them."
        case op.GroupBegin():
            return "Collect frees from now on."
        case op.GroupEnd():
            return "Carry the collected frees out."
        case op.Gate(open=is_open):
            return "Open every move gate." if is_open else "Close every move gate: no page may move."
        case op.Launch(event=event, writes=writes):
            also = f" and writes those of {', '.join(writes)}" if writes else ""
            return f"A forward goes in flight: it reads every live page{also}, until {event} fires."
        case op.Fire(event=event):
            return f"The forward ended: {event} fires."
        case op.Compact():
            return "Housekeeping: close holes, without waiting for anybody."
        case op.Query():
            return "Ask how many token pages could be had without evicting; nothing may change."
        case op.Capacity():
            return "Try how many token pages can really be had without evicting, then one more."
    return f"{op.operation_name(operation)}."


def outcome_word(outcome: AnyOutcome | None) -> str:
    """The kind of answer in one word."""
    return "skipped" if outcome is None else str(outcome.__struct_config__.tag)


def outcome_words(outcome: AnyOutcome | None) -> str:
    """What the kind of answer leaves open; empty where nothing is."""
    match outcome:
        case Rejected(reason=Impossible() as reason):
            unit = "ids" if reason.bound == "ids" else "pages"
            return f"impossible: {reason.where} would need {reason.needed} of {reason.available} {unit}"
        case Rejected(reason=Blocked(by=by)):
            return f"blocked by {' and '.join(by)}"
        case Rejected():
            return "no reason given"
        case Granted(waited=waited) if waited:
            return f"after waiting for {', '.join(waited)}"
        case Done(matched_pages=int(matched)):
            return f"{plural(matched, 'page')} found"
        case Answer(token_pages=pages, exact_granted=bool(exact), one_more_granted=more):
            tried = "given" if exact else "refused"
            return (
                f"{plural(pages, 'token page')} available; as many {tried}, one more {'given' if more else 'refused'}"
            )
        case Answer(token_pages=pages):
            return f"{plural(pages, 'token page')} available"
        case Refused(error=error, message=message):
            return f"{error}: {message}"
        case Crashed(reason=reason):
            return reason
        case Unsupported(what=what):
            return what
        case None:
            return "what it names does not exist in this target"
    return ""


def _list(lengths: tuple[int, ...]) -> str:
    return ", ".join(str(length) for length in lengths)
