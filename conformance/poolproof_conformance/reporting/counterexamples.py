"""The histories that a report shows, each with its frames and the kinds that it is the smallest example of."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from poolproof_conformance.reporting.frames import Frame, FrameFinding, Side, frames_of
from poolproof_conformance.reporting.rows import Gathered, Kind, Variant, property_names
from poolproof_conformance.reporting.traced import TracedRun, run_traces, target_of
from poolproof_conformance.trace_format import Trace
from poolproof_conformance.traces import trace_text
from poolproof_conformance.wording import arena_words
from poolproof_spec.catalogue import property_named
from poolproof_spec.geometry import layout_name
from poolproof_spec.verdict import Verdict

LONGEST_SLUG = 80


class Counterexample(msgspec.Struct, frozen=True, kw_only=True):
    """One history on one target, ready to be shown."""

    slug: str
    """Its part of a URL: the same in every report, from the name of the trace's file."""
    name: str
    layout: str
    arena: str
    """The arena and its members, in a line."""
    note: str
    explanation: str
    """What the trace itself says of why."""
    source: str
    trace_file: str
    target: str
    """What it was found on."""
    shown_on: str
    """What the states are of."""
    is_recorded: bool
    """The states are the reference's; what the target did is as the trace records it."""
    verdict: Verdict
    reason: str
    """Why it could not be judged, or was not run to its end."""
    kinds: tuple[tuple[str, str], ...]
    """(property, signature) of each kind that it shows."""
    frames: tuple[Frame, ...]

    @property
    def first_divergence(self) -> int | None:
        """Index of the first frame that departs from the model."""
        return next((frame.index for frame in self.frames if frame.first_divergence), None)


def counterexamples_of(
    gathered: Gathered, runs: Sequence[TracedRun], on_run: Callable[[], None] = lambda: None
) -> tuple[Counterexample, ...]:
    """One for each distinct history: of the kinds, then of the traces that fail nowhere.

    Of a history that several variants fail, the last variant is shown: the newest release. What `runs` has is not run
    again.
    """
    shown: dict[str, tuple[Trace, Variant, str]] = {}
    kinds_of: dict[str, list[Kind]] = {}
    for kind in gathered.kinds:
        text = _history_of(kind.trace)
        shown[text] = (kind.trace, kind.found_on or kind.sightings[-1].variant, kind.trace_file)
        kinds_of.setdefault(text, []).append(kind)
    for run in runs:
        shown.setdefault(_history_of(run.trace), (run.trace, run.variant, str(run.path)))
    done = {(_history_of(run.trace), run.variant): run for run in runs}
    missing = [(variant, text) for text, (_, variant, _) in shown.items() if (text, variant) not in done]
    missing.sort(key=lambda item: item[0].title)
    fresh = run_traces(
        [(Path(shown[text][2]), shown[text][0], target_of(variant)) for variant, text in missing],
        [variant for variant, _ in missing],
        on_run,
    )
    done |= {(text, variant): run for (variant, text), run in zip(missing, fresh, strict=True)}
    slugs: set[str] = set()
    return tuple(
        _counterexample(done[text, variant], kinds_of.get(text, []), slugs) for text, (_, variant, _) in shown.items()
    )


def counterexample_of(run: TracedRun, kinds: Sequence[Kind] = ()) -> Counterexample:
    """A single one."""
    return _counterexample(run, kinds, set())


def _history_of(trace: Trace) -> str:
    """What is run: two traces with the same are one counterexample."""
    return trace_text(Trace(format=1, name="", geometry=trace.geometry, operations=trace.operations))


def _counterexample(run: TracedRun, kinds: Sequence[Kind], slugs: set[str]) -> Counterexample:
    trace = run.trace
    frames = frames_of(run.steps, run.shown_on)
    order = property_names(kinds)
    return Counterexample(
        slug=_slug(run.path.stem or trace.name, slugs),
        name=trace.name,
        layout=layout_name(trace.geometry),
        arena=arena_words(trace.geometry),
        note=trace.note,
        explanation=trace.explanation,
        source=trace.source,
        trace_file="" if run.path == Path() else str(run.path),
        target=run.variant.title,
        shown_on=run.shown_on,
        is_recorded=run.is_recorded,
        verdict=run.verdict,
        reason=run.reason,
        kinds=tuple(sorted(((kind.property, kind.signature) for kind in kinds), key=lambda it: order.index(it[0]))),
        frames=_as_recorded(frames, run, kinds) if run.is_recorded else frames,
    )


def _as_recorded(frames: Sequence[Frame], run: TracedRun, kinds: Sequence[Kind]) -> tuple[Frame, ...]:
    """The reference's frames in the light of what is recorded of the target: its outcomes, and what it violates."""
    about = run.variant
    expectation = next(
        (e for e in run.trace.expected.targets if e.is_about(about.target, about.tree_core, about.mode)), None
    )
    outcomes = expectation.outcomes if expectation else {}
    last = frames[-1].index if frames else 0
    violated = dict.fromkeys(expectation.violates if expectation else (), "as the trace records")
    violated |= {kind.property: kind.message for kind in kinds}
    diverges = min([*outcomes, last]) if outcomes or violated else None
    recorded = []
    for frame in frames:
        known = outcomes.get(frame.index)
        findings = tuple(_recorded_finding(*item) for item in violated.items()) if frame.index == last else ()
        theirs = Side(who=about.title, word="not recorded", lost_pages=None)
        if known is not None:
            theirs = Side(who=about.title, word=known.result, words="as recorded", lost_pages=known.evicted_pages)
        recorded.append(
            msgspec.structs.replace(
                frame,
                target=theirs,
                findings=findings,
                agrees=frame.agrees and known is None and not findings,
                first_divergence=frame.index == diverges,
            )
        )
    return tuple(recorded)


def _recorded_finding(name: str, message: str) -> FrameFinding:
    rule = property_named(name)
    return FrameFinding(code=rule.code, property=rule.name, claim=rule.claim, message=message, verdict="violated")


def _slug(name: str, taken: set[str]) -> str:
    """Letters, digits and hyphens; numbered where two names come to the same."""
    base = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[:LONGEST_SLUG] or "trace"
    slug, number = base, 2
    while slug in taken:
        slug, number = f"{base}-{number}", number + 1
    taken.add(slug)
    return slug
