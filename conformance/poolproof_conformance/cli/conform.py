"""`poolproof conform`: random histories on one target."""

from pathlib import Path

import click

from poolproof_conformance.cli.findings import campaign_lines
from poolproof_conformance.cli.options import layout_option, mode_option, out_option, seed_option, tree_core_option
from poolproof_conformance.cli.terminal import (
    EXIT_CODES,
    EXIT_INTERRUPTED,
    json_option,
    note,
    progress,
    say,
    write_json,
)
from poolproof_conformance.target_names import resolve_target
from poolproof_conformance.trace_format import Mode, TreeCore
from poolproof_spec.geometry import LAYOUTS


@click.command(epilog="The JSON is a list of one {target, traces, operations, level, verdict, violations}.")
@click.argument("name", metavar="TARGET")
@click.option("--traces", type=click.IntRange(min=1), default=1000, show_default=True, help="Histories to run.")
@seed_option
@layout_option
@mode_option
@tree_core_option
@out_option
@json_option
def conform(
    name: str,
    traces: int,
    seed: int,
    layouts: tuple[str, ...],
    mode: Mode | None,
    tree_core: TreeCore,
    folder: Path,
    json_path: Path | None,
) -> int:
    """Run random histories on TARGET, judge every step, shrink what fails and write it as traces.

    TARGET is reference, fast (or fast:interpreter, fast:cuda), a release such as sglang==0.5.23, or a path to an
    adapter of your own.

    \b
    Examples:
      poolproof conform reference --traces 10000 --seed 7
      poolproof conform sglang==0.5.23 --traces 500 --layout tri --mode lazy
      poolproof conform ./my-adapter --json mine.json
    """
    target = resolve_target(name, tree_core, mode or "eager")
    from poolproof_conformance.campaign import run_campaign  # Hypothesis takes its time to import.

    done = kinds = 0
    try:
        with target.opened() as adapter, progress(f"conform {target.title}", traces) as told:

            def on_progress(finished: int, found: int) -> None:
                nonlocal done, kinds
                done, kinds = finished, found
                told(finished)

            campaign = run_campaign(
                target,
                adapter,
                traces=traces,
                seed=seed,
                layouts=layouts or tuple(LAYOUTS),
                folder=folder,
                on_progress=on_progress,
            )
    except KeyboardInterrupt:
        note(f"interrupted after {done} of {traces} histories; {kinds} properties violated so far; no JSON written.")
        return EXIT_INTERRUPTED
    for line in campaign_lines(campaign):
        say(line)
    write_json(json_path, [campaign.row])
    return EXIT_CODES[campaign.row.verdict]
