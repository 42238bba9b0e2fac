"""`poolproof replay`: traces on targets."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import click

from poolproof_conformance.adapter import Adapter
from poolproof_conformance.cli.options import mode_option, tree_core_option
from poolproof_conformance.cli.terminal import (
    EXIT_CODES,
    EXIT_INTERRUPTED,
    coloured,
    json_option,
    note,
    say,
    write_json,
)
from poolproof_conformance.replay import Replay
from poolproof_conformance.replay import replay as replay_trace
from poolproof_conformance.target_names import Target, resolve_target
from poolproof_conformance.trace_format import Mode, Trace, TreeCore
from poolproof_conformance.traces import read_trace
from poolproof_spec.verdict import Verdict, worst


@click.command(
    epilog="Without --as-expected a violation exits 1, also one that the trace foretells.",
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option(
    "--target", "names", multiple=True, metavar="TARGET", help="May be given several times. [default: reference]"
)
@mode_option
@tree_core_option
@click.option(
    "--as-expected", is_flag=True, help="Exit 0 if all is as the traces foretell, violations included; else 1."
)
@click.option("--steps/--no-steps", "with_steps", default=None, help="Show every step. [default: of a single trace]")
@json_option
def replay(
    files: tuple[Path, ...],
    names: tuple[str, ...],
    mode: Mode | None,
    tree_core: TreeCore,
    as_expected: bool,
    with_steps: bool | None,
    json_path: Path | None,
) -> int:
    """Replay traces on a target, judge every step, and compare with what the traces expect.

    \b
    Examples:
      poolproof replay traces/V1-float-edge.json
      poolproof replay traces/*.json --target sglang==0.5.23 --tree-core python
      poolproof replay traces/*.json --target ./my-adapter --as-expected
    """
    traces = [read_trace(path) for path in files]
    names = names or ("reference",)
    # Resolved before anything runs: a wrong name must not cost a half run.
    runs = [
        (trace, resolve_target(name, tree_core, mode or trace.mode or "eager")) for name in names for trace in traces
    ]
    with_steps = len(runs) == 1 if with_steps is None else with_steps
    results: list[Replay] = []
    try:
        for trace, adapter, target in opened(runs):
            result = replay_trace(adapter, trace, target.name, target.tree_core, target.mode)
            results.append(result)
            _tell(result, target.title, with_steps)
    except KeyboardInterrupt:
        note(f"interrupted: {len(results)} of {len(runs)} replayed; no JSON written.")
        return EXIT_INTERRUPTED
    write_json(json_path, [{"as_expected": result.as_expected, **_fields(result)} for result in results])
    return EXIT_CODES[worst(_judged(result, as_expected) for result in results)]


def opened(runs: Sequence[tuple[Trace, Target]]) -> Iterator[tuple[Trace, Adapter, Target]]:
    """The runs with an adapter each; one adapter, and process, for all runs of a target."""
    with ExitStack() as stack:
        adapters: dict[Target, Adapter] = {}
        for trace, target in runs:
            if target not in adapters:
                adapters[target] = stack.enter_context(target.opened())
            yield trace, adapters[target], target


def _fields(result: Replay) -> dict[str, object]:
    return {name: getattr(result, name) for name in result.__struct_fields__}


def _judged(result: Replay, as_expected: bool) -> Verdict:
    """What the exit code is about."""
    if result.verdict == "unknown":
        return "unknown"
    if as_expected:
        return "holds" if result.as_expected else "violated"
    return "violated" if result.violated or result.differences else "holds"


def _tell(result: Replay, title: str, with_steps: bool) -> None:
    foretold = ", as the trace expects" if result.as_expected else ""
    violated = f" ({', '.join(result.violated)})" if result.violated else ""
    say(f"{result.trace} on {title}: {coloured(result.verdict)}{violated}{foretold}")
    for step in result.steps if with_steps else ():
        say(f"  {step.index}. {step.operation}: {step.outcome}")
        for finding in step.findings:
            say(f"       {click.style(finding, fg='red')}")
    if result.verdict == "unknown":
        say(f"  unknown: {result.reason}")
    for difference in result.differences:
        say(f"  not as expected: {difference}")
