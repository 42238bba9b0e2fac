"""Run one history on one target and judge every step on the target's own observed states."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from msgspec.structs import replace

from poolproof_conformance.adapter import Adapter, Description, Inability, UnsupportedGeometryError
from poolproof_conformance.child import TargetFailureError
from poolproof_spec import operation as op
from poolproof_spec.calls import is_good_call
from poolproof_spec.catalogue import PROPERTIES, Property
from poolproof_spec.geometry import Geometry
from poolproof_spec.outcome import AnyOutcome, Crashed, Refused, Unsupported
from poolproof_spec.payload import largest_stamp
from poolproof_spec.state import PoolState
from poolproof_spec.transition import Transition
from poolproof_spec.units import VirtualId
from poolproof_spec.verdict import Verdict

UNCHECKED: dict[Inability, str] = {
    "reasons": "honest-reason",
    "payloads": "payloads-kept",
    "refusals": "refusal-changes-nothing",
    "policy_order": "policy-order",
    "recency": "recency-exact",
    "match_rule": "match-usable",
}
"""What cannot be judged of a target that declares an inability: reported as unchecked."""


@dataclass(frozen=True)
class Finding:
    """What a rule, or the runner itself, found wrong with one step."""

    property: str
    """Name of the rule; `target-answers` where the target gave no usable answer."""
    verdict: Literal["violated", "unknown"]
    message: str


@dataclass(frozen=True)
class StepRecord:
    """One operation of a history as it went."""

    index: int
    operation: op.AnyOperation
    outcome: AnyOutcome | None
    """None where the runner skipped it: what it names does not exist in this target."""
    before: PoolState
    after: PoolState
    findings: tuple[Finding, ...] = ()
    transition: Transition | None = None


@dataclass(frozen=True)
class HistoryRun:
    """A whole history on one target."""

    steps: tuple[StepRecord, ...]
    verdict: Verdict
    reason: str = ""
    """Why the verdict is unknown."""
    built: bool = True
    """False where the target cannot be built with this geometry: nothing was run."""

    @property
    def findings(self) -> list[tuple[int, Finding]]:
        """(index of the operation, finding) in order."""
        return [(step.index, finding) for step in self.steps for finding in step.findings]

    def violated(self) -> dict[str, int]:
        """Name of each violated rule, and the index of the operation that first violates it."""
        first: dict[str, int] = {}
        for index, finding in self.findings:
            if finding.verdict == "violated":
                first.setdefault(finding.property, index)
        return first


@dataclass
class Ledger:
    """What was last written to each live page, so that W6 has something to compare with."""

    limit: int
    stamp: int = 0
    written: dict[tuple[str, VirtualId], int] = field(default_factory=dict)

    def next_stamp(self) -> int:
        """A stamp that differs from the last ones."""
        self.stamp = self.stamp % self.limit + 1
        return self.stamp

    def complete(self, state: PoolState) -> PoolState:
        """The observed state with `written` filled in for what is live."""
        live = {
            (member.name, identifier)
            for member, now in zip(state.geometry.members, state.members, strict=True)
            for identifier, _ in now.bindings
        }
        self.written = {page: stamp for page, stamp in self.written.items() if page in live}
        entries = tuple(sorted((name, identifier, stamp) for (name, identifier), stamp in self.written.items()))
        return replace(state, written=entries)


class Session:
    """One history on one target, step by step. `build` in the constructor may raise what a target's build raises."""

    def __init__(self, adapter: Adapter, geometry: Geometry, level: int = 2) -> None:
        self.adapter = adapter
        self.description = adapter.describe()
        self.rules = [rule for rule in checked_properties(self.description) if rule.level <= level]
        adapter.build(geometry)
        anchored = self.description.anchored
        members = tuple(replace(m, anchored=m.anchored or m.name in anchored) for m in geometry.members)
        self.geometry = replace(geometry, members=members)
        self.ledger = Ledger(largest_stamp(min(member.page_bytes for member in geometry.members)))
        self.state = self.observe()

    def observe(self) -> PoolState:
        """The target's state, with the declared anchors and what was written."""
        return self.ledger.complete(replace(self.adapter.observe(), geometry=self.geometry))

    def step(self, index: int, operation: op.AnyOperation) -> StepRecord:
        """Apply one operation and judge it; an operation that does not apply to the target's state is skipped."""
        before = self.state
        if not applies(before, operation, self.description):
            return StepRecord(index, operation, None, before, before)
        outcome = self.adapter.apply(operation)
        for member, identifier in getattr(outcome, "pages", ()):
            stamp = self.ledger.next_stamp()
            self.adapter.write(member, identifier, stamp)
            self.ledger.written[member, identifier] = stamp
        if isinstance(outcome, Crashed):
            return StepRecord(index, operation, outcome, before, before, (no_answer(outcome.reason),))
        self.state = self.observe()
        transition = self.transition(before, operation, outcome)
        found = [*self.judge(transition)]
        if isinstance(outcome, Refused) and transition.good_call and transition.demand is None:
            found.append(no_answer(f"refused a well-formed call: {outcome.error}: {outcome.message}"))
        return StepRecord(index, operation, outcome, before, self.state, tuple(found), transition)

    def transition(self, before: PoolState, operation: op.AnyOperation, outcome: AnyOutcome) -> Transition:
        """What was just seen, with what the target declares about itself."""
        cannot = self.description.cannot
        return Transition(
            before,
            operation,
            outcome,
            self.state,
            reports_steps="steps" not in cannot,
            tells_state_writes="state_writes" not in cannot,
            promises_waits="no_wait" in cannot,
        )

    def judge(self, transition: Transition) -> Iterable[Finding]:
        """What the rules find wrong with one transition."""
        if isinstance(transition.outcome, Unsupported):
            return
        for rule in self.rules:
            message = rule.check(transition)
            if message is not None:
                yield Finding(rule.name, "violated", message)


def run_history(
    adapter: Adapter,
    geometry: Geometry,
    operations: Sequence[op.AnyOperation],
    *,
    level: int = 2,
    on_transition: Callable[[Transition], None] | None = None,
) -> HistoryRun:
    """Run a history from an empty pool. A target that fails or cannot be built ends it with the verdict unknown."""
    records: list[StepRecord] = []
    try:
        session = Session(adapter, geometry, level)
        for index, operation in enumerate(operations):
            record = session.step(index, operation)
            records.append(record)
            if on_transition is not None and record.transition is not None:
                on_transition(record.transition)
            if isinstance(record.outcome, Crashed):
                break
    except TargetFailureError as error:
        return HistoryRun(tuple(records), overall(records, error.reason), error.reason)
    except UnsupportedGeometryError as error:
        return HistoryRun((), "unknown", f"cannot be built with this geometry: {error}", built=False)
    doubts = [f.message for record in records for f in record.findings if f.verdict == "unknown"]
    if not any(record.outcome is not None for record in records):
        doubts.append("no operation was executed")
    reason = doubts[0] if doubts else ""
    return HistoryRun(tuple(records), overall(records, reason), reason)


def overall(records: Sequence[StepRecord], doubt: str) -> Verdict:
    """A violation is certain whatever else went wrong; then doubt; then it holds."""
    if any(finding.verdict == "violated" for record in records for finding in record.findings):
        return "violated"
    return "unknown" if doubt else "holds"


def checked_properties(description: Description) -> list[Property]:
    """The rules that can be judged of a target, given what it says that it cannot do."""
    unchecked = {UNCHECKED[inability] for inability in description.cannot if inability in UNCHECKED}
    return [rule for rule in PROPERTIES if rule.name not in unchecked]


def no_answer(reason: str) -> Finding:
    """A step to which the target gave no usable answer."""
    return Finding("target-answers", "unknown", reason)


def applies(state: PoolState, operation: op.AnyOperation, description: Description) -> bool:
    """Whether the target has such an operation, and the call is good or the target is one that refuses bad ones."""
    cannot = description.cannot
    if description.operations is not None and op.operation_name(operation) not in description.operations:
        return False
    if isinstance(operation, op.DemandOperation) and not operation.may_wait and "no_wait" in cannot:
        return False
    match operation:
        case op.Launch() if "in_flight" in cannot:
            return False
        case op.GroupBegin() if "groups" in cannot:
            return False
        case op.Gate() if "gates" in cannot:
            return False
        case op.Capacity() if state.group_open:
            return False
    return "refusals" not in cannot or is_good_call(state, operation)
