import msgspec
import pytest

from poolproof_spec.state import MemberState, PoolState

from .builders import entry, hold, ids, key, pool, swa2


def test_a_member_tells_its_pages_and_ids() -> None:
    now = MemberState(bindings=((ids(7)[0], 2), (ids(9)[0], 4)), pending=((3, "e"), (3, "f")))  # type: ignore[arg-type]
    assert now.live_pages == {2, 4}
    assert now.live_ids == {7, 9}
    assert now.pending_pages == {3}


def test_a_node_knows_its_parent() -> None:
    assert entry(key(1, 2, 3), [5, 6]).parent_key == key(1)
    assert entry(key(1, 2), [5, 6]).parent_key == ()


def test_a_member_is_found_by_name() -> None:
    state = pool(swa2(4), holds=[hold("r", [1])])
    assert state.member("FULL") == state.members[1]
    with pytest.raises(KeyError, match="no member 'X'"):
        state.member("X")


def test_a_state_is_hashable_and_survives_json() -> None:
    state = pool(swa2(4), entry(key(1), [1]), holds=[hold("r", [2])], group_open=True, pending={"FULL": {2: "e"}})
    again = msgspec.json.decode(msgspec.json.encode(state), type=PoolState)
    assert again == state
    assert hash(again) == hash(state)
