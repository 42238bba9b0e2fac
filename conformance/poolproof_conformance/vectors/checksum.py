"""The checksum of a file of vectors: any changed digit, letter or name in it gives another one.

CRC-32 (as in zlib) over every name and every value of the document, in the order in which they stand, each followed by
a line feed: strings as UTF-8, whole numbers in decimal, and true, false, null as such. The top-level `checksum` itself,
name and value, is left out. White space does not count, nor do brackets.
"""

from collections.abc import Iterator
from typing import Any
from zlib import crc32

NAME = "checksum"


def checksum(document: dict[str, Any]) -> int:
    """Of a document as JSON reads it, in its order."""
    words = _words({name: value for name, value in document.items() if name != NAME})
    return crc32("".join(f"{word}\n" for word in words).encode())


def _words(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for name, inner in value.items():
                yield name
                yield from _words(inner)
        case list():
            for inner in value:
                yield from _words(inner)
        case str():
            yield value
        case None:
            yield "null"
        case bool():
            yield "true" if value else "false"
        case _:
            yield str(value)
