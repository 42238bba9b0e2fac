"""A target in a child process: a correct one is heard, and each way of going wrong ends in a reason, in time."""

import fcntl
import sys
import time
from pathlib import Path

import pytest

from poolproof_conformance.adapter import UnsupportedGeometryError
from poolproof_conformance.child import ChildAdapter, TargetFailureError
from poolproof_spec.geometry import layout
from poolproof_spec.operation import Alloc, Query
from poolproof_spec.outcome import Refused

CHILDREN = Path(__file__).parent / "children"
GEOMETRY = layout("swa2", 640, FULL=32, SWA=32)
ALLOC = Alloc(name="a", tokens=1)

FAULTS = {
    "hangs": "gave no answer within 1 s",
    "exits": "ended with exit code 3",
    "is killed": "was ended by SIGKILL",
    "prints garbage": "answered what is no reply",
    "answers what is no reply": r"\$.outcome.steps",
    "answers deep nesting": "answered what is no reply",
    "answers late": "gave no answer within 1 s",
    "answers byte by byte": "gave no answer within 1 s",
    "floods": "answered a line of more than 1000000 bytes",
    "wrong sequence": "answered request 2, asked was 3",
    "no outcome": "without an `outcome`",
    "reports an error": "the engine's own check failed",
    "closes stdout": "closed its stdout",
}
"""How a child goes wrong at its first operation, and the reason that must be told."""


def child(*arguments: str, **settings: float) -> ChildAdapter:
    limits = {"request_timeout_s": 1.0, "start_timeout_s": 20.0, "line_limit_bytes": 1_000_000, **settings}
    return ChildAdapter([sys.executable, *arguments], **limits)


def wrong(fault: str, **settings: float) -> ChildAdapter:
    return child(str(CHILDREN / "wrong.py"), fault, **settings)


def test_toy_that_shares_no_code_is_heard() -> None:
    with child(str(CHILDREN / "toy.py")) as toy:
        assert toy.describe().target == "toy"
        toy.build(GEOMETRY)
        assert toy.apply(ALLOC) == Refused(error="ToyError", message="this toy refuses everything")
        toy.write("FULL", 1, 7)
        assert toy.observe().free_token_ids == tuple(range(1, 20))
        assert isinstance(toy.apply(Query()), Refused)
        assert toy.observe().geometry == GEOMETRY


@pytest.mark.parametrize(("fault", "reason"), FAULTS.items(), ids=list(FAULTS))
def test_failure_is_told_in_time_and_the_next_build_starts_afresh(fault: str, reason: str) -> None:
    with wrong(fault) as target:
        target.build(GEOMETRY)
        started = time.monotonic()
        with pytest.raises(TargetFailureError, match=reason):
            target.apply(ALLOC)
        assert time.monotonic() - started < 4
        with pytest.raises(TargetFailureError, match="build it again"):
            target.observe()
        target.build(GEOMETRY)
        assert target.observe().geometry == GEOMETRY


def test_what_the_child_started_is_killed_with_it(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with child(str(CHILDREN / "wrong.py"), "hangs with a helper", str(lock)) as target:
        target.build(GEOMETRY)
        with pytest.raises(TargetFailureError, match="gave no answer"):
            target.apply(ALLOC)
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # would wait for ever if the helper were alive


def test_last_words_are_in_the_reason() -> None:
    with wrong("exits") as target:
        target.build(GEOMETRY)
        with pytest.raises(TargetFailureError, match="engine: out of pages"):
            target.apply(ALLOC)


def test_a_second_answer_is_noticed_at_the_next_request() -> None:
    with wrong("answers twice") as target:
        target.build(GEOMETRY)
        target.apply(ALLOC)
        time.sleep(0.2)
        with pytest.raises(TargetFailureError, match="spoke without being asked|answered request"):
            target.observe()


def test_much_on_stderr_blocks_nobody() -> None:
    with wrong("floods stderr", request_timeout_s=20) as target:
        target.build(GEOMETRY)
        assert isinstance(target.apply(ALLOC), Refused)


def test_start_failures() -> None:
    with pytest.raises(TargetFailureError, match="could not be started"):
        ChildAdapter(["/nonexistent/adapter"]).build(GEOMETRY)
    with pytest.raises(TargetFailureError, match="speaks protocol 99"):
        wrong("speaks another protocol").describe()
    with pytest.raises(TargetFailureError, match="gave no answer within 0.5 s"):
        wrong("hangs at the start", start_timeout_s=0.5).describe()
    with pytest.raises(TargetFailureError, match="ended with exit code 0"):
        child("-c", "pass").describe()


SERVED = """
import sys
from poolproof_conformance.adapter import Description, UnsupportedGeometryError
from poolproof_conformance.child_server import serve_standard_streams
from poolproof_spec.outcome import Done
from poolproof_spec.state import MemberState, PoolState

class Chatty:
    def describe(self):
        return Description(target="chatty")
    def build(self, geometry):
        if geometry.page_tokens > 1:
            raise UnsupportedGeometryError("one token a page")
        self.state = PoolState(geometry=geometry, members=(MemberState(), MemberState()))
        self.stamps = ()
    def apply(self, operation):
        print("an engine prints what it likes")
        if operation.name == "boom":
            raise ValueError("no such page")
        return Done(matched_pages=len(self.stamps))
    def write(self, *stamp):
        self.stamps += (stamp,)
    def observe(self):
        return self.state

serve_standard_streams(Chatty())
"""


def test_served_adapter() -> None:
    with child("-c", SERVED, request_timeout_s=20) as target:
        with pytest.raises(UnsupportedGeometryError, match="one token a page"):
            target.build(layout("swa2", 640, page_tokens=2, FULL=32, SWA=32))
        target.build(GEOMETRY)
        assert target.describe().target == "chatty"
        target.write("FULL", 3, 1)
        target.write("SWA", 3, 1)
        assert target.apply(ALLOC).matched_pages == 2
        crash = target.apply(Alloc(name="boom", tokens=1))
        assert "ValueError: no such page" in crash.reason
        assert target.observe().geometry == GEOMETRY
