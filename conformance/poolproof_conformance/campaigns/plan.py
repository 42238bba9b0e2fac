"""The order of a campaign's jobs: a fixed sequence without end, of which every run does the next ones."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice

import msgspec

from poolproof_conformance.campaigns.jobs import EXHAUSTIVE, RANDOM, Job
from poolproof_conformance.campaigns.rows import Cell
from poolproof_conformance.campaigns.scope import scope_digest

PLAN_VERSION = "1"
"""Changes whenever the same random job would mean other histories; the exhaustive ones have a digest."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a campaign runs; the same plan and shard give the same jobs everywhere."""

    cells: tuple[Cell, ...]
    seed: int
    budget_s: float
    """Wall time of all runs on the file together, in seconds."""
    most_jobs: int | None = None
    """Only that many of the first jobs, all shards together; None for no such limit."""
    shard: tuple[int, int] = (1, 1)
    """(i, n): every n-th job, from the i-th on."""
    history_limit_s: float = 30.0
    """Longest time for one history, in seconds."""

    def settings(self) -> dict[str, str]:
        """What a file must agree in to be continued: the same (cell, stage, number) must mean the same histories."""
        return {"seed": str(self.seed), "plan": f"{PLAN_VERSION}-{scope_digest()}"}

    def jobs(self, parts_of: Callable[[str], int]) -> Iterator[Job]:
        """This shard's jobs in order; `parts_of` tells how many jobs the exhaustive stage of a layout has."""
        places = islice(_places(self.cells, parts_of), self.most_jobs)
        index, shards = self.shard
        for cell, stage, number in islice(places, index - 1, None, shards):
            yield Job(cell=cell, stage=stage, number=number, seed=self.seed, history_limit_s=self.history_limit_s)


def _places(cells: Sequence[Cell], parts_of: Callable[[str], int]) -> Iterator[tuple[Cell, int, int]]:
    """Part after part of the exhaustive stage, each in every cell; then of the random stage, for ever."""
    if not cells:
        return
    parts = {cell: parts_of(cell.layout) for cell in cells}
    for number in range(max(parts.values())):
        yield from ((cell, EXHAUSTIVE, number) for cell in cells if number < parts[cell])
    for number in count():
        yield from ((cell, RANDOM, number) for cell in cells)
