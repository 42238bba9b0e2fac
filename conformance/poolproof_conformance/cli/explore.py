"""`poolproof explore`: every state of a small configuration."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import click
from msgspec.structs import replace

from poolproof_conformance.cli.explore_progress import progress
from poolproof_conformance.cli.terminal import (
    EXIT_CODES,
    EXIT_INTERRUPTED,
    coloured,
    json_option,
    note,
    say,
    write_json,
)
from poolproof_conformance.errors import PoolproofError
from poolproof_conformance.explorer.configuration import Configuration
from poolproof_conformance.explorer.configurations import FAMILY, LARGE, configuration_named
from poolproof_conformance.explorer.exploration import Counts, Engine, Exploration
from poolproof_conformance.explorer.limits import Limits
from poolproof_conformance.explorer.policies import REFERENCE, policy_named, policy_names
from poolproof_conformance.wording import arena_words, call_words, plural
from poolproof_spec.catalogue import property_named


class Bytes(click.ParamType[int]):
    """A size in bytes: 16G, 500M, 4096."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of bytes, at least one."""
        read = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)B?", str(value).strip().upper())
        size = 0 if read is None else int(float(read[1]) * 1024 ** " KMGT".index(read[2] or " "))
        if size < 1:
            self.fail(f"{value!r} is no size; expected something like 16G, 500M or 4096", param, ctx)
        return size


@click.command(
    epilog="Exit codes: 0 all holds in every state; 1 a violation was found, and replayed; 2 unknown: a limit ended "
    "the run, or an error. The JSON has the counts, the verdict, the violations and the witnesses that were reached."
)
@click.argument("name", metavar="CONFIG", required=False)
@click.option("--list", "listed", is_flag=True, help="List the configurations and the policies, and end.")
@click.option(
    "--policy",
    "policy_name",
    metavar="POLICY",
    default=REFERENCE,
    show_default=True,
    help="What is explored: the reference, a released policy, or a pool that is wrong on purpose.",
)
@click.option("--symmetry", is_flag=True, help="Count states that differ in names alone as one.")
@click.option(
    "--engine",
    type=click.Choice(["reference", "packed"]),
    default="reference",
    show_default=True,
    help="The plain one, which is the definition and judges every rule; or the packed one, which is fast.",
)
@click.option(
    "--device",
    type=click.Choice(["numpy", "cpu", "cuda"]),
    default="numpy",
    show_default=True,
    help="Where the packed engine computes: NumPy, or torch on the CPU or a GPU.",
)
@click.option("--depth", type=click.IntRange(min=0), help="Stop at so many operations from the empty pool: unknown.")
@click.option("--states", type=click.IntRange(min=1), help="Stop at so many states: unknown.")
@click.option(
    "--memory-limit",
    type=Bytes(),
    default="16G",
    show_default=True,
    help="For what is stored; the packed engine goes on on disk (--checkpoint), else the run stops: unknown.",
)
@click.option(
    "--checkpoint",
    type=click.Path(file_okay=False, path_type=Path),
    help="Packed engine: write every level to this folder, so that --resume can go on from there.",
)
@click.option("--resume", is_flag=True, help="Go on from the last whole level in the --checkpoint folder.")
@click.option(
    "--export",
    type=click.Choice(["promela"]),
    help="Write the model for SPIN to stdout instead of exploring it.",
)
@click.option(
    "--out",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results", "traces"),
    show_default=True,
    help="Folder for the traces of what is violated.",
)
@json_option
def explore(
    name: str | None,
    listed: bool,
    policy_name: str,
    symmetry: bool,
    engine: Engine,
    device: str,
    depth: int | None,
    states: int | None,
    memory_limit: int,
    checkpoint: Path | None,
    resume: bool,
    export: str | None,
    folder: Path,
    json_path: Path | None,
) -> int:
    """Explore every state of a small configuration CONFIG, breadth-first from the empty pool.

    Each operation is carried out in each state and judged by every rule; the first violation of a rule is one with the
    fewest operations, and is written as a trace.

    \b
    Examples:
      poolproof explore --list
      poolproof explore swa2-locks --symmetry --json locks.json
      poolproof explore swa2-nested --policy frees-own-quota
      poolproof explore tri-large --engine packed --checkpoint run --memory-limit 8G
      poolproof explore swa2-event --export promela > event.pml
    """
    if listed or name is None:
        _list()
        return 0 if listed else 2
    configuration = configuration_named(name)
    if export:
        return _export(configuration)
    limits = Limits(depth=depth, states=states, memory_bytes=memory_limit)
    told = progress(f"explore {configuration.name}")
    try:
        with told as on_progress:
            if engine == "packed":
                result = _packed(
                    configuration, policy_name, symmetry, device, limits, checkpoint, resume, folder, on_progress
                )
            else:
                _only_packed(device=device != "numpy", checkpoint=checkpoint is not None, resume=resume)
                result = _plain(configuration, policy_name, symmetry, limits, folder, on_progress)
    except KeyboardInterrupt:
        note(f"interrupted: {told.last_words()}; no JSON written.")
        return EXIT_INTERRUPTED
    _tell(result)
    write_json(json_path, result)
    return EXIT_CODES[result.verdict]


def _plain(
    configuration: Configuration,
    policy_name: str,
    symmetry: bool,
    limits: Limits,
    folder: Path,
    on_progress: Callable[[Counts], None],
) -> Exploration:
    """The reference engine, its violations confirmed by the ordinary runner."""
    from poolproof_conformance.explorer.counterexample import violations  # takes its time to import
    from poolproof_conformance.explorer.reference_engine import ReferenceEngine

    policy = policy_named(policy_name)
    engine = ReferenceEngine(configuration, policy, symmetry=symmetry, limits=limits)
    result = engine.run(on_progress)
    shown, unconfirmed = violations(configuration, policy, list(engine.found.values()), folder)
    for found in unconfirmed:
        note(f"{found.property}: not confirmed by a run from the empty pool: {found.message}")
    return replace(result, violations=shown)


def _packed(
    configuration: Configuration,
    policy_name: str,
    symmetry: bool,
    device: str,
    limits: Limits,
    checkpoint: Path | None,
    resume: bool,
    folder: Path,
    on_progress: Callable[[Counts], None],
) -> Exploration:
    from poolproof_conformance.explorer.packed.running import run_packed

    return run_packed(
        configuration,
        policy_name,
        symmetry=symmetry,
        device=device,
        limits=limits,
        checkpoint=checkpoint,
        resume=resume,
        folder=folder,
        on_progress=on_progress,
    )


def _export(configuration: Configuration) -> int:
    from poolproof_conformance.explorer.promela import promela

    say(promela(configuration).rstrip())
    return 0


def _only_packed(**given: bool) -> None:
    for option, is_given in given.items():
        if is_given:
            raise PoolproofError(f"--{option} is an option of the packed engine", "add --engine packed")


def _list() -> None:
    for configuration in (*FAMILY, *LARGE):
        say(f"{configuration.name}: {configuration.about}")
        say(f"  {arena_words(configuration.geometry)}")
        say(f"  {', '.join(call_words(operation) for operation in configuration.operations)}")
    say(f"policies: {', '.join(policy_names())}")


def _tell(result: Exploration) -> None:
    say(f"{result.config}, {result.policy}, {result.engine} engine: {coloured(result.verdict)}")
    say(
        f"  {result.distinct:,} states{' up to names' if result.symmetry else ''}, {result.transitions:,} transitions, "
        f"depth {result.depth}; {result.seconds:.1f} s, {result.transitions_per_s:,.0f} a second"
    )
    for violation in result.violations:
        rule = property_named(violation.property)
        say(f"  {rule.code} {rule.name}: {plural(violation.operations, 'operation')}: {violation.message}")
        if violation.trace_file:
            say(f"    poolproof replay {violation.trace_file}")
    if result.reason:
        say(f"  unknown: {result.reason}")
    if len(result.checked) < 25:
        say(f"  judged at every transition: {', '.join(result.checked)}")
    if result.witnesses_unreached:
        say(f"  never exercised here, so nothing is said of: {', '.join(result.witnesses_unreached)}")
