"""An id space against a set: every id is free or has one owner, and what is not held cannot be freed."""

import numpy as np
import pytest

from poolproof_fast.errors import DoubleFreeError, RefusedError, UnknownIdError
from poolproof_fast.ids import CACHED, FREE, HELD, QUEUED, IdSpace


def ids(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int32)


def test_a_random_life_against_a_set() -> None:
    generator, space = np.random.default_rng(5), IdSpace("token", range(3, 40))
    owned: dict[int, int] = {}
    for _ in range(3000):
        owner = int(generator.integers(HELD, QUEUED + 1))
        if generator.random() < 0.5 and space.top:
            taken = space.take(int(generator.integers(1, space.top + 1)), owner)
            assert len(set(taken.tolist())) == len(taken) and not owned.keys() & set(taken.tolist())
            owned |= dict.fromkeys(taken.tolist(), owner)
        elif owned:
            freed = generator.choice(list(owned), int(generator.integers(1, len(owned) + 1)), replace=False)
            space.give_back(freed.astype(np.int32))
            for identifier in freed.tolist():
                del owned[identifier]
        assert set(space.free_ids().tolist()) == set(range(3, 40)) - owned.keys()
        assert space.top == 37 - len(owned)
        assert space.ids_of(owner).tolist() == sorted(i for i, has in owned.items() if has == owner)


def test_only_what_a_request_holds_may_be_freed_and_once() -> None:
    space = IdSpace("token", range(1, 9))
    held, cached = space.take(3), space.take(2, CACHED)
    space.check_held(held)
    space.check_held(held[::-1])
    space.check_held(ids())
    queued = space.take(1, QUEUED)
    free = int(space.free_ids()[0])
    refusals: list[tuple[np.ndarray, type[RefusedError], str]] = [
        (ids(free), UnknownIdError, f"token id {free} is free; expected one that a request holds"),
        (ids(held[0], free), UnknownIdError, "is free"),
        (cached[:1], UnknownIdError, "belongs to the cache"),
        (np.concatenate([held, cached]), UnknownIdError, "belongs to the cache"),
        (queued, UnknownIdError, "was freed into the open group"),
        (ids(-1), UnknownIdError, "token id -1 is no id"),
        (ids(held[0], -1), UnknownIdError, "token id -1 is no id"),
        (ids(0), UnknownIdError, "token id 0 is no id"),
        (ids(99), UnknownIdError, "token id 99 is no id"),
        (ids(held[0], 99), UnknownIdError, "token id 99 is no id"),
        (ids(held[0], held[1], held[0]), DoubleFreeError, f"token id {held[0]} is given twice"),
    ]
    owners = bytes(space.owner)
    for given, error, message in refusals:
        with pytest.raises(error, match=message):
            space.check_held(given)
        assert bytes(space.owner) == owners


def test_what_is_anybodys_is_known() -> None:
    space = IdSpace("token", range(1, 9))
    known = np.concatenate([space.take(2), space.take(1, CACHED), space.take(1, QUEUED)])
    space.check_known(known)
    space.check_known(np.concatenate([known, known]))
    space.check_known(ids())
    for given, message in ((ids(known[0], -1), "-1 is no id"), (ids(9), "9 is no id"), (ids(8), "8 is free")):
        with pytest.raises(UnknownIdError, match=message):
            space.check_known(np.concatenate([known, given]))


def test_a_space_of_no_ids_has_none() -> None:
    space = IdSpace("state", range(0))
    assert (space.size, space.top, len(space.free_ids())) == (0, 0, 0)
    with pytest.raises(UnknownIdError, match="state id 1 is no id"):
        space.check_held(ids(1))


def test_owners_are_told_apart() -> None:
    assert len({FREE, HELD, CACHED, QUEUED}) == 4
