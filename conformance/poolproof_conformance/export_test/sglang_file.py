"""A test in released SGLang's own API: it imports torch and sglang, and nothing of poolproof."""

import json
import re
from collections.abc import Iterator, Sequence
from textwrap import fill

from poolproof_conformance.adapter import UnsupportedGeometryError
from poolproof_conformance.export_test import sglang_templates as pieces
from poolproof_conformance.export_test.export_errors import ExportError
from poolproof_conformance.export_test.model_answer import ModelAnswer, model_answer
from poolproof_conformance.export_test.sglang_arguments import factory_arguments
from poolproof_conformance.export_test.texts import WIDTH, docstring, test_name
from poolproof_conformance.trace_format import Trace
from poolproof_conformance.wording import arena_words, plural
from poolproof_spec import operation as op
from poolproof_spec.geometry import Geometry, layout_name

FACTORIES = {
    "swa2": "init_unified_swa_pools",
    "mamba2": "init_unified_mamba_pools",
    "tri": "init_unified_mamba_swa_pools",
}
LONGEST_LIST = 8
"""Longer runs of page keys are written as a range."""
OTHER = "poolproof export-test TRACE --for pytest"
NEEDS = "Needs sglang with its unified memory pools, and torch. It uses a GPU where there is one."


def sglang_text(trace: Trace) -> str:
    """The file's text. Raises ExportError where the trace cannot be told in that API."""
    answer = model_answer(trace)
    calls = [_call(trace.geometry, operation) for operation in trace.operations]
    body = "\n".join(_body(trace, calls, answer))
    helpers = "\n".join(_helpers(trace))
    rest = f"{helpers}\n\ndef {test_name(trace)}() -> None:\n{body}\n"
    return _head(trace, rest) + "\n" + rest


def _imports(text: str) -> Iterator[str]:
    """Those that the text uses."""
    for line, names in pieces.IMPORTS:
        used = [name for name in names if re.search(rf"\b{name}\b[.(]", text)]
        if used:
            yield f"{line} {', '.join(used)}"
        elif not names and (line != "from array import array" or "array(" in text):
            yield line


def _head(trace: Trace, rest: str) -> str:
    geometry = trace.geometry
    layout = layout_name(geometry)
    if layout not in FACTORIES:
        raise ExportError(f"{trace.name}: sglang has the layouts {', '.join(FACTORIES)}, this is none of them", OTHER)
    try:
        arguments = factory_arguments(geometry, lazy=trace.mode == "lazy")
    except UnsupportedGeometryError as error:
        raise ExportError(f"{trace.name}: {error}", OTHER) from None
    kinds = ["ComponentType.FULL"] + ["ComponentType.SWA"] * geometry.has_role("swa")
    kinds += ["ComponentType.MAMBA"] * _states_in_tree(geometry)
    told = {"FULL": "full", "SWA": "swa", "MAMBA": "mamba"}
    counts = (told[kind.partition(".")[2]] for kind in kinds)
    return pieces.HEAD.format(
        docstring=docstring(trace, NEEDS),
        imports="\n".join(_imports(pieces.HEAD + "ComponentType." + rest)),
        page_tokens=geometry.page_tokens,
        arena=fill(f"{arena_words(geometry)}.", WIDTH - 4, subsequent_indent="    "),
        factory=FACTORIES[layout],
        arguments="\n".join(f"        {name}={value}," for name, value in arguments.items()),
        total_bytes=geometry.total_bytes,
        window=geometry.window_tokens or None,
        components=", ".join(kinds) + ("," if len(kinds) == 1 else ""),
        cached="\n".join(f'        "{n}": cache.{n}_evictable_size() + cache.{n}_protected_size(),' for n in counts),
    )


def _states_in_tree(geometry: Geometry) -> bool:
    """Prefixes are cached with states where a page is one token."""
    return geometry.has_role("state") and geometry.page_tokens == 1


def _helpers(trace: Trace) -> Iterator[str]:
    """The functions that the calls need, each once."""
    kinds = {type(operation) for operation in trace.operations}
    with_states = _states_in_tree(trace.geometry)
    if kinds & {op.Alloc, op.Extend, op.Decode}:
        yield pieces.REFUSED
    if op.Insert in kinds:
        yield pieces.INSERT.format(
            state_parameter="",
            slot="    slot = pool.requests.mamba_allocator.alloc(1)\n" * with_states
            + '    assert slot is not None, "the setup needs room for the state"\n' * with_states,
            mamba_value=", mamba_value=slot" * with_states,
            result="result = " * with_states,
            freed=(
                "    if result.mamba_exist:\n        pool.requests.mamba_allocator.free(slot)\n" if with_states else ""
            ),
        )
    paged = trace.geometry.page_tokens > 1
    for kind, text in (
        (op.LockPrefix, pieces.MATCH),
        (op.Alloc, pieces.ALLOC_PAGES if paged else pieces.ALLOC_TOKENS),
        (op.Extend, pieces.EXTEND),
        (op.Decode, pieces.DECODE),
        (op.ExtendTail, pieces.EXTEND_TAIL),
        (op.AllocStates, pieces.ALLOC_STATES),
    ):
        if kind in kinds or (kind is op.LockPrefix and op.Match in kinds):
            yield text
    if kinds & {op.Free, op.FreeWindow}:
        yield pieces.FREE
    if op.FreeWindow in kinds:
        yield pieces.FREE_WINDOW


def _call(geometry: Geometry, operation: op.AnyOperation) -> str:
    """The line that carries one operation out; a demand's is an expression of whether it was granted."""
    match operation:
        case op.Insert(key=key, state=state):
            if state != _states_in_tree(geometry):
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


def _body(trace: Trace, calls: Sequence[str], answer: ModelAnswer) -> Iterator[str]:
    yield f'    """{_demanded(answer)}."""'
    yield "    pool = build()"
    if any(isinstance(operation, op.Gate) for operation in trace.operations):
        yield "    pool.allocator.set_disagg_move_gate(lambda: pool.gate_open)"
    for operation, call in zip(trace.operations[:-1], calls[:-1], strict=True):
        is_demand = isinstance(operation, op.DemandOperation)
        yield f'    assert {call}, "the setup is granted"' if is_demand else f"    {call}"
    yield "    before = cached(pool)"
    yield f"    granted = {calls[-1]}"
    yield "    after = cached(pool)"
    yield "    lost = {kind: before[kind] - after[kind] for kind in before}"
    yield f'    assert granted is {answer.granted}, "it is to be {_verdict(answer)}"'
    if answer.keeps_all:
        yield '    assert lost == dict.fromkeys(lost, 0), f"nothing cached need go: lost {lost}"'
    else:
        yield f'    assert lost["full"] <= {answer.lost_tokens}, f"no more need go: lost {{lost}}"'


def _verdict(answer: ModelAnswer) -> str:
    return "granted" if answer.granted else "rejected"


def _demanded(answer: ModelAnswer) -> str:
    """What the model says, in a sentence without its full stop."""
    if not answer.granted:
        return "The demand is rejected, and nothing cached goes for it"
    cost = "nothing cached" if answer.keeps_all else f"at most {plural(answer.lost_tokens, 'cached token')}"
    return f"The demand is granted, and costs {cost}"
