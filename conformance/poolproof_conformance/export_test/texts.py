"""Names and docstrings of exported tests."""

import re
from textwrap import fill

from poolproof_conformance.trace_format import Trace

WIDTH = 116


def test_name(trace: Trace) -> str:
    """A Python name: test_v1_float_edge_counted."""
    words = re.sub(r"\W+", "_", trace.name.lower(), flags=re.ASCII).strip("_") or "trace"
    return f"test_{words}"


def docstring(trace: Trace, last: str) -> str:
    """What the test is about, in the trace's own words, and how it came to be."""
    parts = [
        f"{trace.name}: {_sentence(trace.note)}" if trace.note else _sentence(trace.name),
        _sentence(trace.explanation),
        f"Source: {trace.source}." if trace.source else "",
        f"Exported from a trace by `poolproof export-test`. {last}",
    ]
    told = "\n\n".join(fill(_plain(part), WIDTH) for part in parts if part)
    return f'"""{told}\n"""'


def _sentence(text: str) -> str:
    return text if not text or text.endswith((".", "!", "?")) else text + "."


def _plain(text: str) -> str:
    """Text that ends no docstring."""
    return text.replace("\\", "/").replace('"', "'")
