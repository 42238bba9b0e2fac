"""From the name of a target, as typed, to an adapter that can be run."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

from poolproof_conformance.adapter import Adapter
from poolproof_conformance.child import ChildAdapter
from poolproof_conformance.errors import TargetNameError, TargetNotInstalledError
from poolproof_conformance.fast_variant import FastVariant
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.targets import KNOWN_RELEASES, installed_root
from poolproof_conformance.trace_format import Mode, TreeCore

BUNDLED_TARGETS = ("reference", "fast")
"""Pools of this project."""
KNOWN_TARGETS = (*BUNDLED_TARGETS, *KNOWN_RELEASES)
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
    fast: FastVariant | None = None
    """How the fast pool keeps its bytes and tables; None for any other target."""

    @property
    def title(self) -> str:
        """Name and how it is run, for a report."""
        how = [part for part in (self.tree_core and f"{self.tree_core} core", self.mode) if part]
        return f"{self.name} ({', '.join(how)})" if how else self.name

    @contextmanager
    def opened(self) -> Iterator[Adapter]:
        """An adapter; its process, if it has one, ends with the `with`."""
        if self.fast is not None:
            from poolproof_conformance.fast_adapter import FastAdapter  # torch takes its time to import

            yield FastAdapter(self.fast)
            return
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
        return Target(name, fast=_fast_variant(name))
    if name.partition("=")[0] == "sglang":
        return _release(name, tree_core, mode)
    path = Path(name)
    if path.exists() or "/" in name or path.suffix == ".py":
        return Target(name, command=_own_adapter(path))
    near = get_close_matches(name, KNOWN_TARGETS, 1)
    hint = f"; did you mean {near[0]}?" if near else ";"
    raise TargetNameError(
        f"unknown target {name!r}{hint} known: {', '.join(KNOWN_TARGETS)}, or a path to an adapter of your own",
        "poolproof targets list",
    )


def _fast_variant(name: str) -> FastVariant:
    """The variant that a name such as fast:interpreter means; what it needs must be there."""
    wanted = name.partition(":")[2] or "cpu"
    variants: tuple[FastVariant, ...] = get_args(FastVariant)
    variant = next((known for known in variants if known == wanted), None)
    if variant is None:
        there = ", ".join(f"fast:{known}" for known in variants)
        raise TargetNameError(f"{name}: no such variant of the fast pool; there are fast, {there}", "use fast")
    needed = ["torch"] if variant == "cpu" else ["torch", "triton"]
    if missing := [package for package in needed if find_spec(package) is None]:
        raise TargetNotInstalledError(f"{name} needs {' and '.join(missing)}", "pip install 'poolproof[fast]'")
    if variant == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise TargetNotInstalledError(f"{name}: torch finds no CUDA device here", "use fast or fast:interpreter")
    return variant


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
