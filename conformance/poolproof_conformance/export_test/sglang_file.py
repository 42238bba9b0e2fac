"""A test in released SGLang's own API: it imports torch and sglang, and nothing of poolproof."""

import re
from collections.abc import Iterator, Sequence
from textwrap import fill

from poolproof_conformance.adapter import UnsupportedGeometryError
from poolproof_conformance.export_test import sglang_templates as pieces
from poolproof_conformance.export_test.export_errors import ExportError
from poolproof_conformance.export_test.model_answer import ModelAnswer, model_answer
from poolproof_conformance.export_test.sglang_arguments import factory_arguments
from poolproof_conformance.export_test.sglang_calls import OTHER, call_line, group_is_open, states_in_tree
from poolproof_conformance.export_test.texts import WIDTH, docstring, test_name
from poolproof_conformance.trace_format import Trace
from poolproof_conformance.wording import arena_words, plural
from poolproof_spec import operation as op
from poolproof_spec.catalogue import property_named
from poolproof_spec.geometry import layout_name

FACTORIES = {
    "swa2": "init_unified_swa_pools",
    "mamba2": "init_unified_mamba_pools",
    "tri": "init_unified_mamba_swa_pools",
}
TOLD = frozenset({"complete", "first-sufficient", "irredundant", "preserving", "within-quota"})
"""Properties that a wrong answer to a demand tells: granted or not, and at what cost."""
NEEDS = "Needs sglang with its unified memory pools, and torch. It uses a GPU where there is one."


def sglang_text(trace: Trace) -> str:
    """The file's text. Raises ExportError where the trace cannot be told in that API."""
    answer = model_answer(trace)
    check_shown(trace)
    calls = [call_line(trace.geometry, operation) for operation in trace.operations]
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
    kinds += ["ComponentType.MAMBA"] * states_in_tree(geometry)
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


def _helpers(trace: Trace) -> Iterator[str]:
    """The functions that the calls need, each once."""
    kinds = {type(operation) for operation in trace.operations}
    with_states = states_in_tree(trace.geometry)
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
    if group_is_open(trace):
        yield pieces.QUEUED


def check_shown(trace: Trace) -> None:
    """Raises ExportError where all that the trace shows violated is nothing that an answer to a demand tells."""
    violated = {property_named(name).name for known in trace.expected.targets for name in known.violates}
    told = TOLD | {"deferred-frees"} if group_is_open(trace) else TOLD
    if violated and not violated & told:
        raise ExportError(
            f"{trace.name} shows {', '.join(sorted(violated))} violated, which no answer to a demand tells", OTHER
        )


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
        if group_is_open(trace):
            yield '    assert not queued(pool), f"grouped frees count once something goes: {queued(pool)} still wait"'


def _verdict(answer: ModelAnswer) -> str:
    return "granted" if answer.granted else "rejected"


def _demanded(answer: ModelAnswer) -> str:
    """What the model says, in a sentence without its full stop."""
    if not answer.granted:
        return "The demand is rejected, and nothing cached goes for it"
    cost = "nothing cached" if answer.keeps_all else f"at most {plural(answer.lost_tokens, 'cached token')}"
    return f"The demand is granted, and costs {cost}"
