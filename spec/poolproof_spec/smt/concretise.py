"""From the solver's numbers to a geometry and a history that can be replayed anywhere."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from poolproof_spec import operation as op
from poolproof_spec.geometry import Geometry, derive
from poolproof_spec.smt.histories import (
    CLOSE_GATE,
    FIRE,
    FREE,
    FREE_WINDOW,
    HOLD,
    INSERT,
    LAUNCH,
    LOCK,
    STATES,
    UNLOCK_WINDOW,
    Script,
    Shape,
)
from poolproof_spec.units import PageKey, TokenCount

LOCK_NAME, EVENT_NAME, DEMAND_NAME = "x", "e", "demand"


class Concrete(NamedTuple):
    """A history that any target takes."""

    geometry: Geometry
    operations: tuple[op.AnyOperation, ...]
    """The last one is the demand."""


def script_of(numbers: Mapping[str, int], length: int) -> Script:
    """The script that a model stands for; a constant that the model leaves out may be anything."""
    return Script(
        kinds=[numbers.get(f"kind{i}", 0) for i in range(length)],
        sizes=[numbers.get(f"size{i}", 0) for i in range(length)],
        refs=[numbers.get(f"ref{i}", 0) for i in range(length)],
        token_pages=numbers.get("token_pages", 0),
        states=numbers.get("states", 0),
        window=numbers.get("window", 1),
        size=numbers.get("size", 0),
        extra=numbers.get("extra", 0),
    )


def concretise(shape: Shape, script: Script) -> Concrete:
    """Prefixes get fresh page keys, so that they share none."""
    return Concrete(geometry_of(shape, script), (*_setup(shape, script), _demand(shape, script)))


def geometry_of(shape: Shape, script: Script) -> Geometry:
    """total_bytes = token pages of every token member + states, as serving engines size their arenas."""
    sizes = list(zip(shape.page_bytes, shape.chain, strict=True))
    tokens = sum(size for size, (_, role, _) in sizes if role != "state")
    states = sum(size for size, (_, role, _) in sizes if role == "state")
    return derive(
        script.token_pages * tokens + script.states * states,
        [(name, role, size, kind) for size, (name, role, kind) in sizes],
        page_tokens=shape.page_tokens,
        window_tokens=script.window * shape.page_tokens,
    )


def _setup(shape: Shape, script: Script) -> Iterator[op.AnyOperation]:
    """The operations before the demand; each is named by its place, a prefix by its pages."""
    prefixes: dict[int, tuple[PageKey, ...]] = {}
    used = 0
    for i, (kind, size, ref) in enumerate(zip(script.kinds, script.sizes, script.refs, strict=True)):
        match kind:
            case _ if kind == INSERT:
                prefixes[i] = tuple(PageKey(used + page) for page in range(1, size + 1))
                used += size
                yield op.Insert(key=prefixes[i], state=shape.caches_states)
            case _ if kind == HOLD:
                yield op.Alloc(name=request_name(i), tokens=TokenCount(size * shape.page_tokens))
            case _ if kind == STATES:
                yield op.AllocStates(name=request_name(i), count=size)
            case _ if kind == FREE:
                yield op.Free(name=request_name(ref))
            case _ if kind == FREE_WINDOW:
                yield op.FreeWindow(name=request_name(ref))
            case _ if kind == LOCK:
                yield op.LockPrefix(name=LOCK_NAME, key=prefixes[ref])
            case _ if kind == UNLOCK_WINDOW:
                yield op.UnlockWindow(name=LOCK_NAME)
            case _ if kind == CLOSE_GATE:
                yield op.Gate(open=False)
            case _ if kind == LAUNCH:
                yield op.Launch(event=EVENT_NAME)
            case _ if kind == FIRE:
                yield op.Fire(event=EVENT_NAME)


def request_name(index: int) -> str:
    """Of the running request that an operation makes: a, b, c, ..."""
    return chr(ord("a") + index)


def _demand(shape: Shape, script: Script) -> op.AnyOperation:
    tokens, size, extra = shape.page_tokens, script.size, script.extra
    # Where nothing is in flight there is nothing to wait for; then the plainer call means the same.
    may_wait = not shape.pins or LAUNCH not in script.kinds
    match shape.demand:
        case "tokens":
            return op.Alloc(name=DEMAND_NAME, tokens=TokenCount(size * tokens), may_wait=may_wait)
        case "decode":
            lengths = [tokens + 1] * size + [tokens] * extra
            return op.Decode(name=DEMAND_NAME, seq_lens=tuple(map(TokenCount, lengths)), may_wait=may_wait)
        case "tail" if extra == size:
            return op.Alloc(name=DEMAND_NAME, tokens=TokenCount(size * tokens), may_wait=may_wait)
        case "tail":
            lengths = [0, size * tokens, extra * tokens]
            prefix, seq, tail = map(TokenCount, lengths)
            return op.ExtendTail(name=DEMAND_NAME, prefix_len=prefix, seq_len=seq, tail=tail, may_wait=may_wait)
        case "states":
            return op.AllocStates(name=DEMAND_NAME, count=size, may_wait=may_wait)
