"""Search for a policy's smallest counterexample, with every model replayed before it is shown."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from poolproof_conformance.adapter import Adapter
from poolproof_conformance.explain import explain_demand, explanation_lines
from poolproof_conformance.policy_pools import PolicyAdapter
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.replay import evicted_pages
from poolproof_conformance.run import HistoryRun, run_history
from poolproof_conformance.trace_format import FORMAT, Expected, ExpectedOutcome, TargetExpectation, Trace
from poolproof_conformance.traces import write_trace
from poolproof_conformance.wording import arena_words, call_words, plural
from poolproof_spec.geometry import LAYOUTS, Geometry
from poolproof_spec.operation import AnyOperation
from poolproof_spec.outcome import Granted, Rejected
from poolproof_spec.policies_known import DEMAND_KINDS, DemandKind, Policy
from poolproof_spec.smt.search import SOUGHT, Found, SearchResult, search
from poolproof_spec.smt.solver import Budget, Solver


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the sought property was found violated, by the demand, on real pools."""

    reference: bool
    """On the reference with the policy in it."""
    target: bool | None
    """On the release that has the policy; None where there is none, or it is not installed."""


class SearchRow(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON of one search."""

    policy: str
    property: str
    verdict: str
    """REFUTED, BOUNDED(k), UNKNOWN(reason) or ERROR(reason)."""
    operations: int
    """Of the counterexample, the demand included; where there is none, the bound."""
    arena_bytes: int | None
    entries: int | None
    """Cached nodes under the demand."""
    trace_file: str | None
    replayed: Replayed
    seconds: float


class PolicySearch(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    row: SearchRow
    errors: int
    """Models that did not reproduce."""
    questions: int
    open: int
    """Questions that the solver left open: a counterexample is then perhaps not the smallest."""
    trace: Trace | None
    message: str = ""
    """What the property's rule finds in the counterexample."""


def search_policy(
    policy: Policy,
    code: str,
    *,
    bound: int,
    layouts: Sequence[str] = tuple(LAYOUTS),
    demands: Sequence[DemandKind] = DEMAND_KINDS,
    target: Adapter | None = None,
    folder: Path | None = None,
    budget: Budget | None = None,
    on_model: Callable[[Found, bool], None] = lambda found, reproduced: None,
) -> PolicySearch:
    """Search, replay on the policy's pool and on `target`, write the trace below `folder`. Raises SmtError."""

    def reproduces(found: Found) -> bool:
        everywhere = all(shows(adapter, found, SOUGHT[code]) for adapter in pools)
        on_model(found, everywhere)
        return everywhere

    pools: list[Adapter] = [PolicyAdapter(policy.name), *([target] if target else [])]
    with Solver("z3") as solver:
        result = search(policy, code, bound, solver, reproduces, layouts=layouts, demands=demands, budget=budget)
    if result.found is None:
        return PolicySearch(
            row=_row(policy, code, bound, result),
            errors=len(result.errors),
            questions=result.questions,
            open=len(result.doubts),
            trace=None,
        )
    runs = {f"policy:{policy.name}": run_found(pools[0], result.found)}
    if target is not None and policy.release is not None:
        runs[policy.release] = run_found(target, result.found)
    trace = searched_trace(policy, code, result.found, expectations(runs))
    path = None if folder is None else folder / f"{trace.name}.json"
    if path is not None:
        write_trace(path, trace)
    run = runs[f"policy:{policy.name}"]
    return PolicySearch(
        row=_row(policy, code, bound, result, run, path, target is not None),
        errors=len(result.errors),
        questions=result.questions,
        open=len(result.doubts),
        trace=trace,
        message=message_of(run, SOUGHT[code]),
    )


def _row(
    policy: Policy,
    code: str,
    bound: int,
    result: SearchResult,
    run: HistoryRun | None = None,
    path: Path | None = None,
    on_target: bool = False,
) -> SearchRow:
    found = result.found
    return SearchRow(
        policy=policy.name,
        property=SOUGHT[code],
        verdict=result.verdict,
        operations=bound if found is None else len(found.concrete.operations),
        arena_bytes=None if found is None else found.arena_bytes,
        entries=None if run is None else len(run.steps[-1].before.entries),
        trace_file=None if path is None else str(path),
        replayed=Replayed(reference=found is not None, target=True if on_target and found is not None else None),
        seconds=round(result.seconds, 2),
    )


def run_found(adapter: Adapter, found: Found) -> HistoryRun:
    """The counterexample on a target."""
    return run_history(adapter, found.concrete.geometry, found.concrete.operations)


def shows(adapter: Adapter, found: Found, name: str) -> bool:
    """Whether the property is violated by the demand, the setup before it having gone as it should."""
    run = run_found(adapter, found)
    demand = len(found.concrete.operations) - 1
    return run.violated().get(name) == demand and all(step.outcome is not None for step in run.steps)


def message_of(run: HistoryRun, name: str) -> str:
    """What the rule says of the last step."""
    return next((finding.message for _, finding in reversed(run.findings) if finding.property == name), "")


def expectations(runs: Mapping[str, HistoryRun]) -> tuple[TargetExpectation, ...]:
    """What each target that departs from the model did, as a trace foretells it."""
    return tuple(
        TargetExpectation(
            target=name,
            mode="eager" if name.startswith("sglang") else "any",
            outcomes=_last_outcome(run),
            violates=tuple(run.violated()),
        )
        for name, run in runs.items()
        if run.violated()
    )


def searched_trace(policy: Policy, code: str, found: Found, known: tuple[TargetExpectation, ...]) -> Trace:
    """The counterexample as a trace: what the model says, and what the policy and released engines do."""
    geometry, operations = found.concrete
    run, right = run_found(PolicyAdapter(policy.name), found), run_history(ReferenceAdapter(), geometry, operations)
    return Trace(
        format=FORMAT,
        name=f"search-{policy.name}-{code}",
        source=f"poolproof search {policy.name} --property {code}",
        note=f"{policy.name}: {message_of(run, SOUGHT[code])}",
        explanation=_explanation(policy, run, geometry, operations),
        mode="eager" if policy.release else None,
        geometry=geometry,
        operations=operations,
        expected=Expected(outcomes=_last_outcome(right), targets=known),
    )


def _last_outcome(run: HistoryRun) -> dict[int, ExpectedOutcome]:
    if not run.steps or run.steps[-1].outcome is None:
        return {}
    last = run.steps[-1]
    reason = last.outcome.reason if isinstance(last.outcome, Rejected) else None
    document = {
        "result": msgspec.to_builtins(last.outcome)["type"],
        "reason": None if reason is None else msgspec.to_builtins(reason)["type"],
        "evicted_pages": evicted_pages(last),
    }
    return {last.index: msgspec.convert(document, ExpectedOutcome)}


def _explanation(policy: Policy, run: HistoryRun, geometry: Geometry, operations: Sequence[AnyOperation]) -> str:
    """What the policy does and why the model answers otherwise, with the sweep's numbers."""
    last = run.steps[-1]
    done = "grants" if isinstance(last.outcome, Granted) else "rejects"
    explained = explain_demand(last.before, last.operation)
    lines = [] if explained is None else [line.strip() for line in explanation_lines(explained) if line]
    lost = plural(evicted_pages(last), "cached page")
    calls = ", ".join(call_words(operation) for operation in operations)
    return (
        f"{policy.claim} Here it {done} at the cost of {lost}: {arena_words(geometry)}; {calls}. The model: "
        + " ".join(lines)
    )
