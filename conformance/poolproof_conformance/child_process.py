"""One child process that answers lines with lines: every wait has a deadline, every failure a reason.

Knows nothing of what the lines say. The child gets a session, and so a process group, of its own: what is killed.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

STDERR_TAIL_BYTES = 4000
"""How much of the child's last words is kept for a failure's reason."""
READ_BYTES = 1 << 16


class ChildFailureError(Exception):
    """The child is of no more use; the message says what it did, not yet what it said on stderr."""


class ChildProcess:
    """A running child. Not thread safe; one exchange at a time."""

    def __init__(
        self, command: Sequence[str], *, env: Mapping[str, str] | None, cwd: Path | None, line_limit: int
    ) -> None:
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=None if env is None else dict(env),
                cwd=cwd,
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            raise ChildFailureError(f"could not be started: {error}") from error
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._stdin, self._stdout, self._stderr = self._process.stdin, self._process.stdout, self._process.stderr
        self._line_limit = line_limit
        self._received = bytearray()
        self._stderr_tail = bytearray()
        self._selector = selectors.DefaultSelector()
        for stream in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(stream.fileno(), False)
        self._selector.register(self._stdout, selectors.EVENT_READ)
        self._selector.register(self._stderr, selectors.EVENT_READ)

    def exchange(self, line: bytes, timeout_s: float) -> bytes:
        """Send one line, receive one line (both without the newline). Raises ChildFailureError."""
        deadline = time.monotonic() + timeout_s
        self._drain()
        if self._received:
            raise ChildFailureError(f"spoke without being asked: {_shown(self._received)}")
        outgoing = memoryview(line + b"\n")
        self._selector.register(self._stdin, selectors.EVENT_WRITE)
        writing = True
        try:
            while True:
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise ChildFailureError(f"gave no answer within {timeout_s:g} s")
                for key, _ in self._selector.select(remaining):
                    if key.fileobj is self._stdin:
                        outgoing = outgoing[self._send(outgoing) :]
                    else:
                        self._receive(key)
                if writing and not outgoing:
                    self._selector.unregister(self._stdin)
                    writing = False
                if (answer := self._take_line()) is not None:
                    return answer
        finally:
            if writing:
                self._selector.unregister(self._stdin)

    def kill(self) -> None:
        """End the child and whatever it started in its process group; returns when the child is reaped."""
        if self._process.returncode is None:
            # Not reaped yet, so its process id, and the group of that id, cannot be anybody else's.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._selector.close()
        for stream in (self._stdin, self._stdout, self._stderr):
            with contextlib.suppress(OSError):
                stream.close()

    def last_words(self) -> str:
        """The tail of what it wrote to stderr, for a reason."""
        with contextlib.suppress(OSError, ChildFailureError):
            self._drain()
        return self._stderr_tail.decode(errors="replace").strip()

    def _take_line(self) -> bytes | None:
        end = self._received.find(b"\n")
        if end < 0 and len(self._received) <= self._line_limit:
            return None
        if end < 0 or end > self._line_limit:
            raise ChildFailureError(f"answered a line of more than {self._line_limit} bytes")
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line

    def _send(self, data: memoryview) -> int:
        try:
            return os.write(self._stdin.fileno(), data)
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            # What it still said is on its way; the end of its stdout tells the story.
            return len(data)

    def _receive(self, key: selectors.SelectorKey) -> None:
        stream = key.fileobj
        try:
            data = os.read(key.fd, READ_BYTES)
        except BlockingIOError:
            return
        if stream is self._stderr:
            self._stderr_tail = (self._stderr_tail + data)[-STDERR_TAIL_BYTES:]
        else:
            self._received += data
        if not data:
            self._selector.unregister(stream)
            if stream is self._stdout:
                raise ChildFailureError(self._how_it_ended())

    def _drain(self) -> None:
        """Take in what is there now, without waiting; bounded, so that a flood cannot keep it here."""
        for _ in range(64):
            ready = self._selector.select(0)
            if not ready:
                return
            for key, _ in ready:
                self._receive(key)

    def _how_it_ended(self) -> str:
        for _ in range(50):
            ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None:
                if ended.si_code == os.CLD_EXITED:
                    return f"ended with exit code {ended.si_status}"
                return f"was ended by {signal.Signals(ended.si_status).name}"
            time.sleep(0.02)
        return "closed its stdout"


def _shown(data: bytes | bytearray) -> str:
    return repr(bytes(data[:120]))[1:]
