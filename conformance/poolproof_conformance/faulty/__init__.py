"""Pools that are wrong on purpose, each a small change of the reference, named by its fault: they test the rules."""
