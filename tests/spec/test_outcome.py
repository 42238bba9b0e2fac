from typing import get_args

import msgspec

from poolproof_spec.outcome import AnyOutcome, Blocked, Granted, Impossible, Rejected

from .builders import ids, step


def test_tags_are_unique() -> None:
    tags = [kind.__struct_config__.tag for kind in get_args(AnyOutcome)]
    assert tags == ["granted", "rejected", "done", "answer", "refused", "crashed", "unsupported"]


def test_outcomes_survive_json() -> None:
    for outcome in (
        Granted(steps=(step("leaf", 1, 2),), pages=(("FULL", ids(3)[0]),), waited=("e",), compactions=(("FULL", 1),)),
        Rejected(reason=Impossible(bound="bytes", where="FULL", needed=9, available=8), walks=0),
        Rejected(reason=Blocked(by=("events", "locks"))),
        Rejected(),
    ):
        assert msgspec.json.decode(msgspec.json.encode(outcome), type=AnyOutcome) == outcome
