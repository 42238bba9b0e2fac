"""Options that several commands take."""

from pathlib import Path

import click

from poolproof_spec.geometry import LAYOUTS

mode_option = click.option(
    "--mode",
    type=click.Choice(["eager", "lazy"]),
    help="Compaction mode of an engine that has both; eager if not given.",
)
tree_core_option = click.option(
    "--tree-core",
    type=click.Choice(["rust", "python"]),
    default="rust",
    show_default=True,
    help="Implementation of sglang's prefix tree.",
)
layout_option = click.option(
    "--layout",
    "layouts",
    type=click.Choice(list(LAYOUTS)),
    multiple=True,
    help="Chain of members; may be given several times. All if not given.",
)
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, help="The same seed gives the same histories."
)
out_option = click.option(
    "--out",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results", "traces"),
    show_default=True,
    help="Folder for the traces of what fails.",
)
