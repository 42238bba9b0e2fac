"""The checksum of a file of vectors: any changed digit, letter or name in it gives another one.

FNV-1a in 32 bits over every name and every value of the document, in the order in which they stand, each followed by a
line feed: strings as UTF-8, whole numbers in decimal, and true, false, null as such. The top-level `checksum` itself,
name and value, is left out. White space does not count, nor do brackets.
"""

from collections.abc import Iterator
from typing import Any

OFFSET, PRIME = 2166136261, 16777619
NAME = "checksum"


def checksum(document: dict[str, Any]) -> int:
    """Of a document as JSON reads it, in its order."""
    found = OFFSET
    for word in _words({name: value for name, value in document.items() if name != NAME}):
        for byte in (word + "\n").encode():
            found = ((found ^ byte) * PRIME) & 0xFFFFFFFF
    return found


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _words(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _words(inner)
    elif isinstance(value, str):
        yield value
    else:
        yield {True: "true", False: "false", None: "null"}[value] if value is None or value is True or value is False else str(value)
