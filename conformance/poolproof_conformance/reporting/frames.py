"""A counterexample as frames, one an operation: what a person steps through, in a browser or a terminal.

All of it is computed here, from a run on the target; a page or a terminal only shows it.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from poolproof_conformance import explain
from poolproof_conformance.explain import Explanation, explain_demand, explanation_lines
from poolproof_conformance.reporting.modelled import Modelled, model_answer
from poolproof_conformance.reporting.nodes import NodeRow, node_rows
from poolproof_conformance.reporting.owners import node_letters
from poolproof_conformance.reporting.sentences import outcome_word, outcome_words, request_words
from poolproof_conformance.reporting.strip import LaneWindow, Strip, strip_of
from poolproof_conformance.run import StepRecord
from poolproof_conformance.wording import call_words, step_words
from poolproof_spec.calls import is_good_call
from poolproof_spec.catalogue import property_named
from poolproof_spec.operation import DemandOperation
from poolproof_spec.outcome import AnyOutcome, Granted, Rejected, Step
from poolproof_spec.state import PoolState
from poolproof_spec.steps import Key
from poolproof_spec.transition import cached_pages


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One answer: the model's or the target's."""

    who: str
    word: str
    """granted, rejected, done, ...: the kind of answer."""
    words: str = ""
    """What the kind leaves open: the reason, the events waited for."""
    victims: str = ""
    """Eviction steps in words; empty where there are none."""
    lost_pages: int | None = 0
    """Cached FULL pages that are gone after it; None where that is not known."""


class FrameFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule found wrong with a step."""

    code: str
    """P1, W3; empty where the runner itself found it."""
    property: str
    claim: str
    message: str
    verdict: str
    """violated or unknown."""


class StageBar(msgspec.Struct, frozen=True, kw_only=True):
    """One member's least window in a pass of the sweep."""

    member: str
    window: LaneWindow


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """One part of an explanation: a line that opens it, lines below it."""

    heading: str
    lines: tuple[str, ...] = ()
    bars: tuple[StageBar, ...] = ()
    """Where it is a pass of the sweep: the windows, low bytes to high, up to the first that does not fit."""
    fits: bool | None = None
    """Where it is a pass of the sweep: whether it finds windows."""


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """One operation of a history."""

    index: int
    call: str
    """The operation as a call."""
    request: str
    """The same in a sentence or two."""
    model: Side | None
    """What the model does in the state in which the target was; None where that is no state of a correct pool."""
    target: Side
    agrees: bool
    """No rule is violated, and the model answers alike."""
    first_divergence: bool = False
    findings: tuple[FrameFinding, ...] = ()
    explanation: tuple[Stage, ...] = ()
    """Why the model answers as it does; empty where the operation is no demand."""
    before: Strip
    """With the windows of the sweep's deciding pass."""
    after: Strip
    modelled_after: Strip | None = None
    """Where the two part: the state in which the model leaves the pool."""
    nodes: tuple[NodeRow, ...] = ()
    besides: tuple[str, ...] = ()
    """Requests, the group, forwards in flight, lock handles, closed gates, before the operation; a line each."""


def frames_of(steps: Sequence[StepRecord], target: str) -> tuple[Frame, ...]:
    """A frame for each step of a run. The first that departs from the model is marked."""
    answers = [_answer(step) for step in steps]
    modelled = [answer.after for answer in answers if answer]
    letters = node_letters([*(state for step in steps for state in (step.before, step.after)), *modelled])
    frames = [_frame(step, answer, target, letters) for step, answer in zip(steps, answers, strict=True)]
    diverges = next((frame.index for frame in frames if not frame.agrees), None)
    return tuple(msgspec.structs.replace(frame, first_divergence=frame.index == diverges) for frame in frames)


def _answer(step: StepRecord) -> Modelled | None:
    return None if step.outcome is None else model_answer(step.before, step.operation)


def _frame(step: StepRecord, answer: Modelled | None, target: str, letters: dict[Key, str]) -> Frame:
    good = is_good_call(step.before, step.operation)
    may_wait = isinstance(step.operation, DemandOperation) and step.operation.may_wait
    explanation = stages_of(explain_demand(step.before, step.operation)) if good else ()
    model = None if answer is None else side("the model", answer.outcome, step.before, answer.after)
    theirs = side(target, step.outcome, step.before, step.after, step)
    findings = tuple(_finding(f.property, f.message, f.verdict) for f in step.findings)
    agrees = not findings and (model is None or (model.word, model.lost_pages) == (theirs.word, theirs.lost_pages))
    modelled = None if answer is None else answer.after
    return Frame(
        index=step.index,
        call=call_words(step.operation),
        request=request_words(step.before, step.operation, good),
        model=model,
        target=theirs,
        agrees=agrees,
        findings=findings,
        explanation=explanation,
        before=strip_of(step.before, letters, may_wait, windows_of(explanation)),
        after=strip_of(step.after, letters, may_wait),
        modelled_after=None if agrees or modelled is None else strip_of(modelled, letters, may_wait),
        nodes=node_rows(step.before, step.after, modelled, letters),
        besides=tuple(besides_of(step.before)),
    )


def side(
    who: str, outcome: AnyOutcome | None, before: PoolState, after: PoolState, step: StepRecord | None = None
) -> Side:
    """One answer in words."""
    steps: tuple[Step, ...] = outcome.steps if isinstance(outcome, Granted | Rejected) else ()
    if step is not None and step.transition is not None:
        steps = step.transition.steps if isinstance(outcome, Granted | Rejected) else ()
    return Side(
        who=who,
        word=outcome_word(outcome),
        words=outcome_words(outcome),
        victims=step_words(steps) if steps else "",
        lost_pages=len(cached_pages(before).keys() - cached_pages(after).keys()),
    )


def _finding(name: str, message: str, verdict: str) -> FrameFinding:
    try:
        rule = property_named(name)
    except KeyError:
        return FrameFinding(code="", property=name, claim="", message=message, verdict=verdict)
    return FrameFinding(code=rule.code, property=rule.name, claim=rule.claim, message=message, verdict=verdict)


def stages_of(explanation: Explanation | None) -> tuple[Stage, ...]:
    """An explanation by its parts: what is asked and answered, then each pass of the sweep."""
    if explanation is None:
        return ()
    blocks: list[list[str]] = [[]]
    for line in explanation_lines(explanation):
        if line:
            blocks[-1].append(line.strip())
        else:
            blocks.append([])
    words = [Stage(heading=heading, lines=tuple(lines)) for heading, *lines in blocks]
    passes = [
        msgspec.structs.replace(stage, bars=tuple(_bars(explained)), fits=explained.fits)
        for stage, explained in zip(words[1:], explanation.stages, strict=True)
    ]
    return (words[0], *passes)


def _bars(explained: explain.Stage) -> Iterator[StageBar]:
    for band in explained.bands:
        if band.reached and not band.empty:
            window = LaneWindow(
                start=band.start,
                end=band.end,
                start_byte=band.start * band.page_bytes,
                end_byte=band.end * band.page_bytes,
                fits=band.fits,
            )
            yield StageBar(member=band.member, window=window)


def windows_of(stages: Sequence[Stage]) -> dict[str, LaneWindow]:
    """The least windows of the deciding pass, by member."""
    return {bar.member: bar.window for bar in stages[-1].bars} if stages else {}


def besides_of(state: PoolState) -> list[str]:
    """What else there is in a state, a line each."""
    lines = [f"request {h.name}: {_held(h.ids, h.swa_ids, h.state_ids)}" for h in state.holds]
    if state.group_open:
        queued = state.queued
        lines.append(f"group open, queued: {_held(queued.ids, queued.swa_ids, queued.state_ids)}")
    for flight in state.flights:
        lines.append(f"in flight until {flight.event}: reads {len(flight.reads)} pages, writes {len(flight.writes)}")
    for lock in state.locks:
        released = ", window given back" if lock.window_released else ""
        lines.append(f"lock {lock.name}: prefix of {len(lock.key)} pages{released}")
    closed = [m.name for m, now in zip(state.geometry.members, state.members, strict=True) if not now.gate_open]
    return [*lines, f"gates closed: {', '.join(closed)}"] if closed else lines


def _held(ids: Sequence[int], swa_ids: Sequence[int], state_ids: Sequence[int]) -> str:
    counts: Mapping[str, int] = {"FULL": len(ids), "SWA": len(swa_ids), "state": len(state_ids)}
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "nothing"
