"""Calls, eviction steps and counts in words, the same in every command."""

from collections.abc import Sequence
from typing import Any

import msgspec

from poolproof_spec.geometry import Geometry
from poolproof_spec.operation import AnyOperation, operation_name
from poolproof_spec.outcome import Step

LONGEST_SHOWN = 8
"""Items of a list that are shown before the middle is left out."""


def call_words(operation: AnyOperation) -> str:
    """An operation as a call: alloc(name=a, tokens=5). What has its default is left out."""
    shown = [
        f"{field.name}={_value(value)}"
        for field in msgspec.structs.fields(operation)
        if (value := getattr(operation, field.name)) != field.default
    ]
    return f"{operation_name(operation)}({', '.join(shown)})"


def arena_words(geometry: Geometry) -> str:
    """An arena and its chain in a line: 256 bytes: SWA 32 bytes a page, pages 1 to 7; ..."""
    members = "; ".join(
        f"{member.name} {member.page_bytes} bytes a page, pages {member.first_page} to {member.page_count - 1}"
        for member in geometry.members
    )
    tokens = "" if geometry.page_tokens == 1 else f", {geometry.page_tokens} tokens a page"
    return f"{geometry.total_bytes} bytes{tokens}: {members}"


def step_words(steps: Sequence[Step]) -> str:
    """Eviction steps in a line."""
    return ", ".join(f"{step.kind} {_value(step.key)}" for step in steps) or "none"


def plural(count: int, what: str) -> str:
    """1 page, 2 pages."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _value(value: Any) -> str:
    if not isinstance(value, tuple):
        return str(value)
    shown = [str(item) for item in value]
    if len(shown) > LONGEST_SHOWN:
        shown = [*shown[: LONGEST_SHOWN - 2], f"... {len(shown)} in all"]
    return f"[{', '.join(shown)}]"
