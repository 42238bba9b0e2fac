"""`poolproof targets`: what can be held against the model, and how to get it."""

from pathlib import Path

import click

from poolproof_conformance.cli.terminal import json_option, note, say, write_json
from poolproof_conformance.errors import TargetNameError
from poolproof_conformance.target_names import BUNDLED_TARGETS
from poolproof_conformance.targets import KNOWN_RELEASES, MEASURED_RELEASES, install_release, installed_root


@click.group()
def targets() -> None:
    """List targets and install released engines."""


@targets.command("list")
@json_option
def list_targets(json_path: Path | None) -> int:
    """Show the targets and whether they are there."""
    rows = [{"target": name, "state": "bundled", "folder": None} for name in BUNDLED_TARGETS]
    for name in (*KNOWN_RELEASES, *MEASURED_RELEASES):
        root = installed_root(name)
        state = "installed" if root else "not installed"
        rows.append({"target": name, "state": state, "folder": str(root) if root else None})
    for row in rows:
        fix = f"  (poolproof targets install {row['target']})" if row["state"] == "not installed" else ""
        say(f"{row['target']:16} {row['state']}{fix}")
    say(f"{'PATH':16} an adapter of your own: docs/adapter-protocol.md")
    write_json(json_path, rows)
    return 0


@targets.command()
@click.argument("names", nargs=-1, required=True, metavar="TARGET...")
def install(names: tuple[str, ...]) -> int:
    """Install released engines, each into a folder of its own; those that are there are left alone.

    \b
    Example:
      poolproof targets install sglang==0.5.22 sglang==0.5.23 vllm==0.33.0
    """
    for name in names:
        if not name.startswith(("sglang==", "vllm==")):
            raise TargetNameError(
                f"{name}: only releases of sglang and vllm are installed",
                f"poolproof targets install {KNOWN_RELEASES[-1]}",
            )
    for name in names:
        root = installed_root(name)
        if root is None:
            note(f"installing {name} ...")
            root = install_release(name)
        say(f"{name}: installed in {root}")
    return 0
