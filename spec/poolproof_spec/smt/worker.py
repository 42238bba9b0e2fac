"""`python -m poolproof_spec.smt.worker z3|cvc5`: decides texts in a process of its own, which can be killed.

One JSON line in, one out; the first line out is a `Hello`. A request's CPU seconds are a limit of the operating system
(SIGXCPU ends the process), its resource limit is the solver's own count, the same on every machine.
"""

import math
import resource
import sys
import time
from collections.abc import Callable
from typing import Any, Literal

import msgspec

Result = Literal["sat", "unsat", "unknown", "timeout", "error"]
"""timeout: CPU seconds spent, or hung. error: the solver could not read the text, or failed."""


class Hello(msgspec.Struct, frozen=True):
    """What the worker runs, or why it cannot."""

    solver: str
    version: str = ""
    missing: str = ""
    """The import error, where the solver is not installed."""


class Request(msgspec.Struct, frozen=True):
    """One text to decide, and with what."""

    text: str
    rung: str
    """Name of a configuration of the solver: a key of Z3_RUNGS or CVC5_RUNGS."""
    seed: int
    resource_limit: int
    """In the solver's own units."""
    cpu_s: float
    memory_bytes: int


class Answer(msgspec.Struct, frozen=True):
    """What came of one request."""

    result: Result
    reason: str = ""
    """Why it is not sat or unsat."""
    model: dict[str, int | bool | str] = {}
    """Of a satisfiable text: values by constant; one that is not there may have any value."""
    resource: int = 0
    """Used, in the solver's own units."""
    seconds: float = 0.0
    """CPU seconds used."""


Z3_RUNGS: dict[str, Callable[[Any, Any], Any]] = {
    "default": lambda z3, context: z3.Solver(ctx=context),
    "simple": lambda z3, context: z3.SimpleSolver(ctx=context),
    "arith-2": lambda z3, context: _with(z3.SimpleSolver(ctx=context), "arith.solver", 2),
}
"""Configurations of z3: its choice by logic, its incremental core alone, and that with the older arithmetic."""

CVC5_RUNGS: dict[str, dict[str, str]] = {
    "default": {},
    "no-rewrite": {"nl-ext-rewrite": "false"},
    "justification": {"decision": "justification"},
}
"""Configurations of cvc5: options by name."""


def _with(solver: Any, name: str, value: object) -> Any:
    solver.set(name, value)
    return solver


def decide_z3(request: Request) -> Answer:
    """Decide with z3, in a context of its own, so that no answer depends on what was asked before."""
    import z3

    context = z3.Context()
    solver = Z3_RUNGS[request.rung](z3, context)
    solver.set("random_seed", request.seed)
    solver.set("rlimit", request.resource_limit)
    solver.from_string(request.text)
    result = str(solver.check())
    used = int(dict(iter(solver.statistics())).get("rlimit count", 0))
    if result == "unknown":
        return Answer("unknown", _reason(used, request, solver.reason_unknown()), resource=used)
    return Answer("sat" if result == "sat" else "unsat", model=_model(z3, solver, result), resource=used)


def _model(z3: Any, solver: Any, result: str) -> dict[str, int | bool | str]:
    if result != "sat":
        return {}
    found = solver.model()
    values: dict[str, int | bool | str] = {}
    for declaration in found.decls():
        value = found[declaration]
        if z3.is_int_value(value):
            values[declaration.name()] = value.as_long()
        elif z3.is_true(value) or z3.is_false(value):
            values[declaration.name()] = z3.is_true(value)
        else:
            values[declaration.name()] = str(value)
    return values


def decide_cvc5(request: Request) -> Answer:
    """Decide with cvc5. Its models are not asked for: z3's are shown."""
    import cvc5

    solver = cvc5.Solver(cvc5.TermManager())
    options = {"rlimit": str(request.resource_limit), "seed": str(request.seed), "sat-random-seed": str(request.seed)}
    for name, value in (options | CVC5_RUNGS[request.rung]).items():
        solver.setOption(name, value)
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, request.text, "question")
    said = ""
    while not (command := parser.nextCommand()).isNull():
        said += command.invoke(solver, parser.getSymbolManager())
    used = int(solver.getStatistics().get(True, True)["resource::resourceUnitsUsed"]["value"])
    match said.split():
        case ["sat" | "unsat" as result]:
            return Answer("sat" if result == "sat" else "unsat", resource=used)
        case ["unknown", *why]:
            said = " ".join(why).strip("()").lower() or "gives no reason"
            return Answer("unknown", _reason(used, request, said), resource=used)
        case _:
            return Answer("error", f"cvc5 said {said.strip()[:200]!r}", resource=used)


def _reason(used: int, request: Request, said: str) -> str:
    if used >= request.resource_limit or "resource" in said:
        return f"resource limit of {request.resource_limit} reached"
    return said


def _limit(request: Request) -> None:
    """Soft limits from here on; the CPU's counts from the start of the process, so it moves with every request."""
    until = math.ceil(time.process_time() + request.cpu_s)
    resource.setrlimit(resource.RLIMIT_CPU, (until, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    resource.setrlimit(resource.RLIMIT_AS, (request.memory_bytes, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _hello(name: str) -> Hello:
    try:
        if name == "z3":
            import z3

            return Hello(name, ".".join(map(str, z3.get_version())))
        import cvc5

        return Hello(name, cvc5.__version__)
    except ImportError as error:
        return Hello(name, missing=str(error))


def main(name: str) -> None:
    """Answer requests until stdin ends."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    decide = decide_z3 if name == "z3" else decide_cvc5
    _say(_hello(name))
    for line in sys.stdin.buffer:
        request = msgspec.json.decode(line, type=Request)
        _limit(request)
        started = time.process_time()
        try:
            answer = decide(request)
        except MemoryError:
            answer = Answer("unknown", f"memory limit of {request.memory_bytes} bytes reached")
        except Exception as error:  # Whatever a solver throws is told; the worker goes on.
            answer = Answer("error", f"{type(error).__name__}: {error}"[:500])
        _say(msgspec.structs.replace(answer, seconds=round(time.process_time() - started, 3)))


def _say(message: Hello | Answer) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1])
