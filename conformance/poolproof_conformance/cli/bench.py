"""`poolproof bench`: the fast pool and released engines, measured side by side behind a green gate."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from poolproof_conformance.atomic_file import check_writable, write_atomically
from poolproof_conformance.bench.bars import judged
from poolproof_conformance.bench.gate import HISTORIES, QUICK_HISTORIES, pass_gate
from poolproof_conformance.bench.machine import libraries, machine
from poolproof_conformance.bench.measure import cells_of, measure
from poolproof_conformance.bench.page import page_text
from poolproof_conformance.bench.plot import require_matplotlib, write_plot
from poolproof_conformance.bench.results import GpuFigure, Results, read_results, to_json
from poolproof_conformance.bench.session import named_subjects
from poolproof_conformance.bench.table import bars_table, gpu_table, notes, results_table
from poolproof_conformance.bench.works import WORKS, work_named
from poolproof_conformance.cli.terminal import EXIT_CODES, EXIT_INTERRUPTED, note, progress, say
from poolproof_conformance.errors import PoolproofError
from poolproof_spec.verdict import Verdict

DEFAULT_AGAINST = ("sglang==0.5.23", "vllm==0.33.0")
RUNS, QUICK_RUNS = 9, 3
Command = Callable[..., int]


class SizesError(PoolproofError):
    """--sizes that are no list of numbers."""


def _output(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    if path is not None:
        check_writable(path)
    return path


def _file_option(name: str, text: str) -> Callable[[Command], Command]:
    variable = name.lstrip("-") + "_path"
    return click.option(name, variable, type=click.Path(path_type=Path), metavar="FILE", callback=_output, help=text)


@click.command(
    epilog="Exit codes: 0 all measured bars are met; 1 one is missed; 2 unknown: a subject failed or is not installed, "
    "or fast does not pass the gate."
)
@click.option(
    "--against", multiple=True, metavar="RELEASE", help=f"May be repeated. [default: {', '.join(DEFAULT_AGAINST)}]"
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice([work.name for work in WORKS]),
    metavar="WORK",
    help="Measure this work alone.",
)
@click.option("--sizes", metavar="N,N,...", help="Sizes in place of each work's own.")
@click.option("--runs", type=click.IntRange(1), help=f"Runs of each cell. [default: {RUNS}; {QUICK_RUNS} with --quick]")
@click.option("--quick", is_flag=True, help="Fewer sizes, runs and subjects: a minute instead of a quarter of an hour.")
@click.option("--gpu", is_flag=True, help="Measure the GPU kernels too.")
@click.option(
    "--from", "read_path", type=click.Path(path_type=Path), metavar="FILE", help="Measure nothing: read --json's FILE."
)
@_file_option("--json", "Write the results as JSON too; the file is replaced as a whole.")
@_file_option("--plot", "Write the growth curves as SVG.")
@_file_option("--markdown", "Write the results as a page.")
def bench(
    against: tuple[str, ...],
    only: tuple[str, ...],
    sizes: str | None,
    runs: int | None,
    quick: bool,
    gpu: bool,
    read_path: Path | None,
    json_path: Path | None,
    plot_path: Path | None,
    markdown_path: Path | None,
) -> int:
    """Measure the fast pool and released engines on the same work, interleaved run by run, and judge the bars.

    \b
    Examples:
      poolproof bench --quick
      poolproof bench --only evict-1000 --sizes 10000,100000 --runs 5
      poolproof bench --json docs/performance.json
      poolproof bench --from docs/performance.json --markdown docs/performance.md --plot docs/performance-growth.svg
    """
    if plot_path is not None:
        require_matplotlib()  # rather than after a long run
    try:
        results = (
            read_results(read_path)
            if read_path
            else _measured(against or DEFAULT_AGAINST, only, _sizes(sizes), runs, quick=quick, gpu=gpu)
        )
    except KeyboardInterrupt:
        note("interrupted: no file was written.")
        return EXIT_INTERRUPTED
    _show(results)
    if json_path is not None:
        write_atomically(json_path, to_json(results))
    if plot_path is not None:
        write_plot(results, plot_path)
    if markdown_path is not None:
        write_atomically(markdown_path, page_text(results))
    return EXIT_CODES[verdict_of(results)]


def _sizes(text: str | None) -> tuple[int, ...]:
    try:
        sizes = tuple(int(part.replace("_", "")) for part in text.split(",")) if text else ()
    except ValueError:
        sizes = (0,)
    if any(size < 1 for size in sizes):
        raise SizesError(f"--sizes {text}: expected numbers from 1 on", "poolproof bench --sizes 1000,10000")
    return sizes


def _measured(
    against: tuple[str, ...], only: tuple[str, ...], sizes: tuple[int, ...], runs: int | None, *, quick: bool, gpu: bool
) -> Results:
    """Pass the gate, then measure. Raises what the two raise."""
    subjects = named_subjects(against, variants=not quick)
    works = [work_named(name) for name in only] or WORKS
    cells = cells_of(works, quick=quick, sizes=sizes)
    measure_gpu = _gpu_measure() if gpu else None
    histories = QUICK_HISTORIES if quick else HISTORIES
    with progress("gate: conform fast", histories) as told:
        gate = pass_gate(histories, lambda done, _: told(done))
    note(gate)
    rows, versions = measure(subjects, cells, runs or (QUICK_RUNS if quick else RUNS), note)
    return Results(
        machine=machine(),
        versions={"libraries": libraries(), **versions},
        gate=gate,
        rows=rows,
        bars=judged(rows),
        gpu=msgspec.convert(msgspec.to_builtins(measure_gpu()), tuple[GpuFigure, ...]) if measure_gpu else (),
    )


def _gpu_measure() -> Any:
    """The function that measures the kernels. Raises PoolproofError where it is not there."""
    try:
        return importlib.import_module("poolproof_conformance.bench.gpu").measure_gpu
    except ImportError as error:
        raise PoolproofError(f"--gpu: {error}", "pip install 'poolproof[fast]' on a machine with a GPU") from None


def _show(results: Results) -> None:
    console = Console(width=None if Console().is_terminal else 240, highlight=False)
    console.print(results_table(results))
    for line in notes(results):
        say(f"  {line}")
    console.print(bars_table(results))
    if results.gpu:
        console.print(gpu_table(results))
    note(results.gate)


def verdict_of(results: Results) -> Verdict:
    """A missed bar is certain; then a subject that failed, and nothing measured, are doubt; then it holds."""
    met = [bar.met for bar in results.bars if bar.met is not None]
    if not all(met):
        return "violated"
    return "unknown" if not met or any(row.unknown for row in results.rows) else "holds"
