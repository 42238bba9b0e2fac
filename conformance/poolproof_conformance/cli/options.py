"""Options that several commands take."""

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
