"""Results in words: cells, the table, and the bars; for the terminal and for the page."""

from collections.abc import Iterator

from rich.table import Table

from poolproof_conformance.bench.results import BarRow, GpuFigure, Results, Row
from poolproof_conformance.bench.works import work_named

MET_WORDS = {True: "met", False: "missed", None: "not measured"}


def time_words(us: float) -> str:
    """A time with three digits: 4.97 us, 23.1 ms, 1.75 s."""
    for unit, factor in (("us", 1.0), ("ms", 1e3)):
        if us < 999.5 * factor:
            return f"{_digits(us / factor)} {unit}"
    return f"{_digits(us / 1e6)} s"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def figure_words(row: Row) -> str:
    """The median of a cell, or why there is none."""
    if row.median_us is None:
        return "-" if row.cannot else "unknown"
    return f"{row.median_us:.0f} B" if row.work == "memory" else time_words(row.median_us)


def cell_words(row: Row | None) -> str:
    """A cell of the table: median, (least to most), and how many times as long as `fast`."""
    if row is None:
        return ""
    words = figure_words(row)
    if row.median_us is None or row.min_us is None or row.max_us is None:
        return words
    if row.runs > 1:
        words += f" ({_range_words(row.min_us, row.max_us)})"
    if row.ratio_to_fast is not None and row.subject != "fast":
        words += f" {_digits(row.ratio_to_fast)}x"
    return words


def _range_words(least: float, most: float) -> str:
    low, high = time_words(least), time_words(most)
    return f"{low.split()[0]}–{high}" if low.split()[1] == high.split()[1] else f"{low}–{high}"


def notes(results: Results) -> Iterator[str]:
    """Why cells have no figure, each reason once."""
    seen: dict[tuple[str, str], list[str]] = {}
    for row in results.rows:
        reason = row.cannot or (f"unknown: {row.unknown}" if row.unknown else None)
        if reason:
            works = seen.setdefault((row.subject, reason), [])
            if row.work not in works:
                works.append(row.work)
    for (subject, reason), works in seen.items():
        yield f"{subject}, {', '.join(works)}: {reason}"


def results_table(results: Results) -> Table:
    """A line for each work and size, a column for each subject."""
    table = Table(title="CPU time an operation: median (min–max), times that of fast", title_justify="left")
    table.add_column("work")
    table.add_column("size", justify="right")
    for subject in results.subjects():
        table.add_column(subject, justify="right")
    last = ""
    for work, size in results.cells():
        if last and work != last:
            table.add_section()
        cells = [cell_words(results.row(work, size, subject)) for subject in results.subjects()]
        table.add_row(work_named(work).title if work != last else "", f"{size:,}", *cells)
        last = work
    return table


def bars_table(results: Results) -> Table:
    """A line for each bar."""
    table = Table(title="bars", title_justify="left")
    for name in ("work", "bar", "measured", ""):
        table.add_column(name, justify="right" if name == "measured" else "left")
    for bar in results.bars:
        colour = {True: "green", False: "red", None: "yellow"}[bar.met]
        table.add_row(bar.work, bar.bar, measured_words(bar), f"[{colour}]{MET_WORDS[bar.met]}[/{colour}]")
    return table


def gpu_table(results: Results) -> Table:
    """A line for each figure of the GPU."""
    table = Table(title="GPU", title_justify="left")
    for name in ("work", "size", "measured", "bound"):
        table.add_column(name, justify="right" if name in ("measured", "bound") else "left")
    for figure in results.gpu:
        table.add_row(figure.work, figure.size, gpu_words(figure), bound_words(figure))
    return table


def gpu_words(figure: GpuFigure) -> str:
    """A figure with its unit, which says so where there is none."""
    return figure.unit if figure.value is None else f"{figure.value:.4g} {figure.unit}"


def bound_words(figure: GpuFigure) -> str:
    """What a figure is held against, and its share of it where that is a rate."""
    if figure.bound is None:
        return ""
    share = f" ({figure.ratio:.0%})" if figure.ratio is not None else ""
    return f"{figure.bound:.4g}{share}"


def measured_words(bar: BarRow) -> str:
    """A bar's figure in its unit."""
    if bar.measured is None:
        return "-"
    return f"{bar.measured:.0f} B" if "bytes" in bar.bar else f"{bar.measured:.3g}x"
