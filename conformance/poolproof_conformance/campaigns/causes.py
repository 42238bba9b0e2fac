"""What is known of why a kind of failure happens: texts written by hand, in causes.json, found by kind."""

from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

import msgspec


class Cause(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One cause, and the kinds that it is known to explain."""

    id: str
    title: str
    text: str
    kinds: tuple[tuple[str, str], ...]
    """(property, signature), each with * for anything; the first cause that matches a kind is taken."""
    see: str = ""
    """Name of a known trace on which the cause was worked out."""

    def explains(self, property_name: str, signature: str) -> bool:
        """Whether one of its patterns is about the kind."""
        return any(
            fnmatchcase(property_name, known) and fnmatchcase(signature, pattern) for known, pattern in self.kinds
        )


@cache
def causes() -> tuple[Cause, ...]:
    """All of them, in the order of the file."""
    data = (files("poolproof_conformance.campaigns") / "causes.json").read_bytes()
    return msgspec.json.decode(data, type=tuple[Cause, ...])


def cause_of(property_name: str, signature: str) -> Cause | None:
    """The first cause that explains a kind; None where none is known."""
    return next((cause for cause in causes() if cause.explains(property_name, signature)), None)
