"""Each operation as one line of a test in SGLang's own API."""

import json
from collections.abc import Sequence

from poolproof_conformance.export_test.export_errors import ExportError
from poolproof_conformance.trace_format import Trace
from poolproof_spec import operation as op
from poolproof_spec.geometry import Geometry

OTHER = "poolproof export-test TRACE --for pytest"
"""What to type where a trace cannot be told in that API."""
LONGEST_LIST = 8
"""Longer runs of page keys are written as a range."""


def states_in_tree(geometry: Geometry) -> bool:
    """Prefixes are cached with states where a page is one token."""
    return geometry.has_role("state") and geometry.page_tokens == 1


def group_is_open(trace: Trace) -> bool:
    """Whether frees are being collected when the last demand comes."""
    ends = [operation for operation in trace.operations if isinstance(operation, op.GroupBegin | op.GroupEnd)]
    return bool(ends) and isinstance(ends[-1], op.GroupBegin)


def call_line(geometry: Geometry, operation: op.AnyOperation) -> str:
    """The line that carries one operation out; a demand's is an expression of whether it was granted."""
    match operation:
        case op.Insert(key=key, state=state):
            if state != states_in_tree(geometry):
                what = "with a state" if state else "without a state"
                raise ExportError(f"insert {what}: sglang's tree takes none such in this layout", OTHER)
            return f"insert(pool, {_pages(key)})"
        case op.Match(key=key):
            return f"match(pool, {_pages(key)})"
        case op.LockPrefix(name=name, key=key):
            return f"{_handle(name)} = pool.cache.lock(match(pool, {_pages(key)}))"
        case op.Unlock(name=name):
            return f"pool.cache.unlock({_handle(name)})"
        case op.UnlockWindow(name=name):
            return f"pool.cache.release_swa({_handle(name)})"
        case op.Alloc(name=name, tokens=tokens):
            return f"alloc(pool, {_quoted(name)}, {tokens})"
        case op.Extend(name=name, prefix_lens=prefixes, seq_lens=seqs):
            return f"extend(pool, {_quoted(name)}, {list(prefixes)}, {list(seqs)})"
        case op.Decode(name=name, seq_lens=seqs):
            return f"decode(pool, {_quoted(name)}, {list(seqs)})"
        case op.ExtendTail(name=name, prefix_len=prefix, seq_len=seq, tail=tail):
            return f"extend_tail(pool, {_quoted(name)}, {prefix}, {seq}, {tail})"
        case op.AllocStates(name=name, count=count):
            return f"alloc_states(pool, {_quoted(name)}, {count})"
        case op.Free(name=name) | op.FreeWindow(name=name):
            return f"{op.operation_name(operation)}(pool, {_quoted(name)})"
        case op.GroupBegin():
            return "pool.allocator.free_group_begin()"
        case op.GroupEnd():
            return "pool.allocator.free_group_end()"
        case op.Gate(open=is_open):
            return f"pool.gate_open = {is_open}"
        case op.Compact():
            return "pool.allocator.flush_opportunistic()"
        case op.Query():
            return "pool.allocator.available_size()"
        case _:
            name = op.operation_name(operation)
            raise ExportError(f"{name}: this needs what the engine's scheduler does, which a small test has not", OTHER)


def _pages(key: Sequence[int]) -> str:
    """Page keys as source text; a long run of them as a range."""
    is_run = len(key) > LONGEST_LIST and list(key) == list(range(key[0], key[0] + len(key)))
    return f"list(range({key[0]}, {key[0] + len(key)}))" if is_run else str(list(key))


def _quoted(name: str) -> str:
    return json.dumps(name)


def _handle(name: str) -> str:
    return "lock_" + "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in name)
