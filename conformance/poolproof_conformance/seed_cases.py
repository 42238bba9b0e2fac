"""The three cases on which released SGLang changed between 0.5.22 and 0.5.23 (docs/spec.md#seed-cases)."""

from collections.abc import Iterator
from dataclasses import dataclass

from poolproof_conformance.adapter import Adapter
from poolproof_conformance.run import HistoryRun, run_history
from poolproof_spec.geometry import Geometry, layout
from poolproof_spec.operation import Alloc, AllocStates, AnyOperation, Insert
from poolproof_spec.outcome import Granted, Rejected
from poolproof_spec.transition import cached_pages
from poolproof_spec.units import PageKey, TokenCount


@dataclass(frozen=True)
class SeedCase:
    """A filled pool and one demand."""

    name: str
    geometry: Geometry
    operations: tuple[AnyOperation, ...]
    """The last one is the demand."""


@dataclass(frozen=True)
class SeedResult:
    """What a target did with the demand."""

    case: str
    granted: bool | None
    """None where the target gave no answer."""
    evicted_tokens: int
    """Cached tokens that are gone after it."""
    reason: str = ""
    """Why there is no answer."""


def _pair() -> tuple[Geometry, tuple[AnyOperation, ...]]:
    """FULL and SWA of 32 bytes a page; 96 cached prefixes of one token."""
    cached = tuple(Insert(key=(PageKey(first),)) for first in range(1, 97))
    return layout("swa2", 6400, FULL=32, SWA=32), cached


def _triple() -> tuple[Geometry, tuple[AnyOperation, ...]]:
    """State pages of 48 bytes beside them; cached prefixes of 1, 1 and 94 tokens with a state each, 5 states held."""
    cached = tuple(
        Insert(key=tuple(PageKey(1000 * first + page) for page in range(length)), state=True)
        for first, length in enumerate((1, 1, 94), start=1)
    )
    return layout("tri", 6784, FULL=32, SWA=32, STATE=48), (*cached, AllocStates(name="running", count=5))


def seed_cases() -> Iterator[SeedCase]:
    """fullswa-6, tri-4 and tri-200: the number is the demand in tokens."""
    for family, (geometry, setup), tokens in (
        ("fullswa", _pair(), 6),
        ("tri", _triple(), 4),
        ("tri", _triple(), 200),
    ):
        demand = Alloc(name="demand", tokens=TokenCount(tokens))
        yield SeedCase(f"{family}-{tokens}", geometry, (*setup, demand))


EXPECTED: dict[str, dict[str, tuple[bool, int]]] = {
    "before": {"fullswa-6": (True, 5), "tri-4": (False, 0), "tri-200": (False, 96)},
    "since": {"fullswa-6": (True, 3), "tri-4": (True, 1), "tri-200": (False, 0)},
}
"""(granted, evicted tokens): SGLang 0.5.22 and before; SGLang 0.5.23, and what the model asks."""


def expected_of(target: str, case: str) -> tuple[bool, int]:
    """What a target is known to do, or must do."""
    return EXPECTED["before" if target == "sglang==0.5.22" else "since"][case]


def run_seed_case(adapter: Adapter, case: SeedCase) -> SeedResult:
    """Run one case; a target that does not get as far as the demand has no answer."""
    run = run_history(adapter, case.geometry, case.operations, level=0)
    last = run.steps[-1] if len(run.steps) == len(case.operations) else None
    if last is None or not isinstance(last.outcome, Granted | Rejected):
        return SeedResult(case.name, None, 0, run.reason or f"the demand was answered by {last and last.outcome}")
    lost = cached_pages(last.before).keys() - cached_pages(last.after).keys()
    tokens = len(lost) * case.geometry.page_tokens
    return SeedResult(case.name, isinstance(last.outcome, Granted), tokens, setup_problem(run))


def setup_problem(run: HistoryRun) -> str:
    """Why the figures mean nothing: some operation before the demand was not carried out."""
    for step in run.steps[:-1]:
        if step.outcome is None or isinstance(step.outcome, Rejected):
            return f"operation {step.index} of the setup was not carried out"
    return ""
