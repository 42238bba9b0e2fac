"""Cases of counterexamples.json: on each a known target or policy is wrong, its answer beside the right one.

They are the known traces of this package, each up to the demand on which the target departs from the model. Where that
target declares its members anchored and this changes the answer, the anchored arena is a case of its own.
"""

from collections.abc import Iterator
from importlib.resources import files

from msgspec.structs import replace

from poolproof_conformance.policy_pools import PolicyAdapter
from poolproof_conformance.replay import evicted_pages
from poolproof_conformance.run import run_history
from poolproof_conformance.trace_format import TargetExpectation, Trace
from poolproof_conformance.traces import parse_trace
from poolproof_conformance.vectors.reserve_cases import reserve_case
from poolproof_conformance.vectors.vector_format import ReserveCase, ReserveGroup, WrongAnswer
from poolproof_reference.joint_pool import JointPool
from poolproof_spec.geometry import Geometry
from poolproof_spec.operation import AnyDemand, DemandOperation
from poolproof_spec.outcome import Granted, Rejected

POLICY = "policy:"


def known_traces() -> list[Trace]:
    """The traces that this package carries, by name."""
    folder = files("poolproof_conformance") / "known_traces"
    texts = sorted((entry.name, entry.read_bytes()) for entry in folder.iterdir() if entry.name.endswith(".json"))
    return [parse_trace(text, name) for name, text in texts]


def counterexample_groups() -> Iterator[ReserveGroup]:
    """One group for each trace, and one more where anchors change the answer; the ids are given later."""
    for trace in known_traces():
        plain = _case(trace, trace.geometry)
        yield ReserveGroup(geometry=trace.geometry, tests=(plain,))
        anchored = _anchored(trace.geometry)
        other = _case(trace, anchored, "Anchored")
        if (other.result, other.steps, other.reason) != (plain.result, plain.steps, plain.reason):
            yield ReserveGroup(geometry=anchored, tests=(other,))


def _anchored(geometry: Geometry) -> Geometry:
    return replace(geometry, members=tuple(replace(member, anchored=True) for member in geometry.members))


def _case(trace: Trace, geometry: Geometry, *flags: str) -> ReserveCase:
    demand = trace.operations[-1]
    assert isinstance(demand, DemandOperation), f"{trace.name} ends with a demand"
    pool = JointPool(geometry)
    for operation in trace.operations[:-1]:
        pool.apply(operation)
    call: AnyDemand = demand
    right = reserve_case(trace.operations[:-1], pool.observe(), call)
    wrong = tuple(wrong_answer(trace, known) for known in trace.expected.targets)
    if trace.name.startswith("seed-"):
        flags = (*flags, "SeedCase")
    return replace(
        right,
        comment=f"{trace.name}: {trace.note}",
        wrong=wrong,
        flags=tuple(dict.fromkeys((*right.flags, *_wrong_flags(right, wrong), *flags))),
    )


def wrong_answer(trace: Trace, known: TargetExpectation) -> WrongAnswer:
    """What the trace foretells of a target for its last operation; of a policy, what its pool really does."""
    if known.target.startswith(POLICY):
        return policy_answer(trace, known.target.removeprefix(POLICY))
    told = known.outcomes.get(len(trace.operations) - 1)
    return WrongAnswer(
        target=known.target,
        tree_core=known.tree_core,
        mode=known.mode,
        result=None if told is None else told.result,
        evicted_pages=None if told is None else told.evicted_pages,
        violates=known.violates,
    )


def policy_answer(trace: Trace, policy: str) -> WrongAnswer:
    """Run the policy's pool on the trace."""
    run = run_history(PolicyAdapter(policy), trace.geometry, trace.operations)
    last = run.steps[-1]
    assert isinstance(last.outcome, Granted | Rejected), f"{policy} answers {trace.name}"
    return WrongAnswer(
        target=POLICY + policy,
        result="granted" if isinstance(last.outcome, Granted) else "rejected",
        evicted_pages=evicted_pages(last),
        violates=tuple(run.violated()),
    )


def _wrong_flags(right: ReserveCase, wrong: tuple[WrongAnswer, ...]) -> Iterator[str]:
    for answer in wrong:
        lost = answer.evicted_pages or 0
        if answer.result == "rejected" and right.result == "granted":
            yield "WrongRejection"
        if answer.result == "granted" and right.result == "granted" and lost > right.evicted_pages:
            yield "TooDear"
        if answer.result == "rejected" and lost:
            yield "LossyRejection"
