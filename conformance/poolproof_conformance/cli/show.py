"""`poolproof show`: one trace, step by step, in the terminal."""

from pathlib import Path

import click

from poolproof_conformance.cli.options import mode_option, tree_core_option
from poolproof_conformance.cli.terminal import EXIT_CODES, EXIT_INTERRUPTED, json_option, note, write_json
from poolproof_conformance.errors import TraceIndexError
from poolproof_conformance.trace_format import Mode, TreeCore
from poolproof_conformance.traces import read_trace


@click.command(epilog="Exit codes: 0 no rule is violated; 1 one is; 2 unknown, or the command was wrong.")
@click.argument("file", metavar="TRACE", type=click.Path(path_type=Path))
@click.option(
    "--target",
    "name",
    metavar="TARGET",
    help="Whose states to show. [default: the newest release that the trace expects something of, else reference]",
)
@mode_option
@tree_core_option
@click.option("--step", type=click.IntRange(min=0), metavar="N", help="Only the operation with this number, from 0.")
@json_option
def show(
    file: Path, name: str | None, mode: Mode | None, tree_core: TreeCore, step: int | None, json_path: Path | None
) -> int:
    """Step through a trace in the terminal: the arena, the prefix tree, model and target side by side, and why.

    A release that is not installed is shown on the reference, with its answers as the trace records them.

    \b
    Examples:
      poolproof show traces/V1-float-edge.json
      poolproof show traces/V1-float-edge.json --target sglang==0.5.23 --step 1
      poolproof show traces/V1-float-edge.json --json frames.json
    """
    from rich.console import Console

    from poolproof_conformance.reporting.counterexamples import counterexample_of
    from poolproof_conformance.reporting.in_terminal import PIPE_WIDTH, show_counterexample
    from poolproof_conformance.reporting.traced import run_traces, targets_of

    trace = read_trace(file)
    if step is not None and step >= len(trace.operations):
        last = len(trace.operations) - 1
        raise TraceIndexError(
            f"{file}: no operation {step}, the last is {last}", f"poolproof show {file} --step {last}"
        )
    target = targets_of(trace, [name] if name else [], tree_core, mode)[-1]
    try:
        (run,) = run_traces([(file, trace, target)])
        example = counterexample_of(run)
    except KeyboardInterrupt:
        note("interrupted.")
        return EXIT_INTERRUPTED
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PIPE_WIDTH)
    show_counterexample(console, example, step)
    write_json(json_path, example)
    return EXIT_CODES[example.verdict]
