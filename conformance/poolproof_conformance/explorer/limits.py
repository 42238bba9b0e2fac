"""Where an exploration ends before all is seen."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """None where there is no such limit. A run that a limit ends is unknown."""

    depth: int | None = None
    """Operations from the empty pool."""
    states: int | None = None
    """Distinct states."""
    memory_bytes: int | None = None
    """Bytes for what the engine stores."""
