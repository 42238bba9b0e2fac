"""A time limit for one history, whatever the target is: a child process that hangs, or a loop in this one."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from poolproof_conformance.child import TargetFailureError


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raises TargetFailureError in the middle of whatever runs after that time.

    Needs the main thread of a process. Elsewhere, and inside a long call into C, the campaign's own watch over its
    workers has to do.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    armed = True

    def ring(_number: int, _frame: FrameType | None) -> None:
        if armed:
            raise TargetFailureError(f"the history took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
