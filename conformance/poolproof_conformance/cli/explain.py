"""`poolproof explain`: why the model answers a demand as it does."""

from pathlib import Path
from typing import Any

import click

from poolproof_conformance.cli.options import mode_option, tree_core_option
from poolproof_conformance.cli.terminal import EXIT_CODES, json_option, say, write_json
from poolproof_conformance.errors import TraceShapeError
from poolproof_conformance.explain import Explanation, explain_demand, explanation_lines
from poolproof_conformance.run import run_history
from poolproof_conformance.state_files import read_state_or_trace
from poolproof_conformance.target_names import resolve_target
from poolproof_conformance.trace_format import Mode, Trace, TreeCore
from poolproof_spec.operation import Alloc, AllocStates, AnyOperation
from poolproof_spec.state import PoolState
from poolproof_spec.units import TokenCount


@click.command()
@click.argument("file", metavar="STATE-OR-TRACE", type=click.Path(path_type=Path))
@click.option("--tokens", type=click.IntRange(min=0), help="Explain a demand of that many tokens in the (last) state.")
@click.option("--states", type=click.IntRange(min=0), help="Explain a demand of that many states in the (last) state.")
@click.option("--at", "index", type=click.IntRange(min=0), help="Of a trace: only the demand with this number, from 0.")
@click.option("--target", "name", default="reference", show_default=True, help="Of a trace: whose states to look at.")
@mode_option
@tree_core_option
@json_option
def explain(
    file: Path,
    tokens: int | None,
    states: int | None,
    index: int | None,
    name: str,
    mode: Mode | None,
    tree_core: TreeCore,
    json_path: Path | None,
) -> int:
    """Say which bound binds, where the windows lie, and why k victims and not k-1.

    Of a trace every demand is explained, in the state in which it came; of a state, the demand that you name.

    \b
    Examples:
      poolproof explain traces/V1-float-edge.json
      poolproof explain traces/V1-float-edge.json --at 1 --target sglang==0.5.23
      poolproof explain state.json --tokens 4
    """
    demand = _demand(tokens, states)
    document = read_state_or_trace(file)
    if isinstance(document, PoolState):
        if demand is None:
            raise click.UsageError("a state needs a demand: give --tokens or --states")
        asked: list[tuple[int | None, PoolState, AnyOperation]] = [(None, document, demand)]
        reason = ""
    else:
        asked, reason = _demands_of(document, name, mode, tree_core, demand, index)
    explained = [(number, made) for number, state, operation in asked if (made := explain_demand(state, operation))]
    for number, explanation in explained:
        _tell(number, explanation)
    if reason:
        say(f"unknown: {reason}")
    elif not explained:
        raise TraceShapeError(f"{file}: no demand to explain", "give --tokens or --states, or another --at")
    write_json(json_path, [{"index": number, "explanation": explanation} for number, explanation in explained])
    return EXIT_CODES["unknown" if reason else "holds"]


def _demand(tokens: int | None, states: int | None) -> AnyOperation | None:
    if tokens is not None and states is not None:
        raise click.UsageError("give --tokens or --states, not both")
    if tokens is not None:
        return Alloc(name="asked", tokens=TokenCount(tokens))
    return None if states is None else AllocStates(name="asked", count=states)


def _demands_of(
    trace: Trace, name: str, mode: Mode | None, tree_core: TreeCore, demand: AnyOperation | None, index: int | None
) -> tuple[list[tuple[int | None, PoolState, Any]], str]:
    """(number, state before, operation) of each operation to explain, and why there may be fewer than there should."""
    with resolve_target(name, tree_core, mode or trace.mode or "eager").opened() as adapter:
        run = run_history(adapter, trace.geometry, trace.operations)
    if demand is not None and run.steps:
        return [(None, run.steps[-1].after, demand)], ""
    steps = [step for step in run.steps if index in (None, step.index)]
    reached = bool(run.steps) and run.steps[-1].index == len(trace.operations) - 1
    return [(step.index, step.before, step.operation) for step in steps], "" if reached else run.reason


def _tell(number: int | None, explanation: Explanation) -> None:
    if number is not None:
        say(f"operation {number}")
    for line in explanation_lines(explanation):
        say(line)
    say()
