"""A file that holds a trace or one state of a pool (a PoolState in JSON), told apart by what is in it."""

from pathlib import Path

import msgspec

from poolproof_conformance.errors import TraceGeometryError, TraceShapeError
from poolproof_conformance.trace_format import Trace
from poolproof_conformance.traces import FORMAT_HELP, check_geometry, parse_document, parse_trace, read_bytes
from poolproof_spec.state import PoolState


def read_state_or_trace(path: Path) -> PoolState | Trace:
    """What the file holds. Raises a TraceError."""
    data = read_bytes(path)
    document = parse_document(data, str(path))
    if "operations" in document or "format" in document:
        return parse_trace(data, str(path))
    try:
        state = msgspec.convert(document, PoolState)
    except msgspec.ValidationError as error:
        raise TraceShapeError(f"{path}: neither a trace nor a state: {error}", FORMAT_HELP) from None
    check_geometry(state.geometry, str(path))
    if len(state.members) != len(state.geometry.members):
        found = f"{path}: {len(state.members)} member states, the geometry has {len(state.geometry.members)} members"
        raise TraceGeometryError(found, "give one member state for each member, low bytes to high")
    return state
