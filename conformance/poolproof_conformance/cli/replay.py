"""`poolproof replay`: traces on targets."""

from pathlib import Path

import click

from poolproof_conformance.cli.options import mode_option, tree_core_option
from poolproof_conformance.cli.terminal import EXIT_CODES, coloured, json_option, progress, say, write_json
from poolproof_conformance.replay import Replay
from poolproof_conformance.replay import replay as replay_trace
from poolproof_conformance.target_names import resolve_target
from poolproof_conformance.trace_format import Mode, TreeCore
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
@json_option
def replay(
    files: tuple[Path, ...],
    names: tuple[str, ...],
    mode: Mode | None,
    tree_core: TreeCore,
    as_expected: bool,
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
    # Resolved before anything runs: a wrong name must not cost a half run.
    targets = {(name, m): resolve_target(name, tree_core, m) for name in names or ("reference",) for m in _modes(mode)}
    results: list[Replay] = []
    total = len(traces) * len(names or ("reference",))
    with progress("replay", total) as told:
        for name in names or ("reference",):
            for trace in traces:
                target = targets[name, mode or trace.mode or "eager"]
                with target.opened() as adapter:
                    result = replay_trace(adapter, trace, name, target.tree_core, target.mode)
                results.append(result)
                _tell(result, target.title)
                told(len(results))
    write_json(json_path, [{"as_expected": result.as_expected, **_fields(result)} for result in results])
    return EXIT_CODES[worst(_judged(result, as_expected) for result in results)]


def _modes(mode: Mode | None) -> tuple[Mode, ...]:
    return (mode,) if mode else ("eager", "lazy")


def _fields(result: Replay) -> dict[str, object]:
    return {name: getattr(result, name) for name in result.__struct_fields__}


def _judged(result: Replay, as_expected: bool) -> Verdict:
    """What the exit code is about."""
    if result.verdict == "unknown":
        return "unknown"
    if as_expected:
        return "holds" if result.as_expected else "violated"
    return "violated" if result.violated or result.differences else "holds"


def _tell(result: Replay, title: str) -> None:
    say(f"{result.trace} on {title}: {coloured(result.verdict)}")
    for step in result.steps:
        say(f"  {step.index}. {step.operation}: {step.outcome}")
        for finding in step.findings:
            say(f"       {click.style(finding, fg='red')}")
    if result.verdict == "unknown":
        say(f"  unknown: {result.reason}")
    elif result.as_expected:
        say("  as the trace expects.")
    for difference in result.differences:
        say(f"  not as expected: {difference}")
