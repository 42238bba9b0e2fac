"""What a worker is given and what it hands back; everything that a campaign keeps follows from these."""

import msgspec

from poolproof_conformance.campaigns.rows import Cell
from poolproof_conformance.generator import History

EXHAUSTIVE, RANDOM = 0, 1
"""The stages of a campaign, in the order in which they are done."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A part of one stage in one cell: always the same histories, whoever runs it."""

    cell: Cell
    stage: int
    number: int
    """From 0: which part of the stage."""
    seed: int
    """Of the random histories."""
    history_limit_s: float
    """Longest time for one history, in seconds; one that takes longer is a doubt."""


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """Histories of one job that violate one rule in ways that look alike."""

    property: str
    bucket: str
    """Signature of the unshrunk history."""
    histories: int
    history: History
    """The shortest of them, up to the operation that violates the rule."""


class JobResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a job."""

    cell: Cell
    stage: int
    number: int
    histories: int = 0
    operations: int = 0
    unbuilt: int = 0
    witnessed: dict[str, int] = {}
    unchecked: tuple[str, ...] = ()
    doubts: dict[str, int] = {}
    sightings: tuple[Sighting, ...] = ()
    seconds: float = 0.0


class PendingShrink(msgspec.Struct, frozen=True, kw_only=True):
    """The earliest sighting of a bucket: to be shrunk."""

    cell: Cell
    stage: int
    number: int
    property: str
    bucket: str
    history: History
    seed: int = 0
    history_limit_s: float = 30.0


class ShrinkResult(msgspec.Struct, frozen=True, kw_only=True):
    """A sighting made small."""

    sighting: PendingShrink
    signature: str
    """Of the shrunk history: with the property, the kind."""
    operations: int
    message: str
    trace: str
    """Text of the trace file."""
    seconds: float = 0.0
