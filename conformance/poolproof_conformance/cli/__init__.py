"""The `poolproof` command: a file for each subcommand."""
