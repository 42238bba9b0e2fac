"""`poolproof campaign`: hours of histories over targets, tree cores, modes and layouts, in one SQLite file."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from poolproof_conformance.cli.campaign_file import findings, merge, show, told
from poolproof_conformance.cli.campaign_lines import progress_told
from poolproof_conformance.cli.options import layout_option, seed_option
from poolproof_conformance.cli.terminal import EXIT_INTERRUPTED, json_option, note
from poolproof_conformance.trace_format import Mode, TreeCore
from poolproof_spec.geometry import LAYOUTS

if TYPE_CHECKING:
    from poolproof_conformance.campaigns.workers import Workers

UNITS_S = {"s": 1, "m": 60, "h": 3600}
BUDGET = re.compile(r"(\d+(?:\.\d+)?)([smh])")
SHARD = re.compile(r"(\d+)/(\d+)")


class CampaignGroup(click.Group):
    """`poolproof campaign TARGET...` without a word for it, beside merge, show and findings."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """What begins with no subcommand's name is a run."""
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=CampaignGroup, epilog="`poolproof campaign run --help` tells every option of a run.")
def campaign() -> None:
    """Run campaigns: small histories exhaustively, then random ones of growing depth, into one SQLite file.

    A campaign that was stopped, or killed, goes on where it was when the same command is typed again. Failures of one
    kind (a property, and a signature of the cause) are shrunk once and kept as traces beside the file.

    \b
    Examples:
      poolproof campaign sglang==0.5.23 --budget 30m --db campaign.sqlite
      poolproof campaign sglang==0.5.22 sglang==0.5.23 --layout tri --mode lazy --budget 2h --db tri.sqlite --workers 2
      poolproof campaign reference --budget 10m --db one.sqlite --shard 1/2
      poolproof campaign merge both.sqlite one.sqlite two.sqlite
      poolproof campaign show campaign.sqlite
    """


for command in (show, merge, findings):
    campaign.add_command(command)


def _budget(_context: click.Context, _option: click.Parameter, value: str) -> float:
    match = BUDGET.fullmatch(value)
    if match is None or float(match[1]) <= 0:
        raise click.BadParameter(f"{value!r}: expected a number and a unit: 30s, 30m, 2h")
    return float(match[1]) * UNITS_S[match[2]]


def _shard(_context: click.Context, _option: click.Parameter, value: str) -> tuple[int, int]:
    match = SHARD.fullmatch(value)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise click.BadParameter(f"{value!r}: expected I/N with I from 1 to N, such as 1/2")
    return int(match[1]), int(match[2])


@campaign.command(epilog="Exit codes: 0 nothing violated; 1 something was; 2 unknown or nothing run; 130 interrupted.")
@click.argument("targets", metavar="TARGET...", nargs=-1, required=True)
@click.option(
    "--db", "path", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The campaign's file."
)
@click.option(
    "--budget",
    "budget_s",
    callback=_budget,
    default="30m",
    show_default=True,
    help="Time of all runs on the file together: 30s, 30m, 2h. What was found is still shrunk after it.",
)
@layout_option
@click.option(
    "--core", "cores", type=click.Choice(get_args(TreeCore)), multiple=True, help="Tree core. All if not given."
)
@click.option(
    "--mode", "modes", type=click.Choice(get_args(Mode)), multiple=True, help="Compaction mode. All if not given."
)
@seed_option
@click.option(
    "--workers", "count", type=click.IntRange(1, 256), default=1, show_default=True, help="Processes at work."
)
@click.option(
    "--shard", callback=_shard, default="1/1", metavar="I/N", help="Every N-th job, from the I-th; see merge."
)
@click.option(
    "--jobs", "most_jobs", type=click.IntRange(min=1), help="Stop after that many jobs of all shards together."
)
@click.option(
    "--history-limit",
    "history_limit_s",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    help="Longest time for one history, in seconds; one that takes longer is unknown.",
)
@click.option(
    "--ray", "ray_address", metavar="ADDRESS", help="Do the work on that Ray cluster: auto, local, HOST:PORT."
)
@json_option
def run(
    targets: tuple[str, ...],
    path: Path,
    budget_s: float,
    layouts: tuple[str, ...],
    cores: tuple[TreeCore, ...],
    modes: tuple[Mode, ...],
    seed: int,
    count: int,
    shard: tuple[int, int],
    most_jobs: int | None,
    history_limit_s: float,
    ray_address: str | None,
    json_path: Path | None,
) -> int:
    """Run a campaign, or go on with the one in the file.

    TARGET is reference, fast, a release such as sglang==0.5.23, or a path to an adapter of your own.
    """
    from poolproof_conformance.campaigns.cells import cells_of
    from poolproof_conformance.campaigns.lock import only_run
    from poolproof_conformance.campaigns.plan import Plan
    from poolproof_conformance.campaigns.recording import Recording
    from poolproof_conformance.campaigns.runner import run_campaign, write_traces

    plan = Plan(
        cells=tuple(cells_of(targets, cores or get_args(TreeCore), modes or get_args(Mode), layouts or tuple(LAYOUTS))),
        seed=seed,
        budget_s=budget_s,
        most_jobs=most_jobs,
        shard=shard,
        history_limit_s=history_limit_s,
    )
    interrupted = False
    with Recording.write(path, plan.settings()) as store, only_run(path):
        if store.seconds() >= budget_s:
            note(f"the budget of {budget_s:g} s is spent: no job is begun; give a larger --budget to go on.")
        try:
            with _workers(count, history_limit_s, ray_address) as workers, progress_told(budget_s) as tell:
                run_campaign(store, plan, workers, tell)
        except KeyboardInterrupt:
            interrupted = True
        write_traces(store)
        verdict = told(store, json_path)
    if interrupted:
        note("interrupted: everything finished is kept.")
        note(f"  to go on: {shlex.join(['poolproof', *sys.argv[1:]])}")
        return EXIT_INTERRUPTED
    return verdict


@contextmanager
def _workers(count: int, history_limit_s: float, ray_address: str | None) -> Iterator[Workers]:
    """The workers, ended whatever happens."""
    from poolproof_conformance.campaigns.workers import LocalWorkers, silence_limit_s

    limit_s = silence_limit_s(history_limit_s)
    workers: Workers
    if ray_address is None:
        workers = LocalWorkers(count, limit_s)
    else:
        from poolproof_conformance.campaigns.ray_workers import RayWorkers

        workers = RayWorkers(ray_address, count, limit_s)
    try:
        yield workers
    finally:
        workers.close()
