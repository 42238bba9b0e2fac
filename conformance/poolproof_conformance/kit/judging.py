"""What the kit runs, without pytest: histories of three kinds, judged up to a level; failures shrunk and written."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from poolproof_conformance.adapter import Adapter
from poolproof_conformance.campaign import failure_trace
from poolproof_conformance.conform import Conformance, Failure, draw_histories, note, shrink_failure
from poolproof_conformance.generator import History
from poolproof_conformance.run import run_history
from poolproof_conformance.target_names import Target
from poolproof_conformance.traces import write_trace
from poolproof_conformance.vectors.counterexamples import known_traces
from poolproof_conformance.vectors.export import vector_files
from poolproof_conformance.vectors.vector_format import AnyVectorFile
from poolproof_conformance.wording import arena_words, call_words
from poolproof_spec.catalogue import property_named
from poolproof_spec.geometry import layout_name
from poolproof_spec.transition import Transition

SHRINK_RUNS = 200
"""Most histories that making one failure small runs."""
WALK_LENGTH = 12
"""Operations in one walk through a small configuration."""


@dataclass
class Judged:
    """What came of some histories."""

    conformance: Conformance
    out_of_time: bool = False
    """Some histories were left out, for the time that they may take was used up."""


def random_histories(layouts: Sequence[str], count: int, seed: int) -> Iterator[History]:
    """As `poolproof conform` draws them."""
    drawn: list[History] = []
    draw_histories(drawn.append, traces=count, seed_number=seed, layouts=layouts)
    return iter(drawn)


def small_histories(layouts: Sequence[str], walks: int, seed: int) -> Iterator[History]:
    """Seeded walks through the configurations that `poolproof explore` visits whole."""
    from poolproof_conformance.explorer.configurations import FAMILY

    for configuration in FAMILY:
        if layout_name(configuration.geometry) in layouts:
            rng = Random(f"{seed} {configuration.name}")
            for _ in range(walks):
                yield configuration.geometry, tuple(rng.choices(configuration.operations, k=WALK_LENGTH))


def known_histories(layouts: Sequence[str]) -> Iterator[History]:
    """On each of them some released engine, or a policy of one, is known to be wrong."""
    return ((t.geometry, t.operations) for t in known_traces() if layout_name(t.geometry) in layouts)


def judge(adapter: Adapter, histories: Iterable[History], level: int, budget_s: float) -> Judged:
    """Run the histories and judge every step by the rules up to `level`; what comes after `budget_s` is left out."""
    result = Judged(Conformance())
    end = time.monotonic() + budget_s

    def count(_: Transition) -> None:
        result.conformance.operations += 1

    for history in histories:
        if time.monotonic() > end:
            result.out_of_time = True
            break
        note(result.conformance, history, run_history(adapter, *history, level=level, on_transition=count))
    return result


def written(adapter: Adapter, failure: Failure, level: int, seed: int, folder: Path) -> Path:
    """Make the failure small and write its trace; where it is."""
    name = adapter.describe().target
    shrink_failure(adapter, failure, level, SHRINK_RUNS)
    path = folder / f"{name}-{failure.property}.json"
    write_trace(path, failure_trace(Target(name), adapter, failure, seed))
    return path


def failure_lines(failure: Failure, path: Path) -> Iterator[str]:
    """A failure in words: the rule, the smallest history, what was found, and what to type next."""
    rule, (geometry, operations) = property_named(failure.property), failure.history
    histories = "1 history" if failure.count == 1 else f"{failure.count} histories"
    yield f"{rule.code} {rule.name} (level {rule.level}): {histories}"
    yield f"  {rule.claim} {rule.source}"
    yield f"  smallest: {arena_words(geometry)}"
    yield from (f"    {index}. {call_words(operation)}" for index, operation in enumerate(operations))
    yield f"  found: {failure.message}"
    yield f"  next: poolproof explain {path}"


def annotation(failure: Failure, file: str) -> str:
    """The failure as a GitHub Actions annotation of the test's file."""
    rule = property_named(failure.property)
    calls = "; ".join(call_words(operation) for operation in failure.history[1])
    text = f"{failure.message} [{calls}]".replace("%", "%25").replace("\n", "%0A")
    return f"::error file={file},title={rule.code} {rule.name}::{text}"


def unexpected(failures: Mapping[str, Failure], known: Mapping[str, str]) -> list[Failure]:
    """Those whose property is not among the known failures, by name."""
    return [failures[name] for name in sorted(failures) if name not in known]


@cache
def all_vectors() -> Mapping[str, AnyVectorFile]:
    """Made once a session: it takes a few seconds."""
    return vector_files()
