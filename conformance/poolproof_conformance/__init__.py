"""Targets under test, histories, judging, traces and the `poolproof` command."""
