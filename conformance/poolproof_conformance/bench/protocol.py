"""The messages between the benchmark and a subject's process: one JSON object a line, both ways, one answer each."""

import msgspec


class Ask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the benchmark asks: `describe`, `prepare` a cell, or `run` what was prepared."""

    ask: str
    work: str = ""
    size: int = 0


class Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the subject answers; all is well where neither `cannot` nor `error` is set."""

    versions: dict[str, str] | None = None
    """To `describe`."""
    value: float | None = None
    """To `run`: microseconds an operation, or bytes an entry."""
    cannot: str | None = None
    """This subject has no such work, and why."""
    error: str | None = None
    """The subject failed: its figures are unknown."""
