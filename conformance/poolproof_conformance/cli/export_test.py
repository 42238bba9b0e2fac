"""`poolproof export-test`: a trace as a stand-alone regression test."""

from pathlib import Path

import click

from poolproof_conformance.atomic_file import write_atomically
from poolproof_conformance.cli.terminal import note
from poolproof_conformance.traces import read_trace


@click.command("export-test")
@click.argument("path", metavar="TRACE", type=click.Path(path_type=Path))
@click.option(
    "--for",
    "kind",
    type=click.Choice(["pytest", "sglang"]),
    required=True,
    help="pytest: a test of an adapter, which imports poolproof. sglang: a test in sglang's own API, which does not.",
)
@click.option("--target", default="reference", show_default=True, help="pytest: what is tested unless told otherwise.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="[default: stdout]")
def export_test(path: Path, kind: str, target: str, out: Path | None) -> int:
    """Write a stand-alone regression test that fails where the trace fails.

    \b
    Examples:
      poolproof export-test results/traces/mine/complete.json --for pytest --target ./my-adapter --out test_mine.py
      poolproof export-test traces/V1-float-edge-counted.json --for sglang --out test_v1.py
    """
    from poolproof_conformance.export_test.pytest_file import pytest_text
    from poolproof_conformance.export_test.sglang_file import sglang_text

    trace = read_trace(path)
    text = pytest_text(trace, target) if kind == "pytest" else sglang_text(trace)
    if out is None:
        click.echo(text, nl=False)
        return 0
    write_atomically(out, text)
    note(f"{out}: pytest {out}")
    return 0
