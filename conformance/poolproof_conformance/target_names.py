"""From the name of a target, as typed, to an adapter that can be run."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from poolproof_conformance.adapter import Adapter
from poolproof_conformance.child import ChildAdapter
from poolproof_conformance.errors import TargetNameError, TargetNotInstalledError
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.targets import KNOWN_RELEASES, installed_root
from poolproof_conformance.trace_format import Mode, TreeCore

KNOWN_TARGETS = ("reference", *KNOWN_RELEASES)
"""Targets that need no path."""


@dataclass(frozen=True)
class Target:
    """A target that is there and can be opened."""

    name: str
    tree_core: TreeCore | None = None
    """Implementation of the engine's prefix tree; None where there is but one."""
    mode: Mode | None = None
    """Compaction mode; None where there is but one."""
    command: tuple[str, ...] = ()
    """What to run as a child process; empty for a target of this process."""

    @property
    def title(self) -> str:
        """Name and how it is run, for a report."""
        how = [part for part in (self.tree_core and f"{self.tree_core} core", self.mode) if part]
        return f"{self.name} ({', '.join(how)})" if how else self.name

    @contextmanager
    def opened(self) -> Iterator[Adapter]:
        """An adapter; its process, if it has one, ends with the `with`."""
        if not self.command:
            yield ReferenceAdapter()
            return
        # One thread each: the tensors are tiny, and two targets may share two cores.
        with ChildAdapter(self.command, env={**os.environ, "OMP_NUM_THREADS": "1"}) as adapter:
            yield adapter


def resolve_target(name: str, tree_core: TreeCore = "rust", mode: Mode = "eager") -> Target:
    """The target of that name. Raises TargetNameError or TargetNotInstalledError."""
    if name == "reference":
        return Target(name)
    if name.partition(":")[0] == "fast":
        raise TargetNameError(f"{name}: the fast pool is not there yet", "poolproof conform reference")
    if name.partition("=")[0] == "sglang":
        return _release(name, tree_core, mode)
    path = Path(name)
    if path.exists() or "/" in name or path.suffix == ".py":
        return Target(name, command=_own_adapter(path))
    near = get_close_matches(name, (*KNOWN_TARGETS, "fast"), 1)
    hint = f"; did you mean {near[0]}?" if near else ";"
    raise TargetNameError(
        f"unknown target {name!r}{hint} known: {', '.join(KNOWN_TARGETS)}, or a path to an adapter of your own",
        "poolproof targets list",
    )


def _release(name: str, tree_core: TreeCore, mode: Mode) -> Target:
    _, equal, version = name.partition("==")
    if not (equal and version):
        raise TargetNameError(f"{name}: a release has a version", f"use {KNOWN_RELEASES[-1]}")
    root = installed_root(name)
    if root is None:
        raise TargetNotInstalledError(f"{name} is not installed", f"poolproof targets install {name}")
    module = "poolproof_conformance.sglang.child"
    command = (sys.executable, "-m", module, "--root", str(root), "--core", tree_core, "--mode", mode)
    return Target(name, tree_core, mode, command)


def _own_adapter(path: Path) -> tuple[str, ...]:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "no such file"
        raise TargetNameError(f"{path}: {what}, expected an adapter", "see docs/adapter-protocol.md")
    if path.suffix == ".py":
        return (sys.executable, str(path))
    if shutil.which(str(path.absolute())) is None:
        raise TargetNameError(f"{path}: not executable", f"chmod +x {path}")
    return (str(path.absolute()),)
