"""Growth curves: a panel for each work that was measured at several sizes, both axes logarithmic."""

import io
from pathlib import Path
from typing import Any

from poolproof_conformance.atomic_file import write_atomically
from poolproof_conformance.bench.results import Results
from poolproof_conformance.bench.works import work_named
from poolproof_conformance.errors import PoolproofError

COLUMNS = 2
PANEL_INCHES = (6.0, 3.6)


class NoMatplotlibError(PoolproofError):
    """The extra that draws is not installed."""


def write_plot(results: Results, path: Path) -> None:
    """Write the panels as SVG; the same results give the same bytes. Raises NoMatplotlibError, OutputFileError."""
    write_atomically(path, plot_text(results))


def plot_text(results: Results) -> str:
    """The SVG."""
    matplotlib = require_matplotlib()
    matplotlib.rcParams.update({"svg.hashsalt": "poolproof", "svg.fonttype": "none", "font.size": 9})
    from matplotlib.figure import Figure

    works = [work for work in dict.fromkeys(row.work for row in results.rows) if len(_sizes(results, work)) > 1]
    lines = max(1, -(-len(works) // COLUMNS))
    figure = Figure(figsize=(PANEL_INCHES[0] * COLUMNS, PANEL_INCHES[1] * lines), layout="constrained")
    axes = figure.subplots(lines, COLUMNS, squeeze=False).flat
    for axis, work in zip(axes, works, strict=False):
        _draw(axis, results, work)
    for axis in list(axes)[len(works) :]:
        axis.set_axis_off()
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


def require_matplotlib() -> Any:
    """matplotlib, drawing without a screen. Raises NoMatplotlibError."""
    try:
        import matplotlib
    except ImportError:
        raise NoMatplotlibError(
            "matplotlib is not installed, which draws the plot", "pip install 'poolproof[bench]'"
        ) from None
    matplotlib.use("Agg")
    return matplotlib


def _sizes(results: Results, work: str) -> list[int]:
    return [size for name, size in results.cells() if name == work]


def _draw(axis: Any, results: Results, work: str) -> None:
    for place, subject in enumerate(results.subjects()):
        rows = [results.row(work, size, subject) for size in _sizes(results, work)]
        points = [(row.size, row.median_us) for row in rows if row is not None and row.median_us is not None]
        if points:
            width = 2.2 if subject == "fast" else 1.2
            axis.plot(
                *zip(*points, strict=True), marker="o", markersize=3, linewidth=width, label=subject, color=f"C{place}"
            )
    axis.set(xscale="log", yscale="log", title=work_named(work).title, xlabel=work_named(work).axis, ylabel="us")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=7)
