"""A subject's process, seen from the benchmark: started when needed, ended when it fails, never waited for in vain."""

import os
import sys
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import msgspec

from poolproof_conformance.bench.protocol import Answer, Ask
from poolproof_conformance.child_process import ChildFailureError, ChildProcess
from poolproof_conformance.errors import TargetNameError
from poolproof_conformance.targets import installed_root

START_TIMEOUT_S = 120.0
PREPARE_TIMEOUT_S = 1200.0
"""Longest wait for a prepared state, in seconds: a million entries take an engine minutes."""
RUN_TIMEOUT_S = 300.0
LINE_LIMIT_BYTES = 1 << 20
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
KEPT_HEAP = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(1 << 30)}
"""Freed memory stays with the process: an engine's temporary tensors cost it no page faults, as on a GPU they do not.

Without it glibc gives them back or not depending on where they happen to lie: a factor of three for some of SGLang's.
Not where memory is what is measured.
"""


class SubjectFailedError(Exception):
    """The subject's process died, hung, or answered that it failed; the message says how."""


@dataclass(frozen=True)
class Named:
    """A subject by its title and what to run for it."""

    title: str
    command: tuple[str, ...]
    missing: str = ""
    """What to type where it is not installed; empty where it is there."""
    baseline: str = ""
    """Release that bars name, such as `sglang==0.5.23`; empty for a variant that no bar is about."""


def named_subjects(against: tuple[str, ...], *, variants: bool) -> list[Named]:
    """`fast` first, then the engines, each followed by its variants. Raises TargetNameError."""
    found = [Named("fast", _child("fast"))]
    if variants:
        found.append(Named("fast (tables apart)", _child("fast", "--tables-apart")))
    for name in against:
        product, _, version = name.partition("==")
        if product not in ("sglang", "vllm") or not version:
            raise TargetNameError(f"{name}: nothing to measure against", "use --against sglang==0.5.23")
        root = installed_root(name)
        missing = "" if root else f"poolproof targets install {name}"
        release = ("--root", str(root))
        found.append(Named(name, _child(product, *release), missing, name))
        if variants:
            title, more = {"sglang": ("eager", "--mode=eager"), "vllm": ("nothing cached", "--not-cached")}[product]
            found.append(Named(f"{name} ({title})", _child(product, *release, more), missing))
    return found


def _child(subject: str, *more: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "poolproof_conformance.bench.child", "--subject", subject, *more)


class Session:
    """One subject's process. Use it in a `with`: the process ends with it."""

    def __init__(self, named: Named) -> None:
        self.named = named
        self._process: ChildProcess | None = None
        self._heap = KEPT_HEAP

    def describe(self) -> dict[str, str]:
        """What really runs there. Raises SubjectFailedError."""
        return self._ask(Ask(ask="describe"), START_TIMEOUT_S).versions or {}

    def prepare(self, work: str, size: int) -> str | None:
        """Prepare a cell; the reason where the subject has no such work. Raises SubjectFailedError."""
        if work == "memory":
            self.close()  # what an earlier pool left in the heap would hide what this one takes
        self._heap = {} if work == "memory" else KEPT_HEAP
        return self._ask(Ask(ask="prepare", work=work, size=size), PREPARE_TIMEOUT_S).cannot

    def run(self) -> float:
        """One run of the prepared cell. Raises SubjectFailedError."""
        answer = self._ask(Ask(ask="run"), RUN_TIMEOUT_S)
        if answer.value is None:
            raise SubjectFailedError(answer.cannot or "answered no figure")
        return answer.value

    def _ask(self, ask: Ask, timeout_s: float) -> Answer:
        if self._process is None:
            timeout_s = max(timeout_s, START_TIMEOUT_S)
        try:
            if self._process is None:
                environment = {**os.environ, **ONE_THREAD, **self._heap}
                self._process = ChildProcess(self.named.command, env=environment, cwd=None, line_limit=LINE_LIMIT_BYTES)
            answer = msgspec.json.decode(self._process.exchange(msgspec.json.encode(ask), timeout_s), type=Answer)
        except (ChildFailureError, msgspec.MsgspecError) as error:
            words = self._process.last_words().splitlines()[-1:] if self._process else []
            self.close()
            raise SubjectFailedError(": ".join([str(error), *words])) from None
        if answer.error is not None:
            self.close()
            raise SubjectFailedError(answer.error)
        return answer

    def close(self) -> None:
        """End the process; the next request starts a fresh one."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
