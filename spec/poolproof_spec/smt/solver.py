"""The one module that owns solvers: which, how much of them, what is tried before giving up, and why they gave up.

SmtError                    found and fix, as a command prints them
├── SolverMissingError      not installed
├── SolverVersionError      a version that nothing here was tested with
├── UnknownTheoremError     registry.py
└── ReceiptError            receipt.py
"""

import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from types import TracebackType
from typing import Literal, NamedTuple, Self

import msgspec

from poolproof_spec.smt.worker import Answer, Hello, Request

Name = Literal["z3", "cvc5"]
SOLVERS: tuple[Name, ...] = ("z3", "cvc5")

TESTED: Mapping[Name, tuple[str, str]] = {"z3": ("5.4.1", "5.4.1"), "cvc5": ("1.4.2", "1.4.2")}
"""The lowest and the highest version that the tests have run with."""
INSTALL: Mapping[Name, str] = {
    "z3": "python -m pip install 'z3-solver==5.4.1.0'",
    "cvc5": "python -m pip install 'cvc5==1.4.2'",
}
"""The remedy for a version outside."""
INSTALL_ALL = "python -m pip install 'poolproof[smt]'"

Z3_UNITS, CVC5_UNITS = 40_000_000, 1_000_000
"""Default limits for one attempt, each in its solver's own unit: about ten seconds of a core."""


class Rung(NamedTuple):
    """One attempt of a ladder."""

    name: str
    """A configuration: a key of worker.Z3_RUNGS or CVC5_RUNGS."""
    seed: int


LADDERS: Mapping[Name, tuple[Rung, ...]] = {
    "z3": (Rung("default", 0), Rung("simple", 1), Rung("arith-2", 2), Rung("default", 3)),
    "cvc5": (Rung("default", 0), Rung("no-rewrite", 0), Rung("justification", 0)),
}
"""What is tried in turn, each time from nothing, until one decides."""


class Budget(msgspec.Struct, frozen=True):
    """What one question may cost. Wall clock decides nothing: it only ends a process that hangs."""

    z3_units: int = Z3_UNITS
    """z3's resource units for one attempt (rlimit): the same count on every machine."""
    cvc5_units: int = CVC5_UNITS
    """The same for cvc5, whose unit is another."""
    cpu_s: float = 60.0
    """CPU seconds for all attempts of one question together."""
    memory_bytes: int = 4 << 30
    """Address space of a worker."""
    wall_s: float = 900.0
    """A worker that has not answered by then hangs, and is killed."""

    def units(self, name: Name) -> int:
        """The resource limit for one attempt of a solver."""
        return self.z3_units if name == "z3" else self.cvc5_units


def budget_of(z3_units: int) -> Budget:
    """A budget given in z3's units, cvc5's in proportion."""
    return Budget(z3_units=z3_units, cvc5_units=max(1, z3_units * CVC5_UNITS // Z3_UNITS))


class SmtError(Exception):
    """Something to correct before anything can be proved."""

    def __init__(self, found: str, fix: str) -> None:
        super().__init__(found)
        self.found = found
        """One line: what is wrong, and what was expected."""
        self.fix = fix
        """One line: the next command to type or the thing to change."""


class SolverMissingError(SmtError):
    """A solver that is not installed."""


class SolverVersionError(SmtError):
    """A solver of a version that nothing here was tested with."""


class Attempt(NamedTuple):
    """One rung and what came of it."""

    rung: Rung
    answer: Answer


class Settled(NamedTuple):
    """What one solver made of one question."""

    solver: Name
    version: str
    attempts: tuple[Attempt, ...]

    @property
    def last(self) -> Attempt:
        """The attempt that decided, or the last one that did not."""
        return self.attempts[-1]

    @property
    def answer(self) -> Answer:
        """The last attempt's, with what all attempts together used."""
        used = [attempt.answer for attempt in self.attempts]
        return msgspec.structs.replace(
            used[-1], resource=sum(a.resource for a in used), seconds=sum(a.seconds for a in used)
        )


def require_installed(names: Sequence[Name]) -> None:
    """Raise SolverMissingError before anything imports a solver that is not there."""
    for name in names:
        if find_spec(name) is None:
            raise SolverMissingError(f"{name} is not installed; proofs need it", INSTALL_ALL)


class Solver:
    """One solver in a worker process, which is kept over questions and replaced when it ended. Not thread safe."""

    def __init__(self, name: Name, command: Sequence[str] | None = None) -> None:
        self.name = name
        self._command = command or (sys.executable, "-m", "poolproof_spec.smt.worker", name)
        self._process: subprocess.Popen[bytes] | None = None
        self._version = ""
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def process_id(self) -> int | None:
        """Of the worker, while there is one."""
        return self._process.pid if self._process else None

    def ask(self, text: str, budget: Budget, ladder: Sequence[Rung] | None = None) -> Settled:
        """Climb the ladder until an attempt decides. Raises SolverMissingError, SolverVersionError.

        A worker that ended, or failed, ends the climb: the same question would end the next one too.
        """
        attempts: list[Attempt] = []
        cpu_left = budget.cpu_s
        for rung in ladder or LADDERS[self.name]:
            request = Request(text, *rung, budget.units(self.name), max(cpu_left, 0.1), budget.memory_bytes)
            answer, alive = self._attempt(request, budget.wall_s)
            attempts.append(Attempt(rung, answer))
            cpu_left -= answer.seconds
            if answer.result != "unknown" or not alive or cpu_left <= 0:
                break
        return Settled(self.name, self._version, tuple(attempts))

    def close(self) -> None:
        """End the worker, for good; a question that another thread is asking ends as unknown."""
        self._closed = True
        if self._process is not None:
            self._process.kill()

    def _attempt(self, request: Request, wall_s: float) -> tuple[Answer, bool]:
        """The answer, and whether the worker is still there."""
        if self._process is None or self._process.poll() is not None:
            if self._closed:
                return Answer("unknown", f"{self.name} was closed"), False
            if (failed := self._start(request, wall_s)) is not None:
                return failed, False
        line, hung = self._exchange(msgspec.json.encode(request) + b"\n", wall_s)
        if line.endswith(b"\n") and not hung:
            return msgspec.json.decode(line, type=Answer), True
        return self._ended(hung, request, wall_s), False

    def _start(self, request: Request, wall_s: float) -> Answer | None:
        """Start a worker and check its version; an answer where it was killed before it could say anything."""
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        # A session of its own: an interrupt typed at the terminal is the command's to handle.
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            start_new_session=True,
        )
        line, hung = self._exchange(b"", wall_s)
        if not line.endswith(b"\n"):
            if self._process.wait() < 0:
                return self._ended(hung, request, wall_s)
            raise SolverMissingError(f"{self.name}: its worker did not start: {self._last_words()}", INSTALL_ALL)
        hello = msgspec.json.decode(line, type=Hello)
        if hello.missing:
            raise SolverMissingError(f"{self.name} cannot be imported: {hello.missing}", INSTALL_ALL)
        check_version(self.name, hello.version)
        self._version = hello.version
        if self._closed:  # While it started.
            self._process.kill()
        return None

    def _exchange(self, line: bytes, wall_s: float) -> tuple[bytes, bool]:
        """Write, read one line; empty or partial when the worker ended. Second: whether it hung and was killed."""
        process, hung = self._process, threading.Event()
        assert process is not None and process.stdin is not None and process.stdout is not None

        def kill() -> None:
            hung.set()
            process.kill()

        guard = threading.Timer(wall_s, kill)
        guard.daemon = True
        guard.start()
        try:
            process.stdin.write(line)
            process.stdin.flush()
            return process.stdout.readline(), hung.is_set()
        except BrokenPipeError:
            return b"", hung.is_set()
        finally:
            guard.cancel()

    def _ended(self, hung: bool, request: Request, wall_s: float) -> Answer:
        """Reap the worker, and say how it ended."""
        assert self._process is not None
        code = self._process.wait()
        self._process = None
        if hung:
            return Answer("timeout", f"{self.name} hung: no answer in {wall_s:g} s, killed")
        if code == -signal.SIGXCPU:
            return Answer("timeout", f"{request.cpu_s:.3g} CPU seconds spent", seconds=request.cpu_s)
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}: {self._last_words()}"
        return Answer("unknown", f"the {self.name} process ended {how}")

    def _last_words(self) -> str:
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else "it said nothing"


def check_version(name: Name, version: str) -> None:
    """Raise SolverVersionError outside TESTED. Only the first three numbers count."""
    low, high = TESTED[name]
    if not _numbers(low) <= _numbers(version) <= _numbers(high):
        expected = low if low == high else f"{low} to {high}"
        raise SolverVersionError(f"{name} {version or '(no version)'}: tested with {expected}", INSTALL[name])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
