"""The exceptions file: one class for each refusal, all of them in its map."""

import inspect

from poolproof_reference import errors
from poolproof_reference.errors import RefusedError

REFUSALS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind is not RefusedError]


def test_every_refusal_is_a_refused_error() -> None:
    assert len(REFUSALS) == 8
    assert all(issubclass(kind, RefusedError) for kind in REFUSALS)


def test_no_refusal_is_a_kind_of_another() -> None:
    assert all(kind.__bases__ == (RefusedError,) for kind in REFUSALS)


def test_the_map_names_each_refusal_once() -> None:
    named = [line.split()[0] for line in str(errors.__doc__).splitlines() if line.startswith("    ")]
    assert sorted(named) == sorted(kind.__name__ for kind in REFUSALS)


def test_every_refusal_says_what_it_means() -> None:
    assert all(str(kind.__doc__).endswith(".") for kind in REFUSALS)
