"""Ask a target under test what the vectors ask.

demand: the operation on an empty pool; what it hands out is what it demanded. reserve, counterexamples: the history,
then the demand; judged where the target arrives at the same question, that is, unless its pages lie elsewhere and
some are pinned. fits: a target has no such call; pools of this project are asked for their own decision of it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from poolproof_conformance.adapter import Adapter, UnsupportedGeometryError
from poolproof_conformance.child import TargetFailureError
from poolproof_conformance.run import applies
from poolproof_conformance.vectors.answers import as_demand, occupancies, reserve_answer
from poolproof_conformance.vectors.question import question
from poolproof_conformance.vectors.vector_format import (
    AnyCase,
    AnyVectorFile,
    DemandCase,
    FitsCase,
    Need,
    PageDemand,
    ReserveCase,
)
from poolproof_conformance.vectors.verify import Difference
from poolproof_spec.fits import fits
from poolproof_spec.geometry import Geometry
from poolproof_spec.operation import AnyOperation
from poolproof_spec.outcome import AnyOutcome, Blocked, Crashed, Granted, Refused, Rejected, Unsupported
from poolproof_spec.state import PoolState
from poolproof_spec.sweep import sweep

Decider = Callable[[Geometry, Sequence[Need]], bool]
"""A pool's own decision of whether needs fit."""


class Judged(msgspec.Struct, kw_only=True):
    """What came of one file on one target."""

    file: str
    passed: int = 0
    differences: list[Difference] = []
    skipped: dict[str, list[int]] = {}
    """Why cases were not judged, and which: their ids."""
    doubts: list[str] = []
    """Cases to which the target gave no usable answer."""


class _SkippedError(Exception):
    """The case cannot be put to this target; the message says why."""


class _DoubtError(Exception):
    """The target gave no usable answer."""


def decider_of(target: str) -> Decider | None:
    """The reference's own decision, or the fast pool's; None for any other target."""
    if target == "reference":
        return lambda geometry, needs: bool(sweep(occupancies(geometry, needs)).fits)
    if target.partition(":")[0] == "fast":
        return _fast_decides
    return None


def _fast_decides(geometry: Geometry, needs: Sequence[Need]) -> bool:
    from poolproof_fast.question import rule_of  # torch takes its time to import

    rule, arguments = rule_of(geometry), []
    for need in occupancies(geometry, needs):
        arguments += [need.pinned_count, need.pinned_start, need.pinned_end, need.loose_count]
    return bool(rule.pinned(*arguments))


def judge_file(
    name: str,
    file: AnyVectorFile,
    adapter: Adapter,
    on_case: Callable[[], None] = lambda: None,
    *,
    level: int = 2,
) -> Judged:
    """Put every case of a file to the target.

    At level 0 no victims are judged, at level 1 only whether a demand is granted, and the reason where it is not.
    """
    result, judge = Judged(file=name), _Judge(adapter, level)
    for group in file.testGroups:
        for case in group.tests:
            try:
                found = list(judge.differs(group.geometry, case))
            except _SkippedError as reason:
                result.skipped.setdefault(str(reason), []).append(case.tcId)
            except (_DoubtError, TargetFailureError) as reason:
                result.doubts.append(f"{name} {case.tcId}: {reason}")
            else:
                result.passed += not found
                result.differences += [Difference(file=name, tcId=case.tcId, message=text) for text in found]
            on_case()
    return result


class _Judge:
    """One target, asked case by case."""

    def __init__(self, adapter: Adapter, level: int) -> None:
        self.adapter, self.level = adapter, level
        self.description = adapter.describe()
        self.decider = decider_of(self.description.target)
        self.is_choosy = self.description.operations is not None or bool(
            {"gates", "groups", "in_flight"} & set(self.description.cannot)
        )

    def differs(self, geometry: Geometry, case: AnyCase) -> Iterator[str]:
        """Where the target departs from the case. Raises _SkippedError, _DoubtError."""
        match case:
            case FitsCase():
                if self.decider is None:
                    raise _SkippedError("fits: the target has no such call")
                if self.decider(geometry, case.needs) != (case.result == "fits"):
                    yield f"{case.result} expected"
            case DemandCase():
                yield from self._demand_differs(geometry, case)
            case ReserveCase():
                if self.level < 1:
                    raise _SkippedError("at level 0 no victims are judged")
                yield from self._reserve_differs(geometry, case)

    def _played(
        self, geometry: Geometry, operations: Sequence[AnyOperation], last: AnyOperation
    ) -> tuple[PoolState, AnyOutcome]:
        """The state before the last operation, and its outcome."""
        anchored = {member.name for member in geometry.members if member.anchored}
        if self.decider is None and not anchored <= set(self.description.anchored):
            raise _SkippedError("the arena has anchored members, the target declares none such")
        try:
            self.adapter.build(geometry)
        except UnsupportedGeometryError:
            raise _SkippedError("the target does not build such an arena") from None
        for operation in operations:
            if self.is_choosy and not applies(self.adapter.observe(), operation, self.description):
                raise _SkippedError("the target does not take the calls that lead there")
            outcome = self.adapter.apply(operation)
            if isinstance(outcome, Crashed):
                raise _DoubtError(outcome.reason)
            if isinstance(outcome, Unsupported | Refused):
                raise _SkippedError("the target does not take the calls that lead there")
        state = replace(self.adapter.observe(), geometry=self._as_declared(geometry))
        if not applies(state, last, self.description):
            raise _SkippedError("the target is not sent such calls")
        outcome = self.adapter.apply(last)
        if isinstance(outcome, Crashed):
            raise _DoubtError(outcome.reason)
        if isinstance(outcome, Unsupported):
            raise _SkippedError(f"the target has no such call: {outcome.what}")
        return state, outcome

    def _as_declared(self, geometry: Geometry) -> Geometry:
        names = self.description.anchored
        members = tuple(replace(m, anchored=m.anchored or m.name in names) for m in geometry.members)
        return replace(geometry, members=members)

    def _demand_differs(self, geometry: Geometry, case: DemandCase) -> Iterator[str]:
        state, outcome = self._played(geometry, case.setup, case.operation)
        if case.pages is None:
            if not isinstance(outcome, Refused):
                yield f"refused expected, {_kind(outcome)} found"
            return
        if not fits(state, as_demand(case.pages, case.operation.may_wait)):
            if not isinstance(outcome, Rejected):
                yield f"rejected expected: more than the arena holds; {_kind(outcome)} found"
            return
        if not isinstance(outcome, Granted):
            if self.level < 1:
                raise _SkippedError("rejected, which level 0 allows")
            yield f"granted expected, {_kind(outcome)} found"
            return
        roles = {member.name: member.role for member in geometry.members}
        found = Counter(roles[member] for member, _ in outcome.pages)
        handed_out = PageDemand(full_pages=found["full"], swa_pages=found["swa"], state_pages=found["state"])
        if handed_out != case.pages:
            yield f"{case.pages} expected, {handed_out} handed out"

    def _reserve_differs(self, geometry: Geometry, case: ReserveCase) -> Iterator[str]:
        state, outcome = self._played(geometry, case.operations, case.operation)
        may_wait, cannot = case.operation.may_wait, set(self.description.cannot)
        if question(state, may_wait) != question(case.state.in_arena(geometry), may_wait):
            raise _SkippedError("the target's pages came to lie elsewhere, or its cache is another")
        answer = reserve_answer(state, case.operation)
        if (answer.result, answer.reason, answer.steps) != (case.result, case.reason, case.steps):
            raise _SkippedError("the anchors that the target declares change the answer")
        if not isinstance(outcome, Granted | Rejected) or _kind(outcome) != case.result:
            yield f"{case.result} expected, {_kind(outcome)} found"
            return
        if isinstance(outcome, Rejected) and outcome.reason is not None and _told(outcome.reason) != _told(case.reason):
            yield f"reason {case.reason} expected, {outcome.reason} found"
        if "steps" in cannot:
            return
        if self.level >= 2 and "policy_order" not in cannot and outcome.steps != case.steps:
            yield f"steps {case.steps} expected, {outcome.steps} found"
        elif not case.steps and outcome.steps:
            yield f"no step is needed, {len(outcome.steps)} taken"


def _told(reason: object) -> object:
    """Of a reason what any correct pool must say: several bounds may fail, and several smallest sets may block."""
    return ("blocked", len(reason.by)) if isinstance(reason, Blocked) else "impossible"


def _kind(outcome: AnyOutcome) -> str:
    return str(outcome.__struct_config__.tag)
