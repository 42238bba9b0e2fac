"""All theorems by name."""

from collections.abc import Mapping, Sequence

from poolproof_spec.smt import (
    theorems_chain,
    theorems_contract,
    theorems_invariants,
    theorems_moves,
    theorems_quotas,
    theorems_rounding,
    theorems_sweep,
)
from poolproof_spec.smt.solver import SmtError
from poolproof_spec.smt.theorem import Theorem

TOPICS: tuple[tuple[Theorem, ...], ...] = (
    theorems_sweep.THEOREMS,
    theorems_chain.THEOREMS,
    theorems_moves.THEOREMS,
    theorems_quotas.THEOREMS,
    theorems_rounding.THEOREMS,
    theorems_contract.THEOREMS,
    theorems_invariants.THEOREMS,
)

THEOREMS: Mapping[str, Theorem] = {theorem.name: theorem for topic in TOPICS for theorem in topic}


class UnknownTheoremError(SmtError):
    """A name that no theorem has."""


def select(names: Sequence[str]) -> tuple[Theorem, ...]:
    """The theorems of these names, all of them for none. T1 stands for all whose names begin with `T1-`.

    In the order of the registry, each once. Raises UnknownTheoremError.
    """
    for name in names:
        if not any(_is_called(theorem, name) for theorem in THEOREMS.values()):
            raise UnknownTheoremError(f"no theorem {name!r}", f"name some of: {' '.join(THEOREMS)}")
    chosen = (t for t in THEOREMS.values() if not names or any(_is_called(t, name) for name in names))
    return tuple(chosen)


def _is_called(theorem: Theorem, name: str) -> bool:
    return name in (theorem.name, theorem.name.split("-")[0])
