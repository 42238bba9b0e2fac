"""Theorems about the rules, for all sizes: the one place that imports z3 and cvc5."""
