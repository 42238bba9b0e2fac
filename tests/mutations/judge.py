"""Judge one changed copy of the packages, found on PYTHONPATH: prints what turned red, or `green`; exit 1 or 0.

Theorems first (z3 alone), then the agreements on the smaller TINY arenas, the quotas on random chains, and random
histories of the reference.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from copy import deepcopy
from typing import TYPE_CHECKING

import z3
from hypothesis import HealthCheck, Phase, given, seed, settings

if TYPE_CHECKING:
    from poolproof_reference.joint_pool import JointPool
    from poolproof_spec.state import PoolState
    from poolproof_spec.transition import Transition

RESOURCES = 20_000_000
HISTORIES = 200
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

    def on_transition(transition: Transition) -> None:
        if not found:
            found.extend(red_steps(transition.after))

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
            adapter = ReferenceAdapter()
            run = run_history(adapter, *history, on_transition=on_transition)
            found.extend(run.violated())
            found.extend(red_reasons(adapter.pool) if adapter.pool else ())

    draw()
    yield from (f"history: {name}" for name in found)


def red_steps(state: PoolState) -> Iterator[str]:
    """A legal step that leaves a node without its parent, or frees other ids than those that leave the tree."""
    from poolproof_spec.outcome import Step
    from poolproof_spec.steps import after_step, freed_by, is_legal, tree_of

    tree = tree_of(state)
    for step in (Step(kind=kind, key=key) for kind in ("leaf", "tombstone", "state") for key in tree):  # type: ignore[arg-type]
        if is_legal(tree, step):
            after, freed = after_step(tree, step), freed_by(tree, step)
            if any(entry.parent_key and entry.parent_key not in after for entry in after.values()):
                yield f"step: {step} leaves an orphan"
            for field, gone in (("ids", freed.ids), ("swa_ids", freed.swa_ids)):
                before = {i for entry in tree.values() for i in getattr(entry, field)}
                if before - {i for entry in after.values() for i in getattr(entry, field)} != set(gone):
                    yield f"step: {step} frees other {field} than it takes from the tree"
            states = {entry.state_id for entry in tree.values()} - {entry.state_id for entry in after.values()}
            if states - {None} != set(freed.state_ids):
                yield f"step: {step} frees another state than it takes from the tree"


def red_reasons(pool: JointPool) -> Iterator[str]:
    """[T10] Ask for more and more tokens: with locks, gates and events lifted for real, is it as the reason said?"""
    from poolproof_spec import operation as op
    from poolproof_spec.outcome import Granted, Impossible, Rejected
    from poolproof_spec.units import TokenCount
    from poolproof_spec.verdict import unfired_events

    for tokens in range(1, len(pool.pool.geometry.id_range("full")) + 1):
        asked, demand = deepcopy(pool), op.Alloc(name="more", tokens=TokenCount(tokens))
        first = asked.apply(demand)
        if isinstance(first, Rejected):
            state = asked.observe()
            lifts: list[op.AnyOperation] = [op.Unlock(name=lock.name) for lock in state.locks]
            lifts += [op.Gate(open=True), *(op.Fire(event=event) for event in sorted(unfired_events(state)))]
            for lift in lifts:
                asked.apply(lift)
            granted = isinstance(asked.apply(demand), Granted)
            if granted == isinstance(first.reason, Impossible):
                yield f"reason: {first.reason}, and with everything lifted it is {'' if granted else 'not '}granted"
                return


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
