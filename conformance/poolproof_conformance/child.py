"""ChildAdapter: a target that runs as a child process, in any language, and may hang, die or talk nonsense.

Whatever goes wrong is a TargetFailureError with the reason: the verdict of that history is `unknown`, never a pass.
The process is then killed, and the next `build` starts a fresh one.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from poolproof_conformance.adapter import Description, UnsupportedGeometryError
from poolproof_conformance.child_process import ChildFailureError, ChildProcess
from poolproof_conformance.child_protocol import (
    PROTOCOL,
    AnyRequest,
    Apply,
    ApplyAndObserve,
    Build,
    Describe,
    Observe,
    Reply,
    Stamp,
)
from poolproof_spec.geometry import Geometry
from poolproof_spec.operation import AnyOperation, DemandOperation, Insert
from poolproof_spec.outcome import AnyOutcome
from poolproof_spec.state import PoolState
from poolproof_spec.units import VirtualId

REQUEST_TIMEOUT_S = 30.0
"""Longest wait for one answer, in seconds."""
START_TIMEOUT_S = 120.0
"""Longest wait for the first answer of a process, in seconds: it may have to import an engine."""
LINE_LIMIT_BYTES = 32 * 2**20
"""Longest line that is read from a child."""


class TargetFailureError(Exception):
    """The target failed in a way that is no answer: a time-out, a dead process, garbage. Its verdict is `unknown`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        """What happened, and the end of what the target wrote to stderr."""


class ChildAdapter:
    """An Adapter over a child process. Started at the first request; `close` it, or use it in a `with`."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        request_timeout_s: float = REQUEST_TIMEOUT_S,
        start_timeout_s: float = START_TIMEOUT_S,
        line_limit_bytes: int = LINE_LIMIT_BYTES,
    ) -> None:
        self._command = tuple(command)
        self._env = env
        self._cwd = cwd
        self._request_timeout_s = request_timeout_s
        self._start_timeout_s = start_timeout_s
        self._line_limit_bytes = line_limit_bytes
        self._process: ChildProcess | None = None
        self._sequence = 0
        self._description: Description | None = None
        self._built = False
        self._writes: list[Stamp] = []
        self._state: PoolState | None = None
        self._decoder = msgspec.json.Decoder(Reply)
        self._encoder = msgspec.json.Encoder()

    def describe(self) -> Description:
        """Who the child is; asked once."""
        if self._description is None:
            self._start()
        assert self._description is not None
        return self._description

    def build(self, geometry: Geometry) -> None:
        """Start from an empty pool, in a fresh process if the last one failed."""
        if self._process is None:
            self._start()
        self._writes.clear()
        self._state = None
        self._built = False
        reply = self._ask(Build(seq=self._next(), geometry=geometry))
        if reply.built is None:
            raise self._failure("answered `build` without `built`")
        if not reply.built:
            raise UnsupportedGeometryError(reply.unsupported or "the target gave no reason")
        self._built = True

    def apply(self, operation: AnyOperation) -> AnyOutcome:
        """Carry one operation out.

        What allocates is followed by writes, so its state is asked for later; the rest tells its state at once.
        """
        self._must_be_built()
        writes = self._take_writes()
        if isinstance(operation, DemandOperation | Insert):
            reply = self._ask(Apply(seq=self._next(), writes=writes, operation=operation))
        else:
            reply = self._ask(ApplyAndObserve(seq=self._next(), writes=writes, operation=operation))
            self._state = reply.state
        if reply.outcome is None:
            raise self._failure("answered an operation without an `outcome`")
        return reply.outcome

    def write(self, member: str, identifier: VirtualId, stamp: int) -> None:
        """Kept until the next request, which carries it."""
        self._must_be_built()
        self._state = None
        self._writes.append((member, identifier, stamp))

    def observe(self) -> PoolState:
        """The state that the last `step` told, if nothing was written since; else a request."""
        self._must_be_built()
        if self._state is None:
            self._state = self._ask(Observe(seq=self._next(), writes=self._take_writes())).state
        if self._state is None:
            raise self._failure("told no `state`")
        return self._state

    def close(self) -> None:
        """End the process; the adapter may be used again afterwards."""
        if self._process is not None:
            self._process.kill()
        self._process = None
        self._built = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self) -> None:
        self.close()
        self._sequence = 0
        try:
            self._process = ChildProcess(self._command, env=self._env, cwd=self._cwd, line_limit=self._line_limit_bytes)
        except ChildFailureError as error:
            raise self._failure(str(error)) from error
        reply = self._ask(Describe(seq=self._next(), protocol=PROTOCOL), self._start_timeout_s)
        if reply.protocol != PROTOCOL:
            raise self._failure(f"speaks protocol {reply.protocol}, this poolproof speaks {PROTOCOL}")
        if reply.description is None:
            raise self._failure("answered `describe` without a `description`")
        self._description = reply.description

    def _ask(self, request: AnyRequest, timeout_s: float | None = None) -> Reply:
        assert self._process is not None
        try:
            line = self._process.exchange(self._encoder.encode(request), timeout_s or self._request_timeout_s)
        except ChildFailureError as error:
            raise self._failure(str(error)) from error
        except BaseException:
            # Interrupted between question and answer: the next answer would belong to this question.
            self.close()
            raise
        try:
            reply = self._decoder.decode(line)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise self._failure(f"answered what is no reply: {error}: {line[:120]!r}") from error
        if reply.error is not None:
            raise self._failure(f"reported that it cannot go on: {reply.error}")
        if reply.seq != request.seq:
            raise self._failure(f"answered request {reply.seq}, asked was {request.seq}")
        return reply

    def _failure(self, what: str) -> TargetFailureError:
        """End the process and say why; the caller raises it."""
        said = self._process.last_words() if self._process is not None else ""
        self.close()
        reason = f"{' '.join(self._command)}: {what}"
        return TargetFailureError(f"{reason}\nits stderr ended with:\n{said}" if said else reason)

    def _must_be_built(self) -> None:
        if not self._built:
            raise TargetFailureError("no pool: the target was not built, or failed since; build it again")

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence

    def _take_writes(self) -> tuple[Stamp, ...]:
        writes = tuple(self._writes)
        self._writes.clear()
        self._state = None
        return writes
