"""The JSON Schema of a trace, made from the types that read it: `python -m poolproof_conformance.trace_schema`.

Prints it; the committed copy is schema/trace-1.schema.json, which a test keeps fresh.
"""

import json
from typing import Any

import msgspec

from poolproof_conformance.trace_format import FORMAT, Trace


def trace_schema() -> dict[str, Any]:
    """JSON Schema, draft 2020-12."""
    schema = msgspec.json.schema(Trace)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:poolproof:trace:{FORMAT}",
        "title": f"poolproof trace, format {FORMAT}",
        **schema,
    }


def schema_text() -> str:
    """The text of the committed file."""
    return json.dumps(trace_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(schema_text(), end="")
