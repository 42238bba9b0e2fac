"""Hold files of vectors against the specification: every answer is derived again, nothing is taken on trust."""

from collections.abc import Iterator

import msgspec

from poolproof_conformance.vectors import counterexamples
from poolproof_conformance.vectors.answers import fits_answer, page_demand, reserve_answer
from poolproof_conformance.vectors.vector_files import cases_of
from poolproof_conformance.vectors.vector_format import (
    AnyVectorFile,
    DemandCase,
    FitsCase,
    PageDemand,
    ReserveCase,
    vector_state,
)
from poolproof_reference.errors import RefusedError
from poolproof_reference.joint_pool import JointPool
from poolproof_spec.geometry import Geometry, geometry_problems
from poolproof_spec.state import PoolState


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Where a file, or a target, departs from the model."""

    file: str
    tcId: int
    """0 where the file as a whole is meant."""
    message: str


def differences(name: str, file: AnyVectorFile) -> Iterator[Difference]:
    """What in the file is not as the specification says; nothing where all of it is."""
    yield from (Difference(file=name, tcId=0, message=text) for text in _file_problems(file))
    for group in file.testGroups:
        problems = geometry_problems(group.geometry)
        for case in group.tests:
            found = problems or list(case_problems(group.geometry, case))
            yield from (Difference(file=name, tcId=case.tcId, message=text) for text in found)


def _file_problems(file: AnyVectorFile) -> Iterator[str]:
    cases = cases_of(file)
    if file.numberOfTests != len(cases):
        yield f"numberOfTests {file.numberOfTests}, there are {len(cases)} cases"
    if [case.tcId for case in cases] != list(range(1, len(cases) + 1)):
        yield "tcId does not count up from 1"
    used = {flag for case in cases for flag in case.flags}
    if used != file.notes.keys():
        yield f"flags without a note, or notes without a case: {sorted(used ^ file.notes.keys())}"
    if not cases:
        yield "no cases"


def case_problems(geometry: Geometry, case: DemandCase | FitsCase | ReserveCase) -> Iterator[str]:
    """Each field of the case that the specification derives otherwise."""
    match case:
        case DemandCase():
            yield from _demand_problems(geometry, case)
        case FitsCase():
            if len(case.needs) != len(geometry.members):
                yield f"{len(case.needs)} needs for {len(geometry.members)} members"
                return
            yield from _unlike(case, fits_answer(geometry, case.needs))
        case ReserveCase():
            yield from _reserve_problems(geometry, case)


def _unlike(case: msgspec.Struct, answer: msgspec.Struct) -> Iterator[str]:
    for name in answer.__struct_fields__:
        told, found = getattr(case, name), getattr(answer, name)
        if told != found:
            yield f"{name}: the file says {told}, the specification {found}"


def _demand_problems(geometry: Geometry, case: DemandCase) -> Iterator[str]:
    state = reached(geometry, case.setup)
    if state is None:
        yield "the setup is refused"
        return
    yield from _pages_differ(case.pages, page_demand(state, case.operation))
    if (case.result == "refused") != (case.pages is None):
        yield f"result {case.result} with pages {case.pages}"


def _pages_differ(told: PageDemand | None, found: PageDemand | None) -> Iterator[str]:
    if told != found:
        yield f"pages: the file says {told}, the specification {found}"


def _reserve_problems(geometry: Geometry, case: ReserveCase) -> Iterator[str]:
    if len(case.state.members) != len(geometry.members):
        yield f"{len(case.state.members)} member states for {len(geometry.members)} members"
        return
    state = case.state.in_arena(geometry)
    arrived = reached(geometry, case.operations)
    if arrived is None or vector_state(arrived) != case.state:
        yield "the operations do not lead the reference to the state"
    pages = page_demand(state, case.operation)
    yield from _pages_differ(case.pages, pages)
    if pages is not None:
        yield from _unlike(case, reserve_answer(state, case.operation))
    yield from _wrong_problems(geometry, case)


def _wrong_problems(geometry: Geometry, case: ReserveCase) -> Iterator[str]:
    """A wrong answer must be one that the trace of that name foretells; a policy's is found by running it."""
    if not case.wrong:
        return
    name = case.comment.partition(":")[0]
    trace = next((trace for trace in counterexamples.known_traces() if trace.name == name), None)
    if trace is None:
        yield f"no known trace {name!r}"
        return
    found = tuple(counterexamples.wrong_answer(trace, known) for known in trace.expected.targets)
    if found != case.wrong:
        yield f"wrong: the file says {case.wrong}, the trace {found}"


def reached(geometry: Geometry, operations: tuple[object, ...]) -> PoolState | None:
    """Where the operations lead the reference; None where it refuses one."""
    pool = JointPool(geometry)
    try:
        for operation in operations:
            pool.apply(operation)  # type: ignore[arg-type]
    except RefusedError:
        return None
    return pool.observe()
