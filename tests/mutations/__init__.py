"""Mutations of the specification: what each premise and constant is there for."""
