"""A test of an adapter: the trace itself, run and judged by poolproof, which is all that it imports."""

import json

from poolproof_conformance.export_test.texts import docstring, test_name
from poolproof_conformance.trace_format import Trace
from poolproof_conformance.traces import trace_text
from poolproof_spec.catalogue import PROPERTIES, property_named

_TEMPLATE = '''{docstring}

import os

from poolproof_conformance.run import run_history
from poolproof_conformance.target_names import resolve_target
from poolproof_conformance.traces import parse_trace

TARGET = os.environ.get("POOLPROOF_TARGET", {target})
"""As `poolproof replay --target` takes it: a name, a release, or the path of an adapter."""
TREE_CORE = os.environ.get("POOLPROOF_TREE_CORE", "rust")
MODE = os.environ.get("POOLPROOF_MODE", {mode})
PROPERTIES = {properties}
"""What the trace shows violated; see docs/spec.md."""

TRACE = r"""
{trace}"""


def {name}() -> None:
    """None of these is violated."""
    trace = parse_trace(TRACE.encode(), __file__)
    with resolve_target(TARGET, TREE_CORE, MODE).opened() as adapter:
        run = run_history(adapter, trace.geometry, trace.operations)
    assert run.verdict != "unknown", f"no answer is no pass: {{run.reason}}"
    assert run.steps[-1].index == len(trace.operations) - 1 and run.steps[-1].outcome is not None, "not reached"
    found = [f"operation {{i}}: {{f.property}}: {{f.message}}" for i, f in run.findings if f.property in PROPERTIES]
    assert not found, "\\n".join(found)
'''


def pytest_text(trace: Trace, target: str = "reference") -> str:
    """The file's text. `target` is what it tests unless POOLPROOF_TARGET says otherwise."""
    return _TEMPLATE.format(
        docstring=docstring(trace, "Run it with pytest; POOLPROOF_TARGET names what is tested."),
        target=json.dumps(target),
        mode=json.dumps(trace.mode or "eager"),
        properties="(" + ", ".join(json.dumps(name) for name in shown_violated(trace)) + ",)",
        trace=_raw(trace_text(trace)),
        name=test_name(trace),
    )


def shown_violated(trace: Trace) -> tuple[str, ...]:
    """What the test is about: the rules violated by every known target that answers otherwise than the model.

    Where none answers otherwise, by any known target; where none is known, all rules.
    """
    known = [expectation for expectation in trace.expected.targets if expectation.violates]
    otherwise = [expectation for expectation in known if expectation.outcomes]
    sets = [{property_named(name).name for name in expectation.violates} for expectation in otherwise or known]
    if not sets:
        return tuple(rule.name for rule in PROPERTIES)
    shared = set.intersection(*sets) or set.union(*sets)
    return tuple(rule.name for rule in PROPERTIES if rule.name in shared)


def _raw(text: str) -> str:
    """The trace as it stands in a raw string: three quotes in a row would end it."""
    return text.replace('"""', '\\"\\"\\"') if '"""' in text else text
