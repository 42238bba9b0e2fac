"""A theorem: a claim in English, its bounds, and the queries that together prove it. And its verdicts."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import msgspec

from poolproof_spec.smt.query import Query, Witness

Kind = Literal["PROVED", "BOUNDED", "REFUTED", "UNKNOWN", "TIMEOUT", "ERROR", "VACUOUS"]
WORST_FIRST: tuple[Kind, ...] = ("ERROR", "REFUTED", "VACUOUS", "UNKNOWN", "TIMEOUT", "BOUNDED", "PROVED")


class Verdict(msgspec.Struct, frozen=True):
    """What became of a theorem. Only PROVED and BOUNDED are green."""

    kind: Kind
    detail: str = ""
    """The bound of BOUNDED; else the question that went wrong, and why."""

    @property
    def green(self) -> bool:
        """Whether the claim holds, within its bounds."""
        return self.kind in ("PROVED", "BOUNDED")

    def __str__(self) -> str:
        return f"{self.kind}({self.detail})" if self.detail else self.kind


@dataclass(frozen=True, eq=False)
class Theorem:
    """One named statement."""

    name: str
    """A tag of docs/spec.md, a dash, and what it says: T1-sweep-step."""
    claim: str
    """One English sentence or two."""
    bounds: str
    """For what it is claimed: "any sizes", "any chain length by induction", "page sizes 1 to 4"."""
    queries: Callable[[], tuple[Query, ...]]
    """Built when asked for, by calling the rules themselves on terms. All must be proved."""
    witnesses: Callable[[], tuple[Witness, ...]] = tuple
    """What must exist beside the premises' own witnesses: "the smaller quota fails here". All must be found."""
    bounded: int | None = None
    """Where the queries cover only cases up to some number, that number: the verdict is then BOUNDED of it."""

    @property
    def proved(self) -> Verdict:
        """The verdict when all goes well."""
        return Verdict("PROVED") if self.bounded is None else Verdict("BOUNDED", str(self.bounded))


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a whole from those of its parts; of nothing at all nothing is known."""
    ordered = sorted(verdicts, key=lambda verdict: WORST_FIRST.index(verdict.kind))
    return ordered[0] if ordered else Verdict("UNKNOWN", "nothing was asked")
