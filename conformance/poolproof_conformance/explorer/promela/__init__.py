"""The model as text for SPIN: `promela`."""

from poolproof_conformance.explorer.promela.export import promela

__all__ = ["promela"]
