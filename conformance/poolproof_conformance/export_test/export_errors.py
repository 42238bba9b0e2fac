"""What keeps a trace from becoming a test."""

from poolproof_conformance.errors import PoolproofError


class ExportError(PoolproofError):
    """The trace cannot be told as a test of that kind; what was found says why."""
