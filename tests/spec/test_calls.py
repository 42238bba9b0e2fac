import pytest
from msgspec.structs import replace

from poolproof_spec import operation as op
from poolproof_spec.calls import is_good_call, names_exist, sizes_make_sense
from poolproof_spec.geometry import layout
from poolproof_spec.state import Flight, Lock
from poolproof_spec.units import LARGEST_QUANTITY, TokenCount

from .builders import alloc, entry, hold, ids, key, pool, swa2, tri


def tokens(*lengths: int) -> tuple[TokenCount, ...]:
    return tuple(TokenCount(length) for length in lengths)


def extend(prefix_lens: tuple[TokenCount, ...], seq_lens: tuple[TokenCount, ...]) -> op.Extend:
    return op.Extend(name="r", prefix_lens=prefix_lens, seq_lens=seq_lens)


def tail(prefix: int, seq: int, length: int) -> op.ExtendTail:
    return op.ExtendTail(name="r", prefix_len=TokenCount(prefix), seq_len=TokenCount(seq), tail=TokenCount(length))


@pytest.mark.parametrize(
    ("operation", "sensible"),
    [
        (alloc(0), True),
        (alloc(-1), False),
        (alloc(LARGEST_QUANTITY), True),
        (alloc(LARGEST_QUANTITY + 1), False),
        (op.AllocStates(name="r", count=0), True),
        (op.AllocStates(name="r", count=-1), False),
        (op.Decode(name="r", seq_lens=()), True),
        (op.Decode(name="r", seq_lens=tokens(1)), True),
        (op.Decode(name="r", seq_lens=tokens(4, 0)), False),
        (extend(tokens(1, 2), tokens(1, 5)), True),
        (extend(tokens(2), tokens(1)), False),
        (extend(tokens(-1), tokens(1)), False),
        (extend(tokens(), tokens(1)), False),
        (tail(1, 1, 0), True),
        (tail(2, 1, 0), False),
        (tail(1, 2, -1), False),
        (op.Insert(key=()), False),
        (op.Match(key=()), False),
        (op.LockPrefix(name="x", key=()), False),
        (op.Insert(key=key(1)), True),
    ],
)
def test_sizes(operation: op.AnyOperation, sensible: bool) -> None:
    assert sizes_make_sense(operation) == sensible
    assert is_good_call(pool(swa2(4)), operation) == sensible


STATE = replace(
    pool(
        swa2(8),
        entry(key(1), [1]),
        holds=[hold("r", [2])],
        flights=[Flight(event="e", reads=(("FULL", ids(2)[0]),))],
        pending={"FULL": {4: "f"}},
    ),
    locks=(Lock(name="x", key=key(1)),),
)
GROUPED = pool(swa2(4), group_open=True)


@pytest.mark.parametrize(
    ("operation", "known"),
    [
        (op.Free(name="r"), True),
        (op.Free(name="s"), False),
        (op.FreeWindow(name="s"), False),
        (op.Recover(name="s"), False),
        (op.Unlock(name="x"), True),
        (op.Unlock(name="y"), False),
        (op.UnlockWindow(name="y"), False),
        (op.LockPrefix(name="x", key=key(1)), False),
        (op.LockPrefix(name="y", key=key(7)), True),
        (op.Launch(event="g", writes=("r",)), True),
        (op.Launch(event="g", writes=("r", "s")), False),
        (op.Launch(event="e"), False),
        (op.Launch(event="f"), False),
        (op.Fire(event="e"), True),
        (op.Fire(event="f"), True),
        (op.Fire(event="g"), False),
        (op.GroupBegin(), True),
        (op.GroupEnd(), False),
        (op.Query(), True),
        (op.Insert(key=key(1), state=True), False),
    ],
)
def test_names(operation: op.AnyOperation, known: bool) -> None:
    assert names_exist(STATE, operation) == known
    assert is_good_call(STATE, operation) == known


def test_a_group_is_opened_once() -> None:
    assert not names_exist(GROUPED, op.GroupBegin())
    assert names_exist(GROUPED, op.GroupEnd())


def test_states_are_cached_where_a_page_is_one_token() -> None:
    insert = op.Insert(key=key(1), state=True)
    assert names_exist(pool(tri()), insert)
    assert not names_exist(pool(layout("tri", 12, page_tokens=2, STATE=1, SWA=1, FULL=1)), insert)
