"""A violation that an engine found, run again from the empty pool and written as a trace."""

from collections.abc import Sequence
from pathlib import Path

from poolproof_conformance.adapter import Adapter
from poolproof_conformance.explain import explain_demand, explanation_lines
from poolproof_conformance.explorer.configuration import Configuration
from poolproof_conformance.explorer.exploration import Found, Violation
from poolproof_conformance.explorer.policies import REFERENCE, ExploredPolicy
from poolproof_conformance.faulty.hunt import GuardedAdapter
from poolproof_conformance.policy_pools import PolicyAdapter
from poolproof_conformance.policy_search import expectations
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.run import HistoryRun, run_history
from poolproof_conformance.trace_format import FORMAT, Expected, ExpectedOutcome, Trace
from poolproof_conformance.traces import write_trace
from poolproof_spec.operation import operation_name
from poolproof_spec.outcome import Granted, Rejected
from poolproof_spec.policies_known import POLICIES


def adapter_of(policy: ExploredPolicy) -> Adapter:
    """The policy's pool as a target under the ordinary runner."""
    if policy.name in POLICIES:
        return PolicyAdapter(policy.name)
    return GuardedAdapter(policy.pool_class, policy.name)


def confirmed(configuration: Configuration, policy: ExploredPolicy, found: Found) -> HistoryRun | None:
    """The history run again by the ordinary runner; None where its last operation does not violate the rule there."""
    run = run_history(adapter_of(policy), configuration.geometry, found.operations)
    return run if run.violated().get(found.property) == len(found.operations) - 1 else None


def counterexample(configuration: Configuration, policy: ExploredPolicy, found: Found, run: HistoryRun) -> Trace:
    """The trace: what the model says, and what this policy does."""
    name = policy.name if policy.name == REFERENCE else f"policy:{policy.name}"
    right = run_history(ReferenceAdapter(), configuration.geometry, found.operations)
    return Trace(
        format=FORMAT,
        name=f"explore-{configuration.name}-{policy.name}-{found.property}",
        source=f"poolproof explore {configuration.name} --policy {policy.name}",
        note=f"{policy.name}: {found.message}",
        explanation=_explanation(run),
        geometry=configuration.geometry,
        operations=found.operations,
        expected=Expected(outcomes=_last_outcome(right), targets=expectations({name: run})),
    )


def violations(
    configuration: Configuration, policy: ExploredPolicy, found: Sequence[Found], folder: Path | None
) -> tuple[tuple[Violation, ...], tuple[Found, ...]]:
    """(what is confirmed, shortest first, and written below `folder`; what is not). Raises OutputFileError."""
    shown, unconfirmed = [], []
    for one in sorted(found, key=lambda one: len(one.operations)):
        run = confirmed(configuration, policy, one)
        if run is None:
            unconfirmed.append(one)
            continue
        path = None
        if folder is not None:
            path = folder / f"explore-{configuration.name}-{policy.name}-{one.property}.json"
            write_trace(path, counterexample(configuration, policy, one, run))
        shown.append(
            Violation(
                property=one.property,
                message=one.message,
                operations=len(one.operations),
                trace_file=str(path or ""),
            )
        )
    return tuple(shown), tuple(unconfirmed)


def _last_outcome(run: HistoryRun) -> dict[int, ExpectedOutcome]:
    """What the last operation came to in the model."""
    if not run.steps or run.steps[-1].outcome is None:
        return {}
    last = run.steps[-1]
    reason = last.outcome.reason if isinstance(last.outcome, Rejected) else None
    kind = None if reason is None else reason.__struct_config__.tag
    return {
        last.index: ExpectedOutcome(
            result=last.outcome.__struct_config__.tag,  # type: ignore[arg-type, union-attr]
            reason=kind,  # type: ignore[arg-type]
            steps=last.outcome.steps if isinstance(last.outcome, Granted) else None,
        )
    }


def _explanation(run: HistoryRun) -> str:
    """Of a demand, why the model answers as it does, with the sweep's numbers."""
    last = run.steps[-1]
    explained = explain_demand(last.before, last.operation)
    lines = [] if explained is None else [line.strip() for line in explanation_lines(explained) if line]
    told = f"The last of {len(run.steps)} operations, {operation_name(last.operation)}, goes wrong."
    return " ".join([told, *(["The model:", *lines] if lines else [])])
