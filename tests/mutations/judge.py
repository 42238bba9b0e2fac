"""Judge one changed copy of the packages, found on PYTHONPATH: prints what turned red, or `green`; exit 1 or 0.

Theorems first (z3 alone), then the agreements on the smaller TINY arenas, the quotas on random chains, and random
histories of the reference.
"""

import random
import sys
from collections.abc import Iterator

import z3
from hypothesis import HealthCheck, Phase, given, seed, settings

RESOURCES = 20_000_000
HISTORIES = 300
PAGES_MOST = 40


def red_theorems() -> Iterator[str]:
    """Theorems that are not proved, or are vacuous, or lack a witness."""
    from poolproof_spec.smt.query import script
    from poolproof_spec.smt.registry import THEOREMS

    def answer(facts: object) -> str:
        solver = z3.Solver()
        solver.set("rlimit", RESOURCES)
        solver.from_string(script(facts))  # type: ignore[arg-type]
        return str(solver.check())

    for theorem in THEOREMS.values():
        for query in theorem.queries():
            if answer(query.refuting) != "unsat" or answer(query.premises) != "sat":
                yield f"theorem {theorem.name}: {query.name}"
        for witness in theorem.witnesses():
            if answer(witness.facts) != "sat":
                yield f"theorem {theorem.name}: witness {witness.name}"


def red_agreements() -> Iterator[str]:
    """Agreements that fail on the smaller arenas."""
    from poolproof_conformance.agreements import agree
    from poolproof_spec.tiny import tiny_geometries

    small = [g for g in tiny_geometries() if len(g.members) == 3 and g.total_bytes in (6, 7, 9)]
    yield from (f"agreement {a.name}: {a.detail[:200]}" for a in agree(small) if a.verdict != "holds")


def red_quotas() -> Iterator[str]:
    """[T6] as coded: a demand whose surely sufficient bytes were freed, and which does not fit."""
    from poolproof_spec.arithmetic import INTEGERS
    from poolproof_spec.demand import Demand
    from poolproof_spec.geometry import layout
    from poolproof_spec.occupancy import occupancy_of
    from poolproof_spec.quotas import funding_bytes
    from poolproof_spec.state import PoolState
    from poolproof_spec.sweep import sweep

    draw = random.Random(7)
    for _ in range(4000):
        geometry = layout("tri", draw.randint(300, 900), STATE=48, SWA=draw.choice((32, 64)), FULL=32)
        held = [draw.randint(1, PAGES_MOST) for _ in geometry.members]
        needs = [occupancy_of(m, frozenset(), count) for m, count in zip(geometry.members, held, strict=True)]
        pages = draw.randint(1, 3)
        demand = Demand(full_pages=pages, swa_pages=pages)
        paid = INTEGERS.ceil_div(funding_bytes(PoolState(geometry=geometry, members=()), demand, 0), 48)
        if not sweep(needs).fits or paid > held[0]:
            continue
        counts = (held[0] - paid, held[1] + pages, held[2] + pages)
        after = [occupancy_of(m, frozenset(), count) for m, count in zip(geometry.members, counts, strict=True)]
        if not sweep(after).fits:
            yield f"quota: {paid} states do not fund {pages} token pages beside {held} in {geometry.total_bytes} bytes"
            return


def red_histories() -> Iterator[str]:
    """Rules that a random history of the reference violates."""
    from poolproof_conformance.generator import History, histories
    from poolproof_conformance.reference_adapter import ReferenceAdapter
    from poolproof_conformance.run import run_history

    found: list[str] = []

    @seed(5)
    @settings(
        max_examples=HISTORIES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(histories())
    def draw(history: History) -> None:
        if not found:
            found.extend(run_history(ReferenceAdapter(), *history).violated())

    draw()
    yield from (f"history: {name}" for name in found)


def main() -> int:
    """The first red thing, or none."""
    for look in (red_theorems, red_agreements, red_quotas, red_histories):
        try:
            found = next(iter(look()), None)
        except Exception as error:
            found = f"{look.__name__}: {type(error).__name__}: {error}"[:300]
        if found is not None:
            sys.stdout.write(found + "\n")
            return 1
    sys.stdout.write("green\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
