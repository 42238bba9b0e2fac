"""Every pool that is wrong on purpose, and a configuration whose exhaustion catches it by the rule that names it.

`python -m poolproof_conformance.explorer.caught` explores a few of them, with `--all` each one.
"""

import argparse
import sys
from collections.abc import Iterable
from typing import NamedTuple

from poolproof_conformance.explorer.configurations import configuration_named
from poolproof_conformance.explorer.counterexample import confirmed
from poolproof_conformance.explorer.policies import policy_named
from poolproof_conformance.explorer.reference_engine import ReferenceEngine
from poolproof_conformance.faulty.registry import FAULTY


class Caught(NamedTuple):
    """Where a wrong pool is caught."""

    configuration: str
    operations: int
    """Of the shortest history that shows it there."""


CAUGHT: dict[str, Caught] = {
    "stops-at-own-shortfall": Caught("swa2-gate", 2),
    "frees-own-quota": Caught("swa2-group", 3),
    "empties-the-cache": Caught("swa2-chain", 2),
    "falls-back-to-whole-cache": Caught("mamba2-spare", 4),
    "adds-slack": Caught("four-floats", 2),
    "counts-cascade-twice": Caught("swa2-gate", 3),
    "tombstones-all-at-once": Caught("swa2-chain", 4),
    "skips-spare-pass": Caught("swa2-window", 3),
    "evicts-locked": Caught("swa2-chain", 3),
    "conservative-probe": Caught("swa2-pages", 1),
    "decode-probe": Caught("swa2-pages", 3),
    "rounds-tokens-down": Caught("swa2-pages", 1),
    "ignores-tail": Caught("swa2-chain", 1),
    "gives-one-page-less": Caught("mamba2-spare", 1),
    "extends-float-one-way": Caught("four-floats", 4),
    "forgets-grid-rounding": Caught("mamba2-spare", 3),
    "places-float-anywhere": Caught("four-floats", 1),
    "hands-out-sink": Caught("four-floats", 1),
    "hands-out-pending": Caught("mamba2-pending", 7),
    "vacates-at-once": Caught("swa2-event", 6),
    "ignores-gate": Caught("swa2-gate", 8),
    "moves-written": Caught("swa2-event", 6),
    "copies-backwards": Caught("four-floats", 2),
    "forgets-payload": Caught("four-floats", 2),
    "compacts-twice": Caught("four-floats", 3),
    "calls-all-impossible": Caught("four-floats", 3),
    "names-wrong-bound": Caught("four-floats", 3),
    "blames-locks": Caught("swa2-event", 7),
    "touches-on-rejection": Caught("swa2-locks", 3),
    "query-flushes": Caught("swa2-group", 4),
    "over-promises": Caught("swa2-gate", 1),
    "under-promises": Caught("swa2-gate", 1),
    "refuses-too-late": Caught("swa2-group", 2),
    "never-settles": Caught("swa2-group", 4),
    "settles-too-late": Caught("swa2-group", 4),
    "closes-group": Caught("swa2-group", 2),
    "victims-into-group": Caught("swa2-group", 4),
    "leaks-page": Caught("four-floats", 2),
    "keeps-swa-of-freed": Caught("four-floats", 3),
    "window-takes-states": Caught("tri-states", 2),
    "frees-tombstoned-twice": Caught("swa2-gate", 3),
    "frees-sentinel": Caught("swa2-chain", 2),
    "split-loses-state": Caught("mamba2-split", 2),
    "split-lifts-state": Caught("mamba2-split", 2),
    "split-turns-ids": Caught("mamba2-split", 2),
    "drops-inserts": Caught("four-floats", 1),
    "ignores-launch": Caught("swa2-event", 2),
    "ignores-fire": Caught("swa2-event", 2),
    "ignores-gate-call": Caught("swa2-gate", 1),
    "ignores-group": Caught("swa2-group", 1),
    "gives-to-another": Caught("four-floats", 2),
    "head-for-tail": Caught("swa2-locks", 1),
    "waits-unasked": Caught("swa2-event", 7),
    "newest-first": Caught("swa2-chain", 4),
    "matches-tombstoned": Caught("mamba2-split", 2),
    "locks-one-node": Caught("mamba2-split", 3),
    "unlocks-others-window": Caught("swa2-handles", 4),
    "ignores-lock": Caught("mamba2-split", 2),
    "forgets-use": Caught("swa2-chain", 2),
    "touches-on-grant": Caught("swa2-chain", 3),
}
"""By the name of the wrong pool."""

LARGER: dict[str, str] = {}
"""Wrong pools that none of the small configurations catches, and why each needs a larger one."""

QUICK = 4
"""Operations up to which a catch takes a second or so."""


def catch(name: str, symmetry: bool = False) -> tuple[int, int] | None:
    """(operations, distinct states until then) of the shortest history by which the pool is caught; None if it is not.

    The history is run again by the ordinary runner before it counts.
    """
    wrong = next(wrong for wrong in FAULTY if wrong.name == name)
    configuration, policy = configuration_named(CAUGHT[name].configuration), policy_named(name)
    engine = ReferenceEngine(configuration, policy, symmetry=symmetry)
    result = engine.run(until=lambda found: wrong.caught_by[0] in found)
    found = engine.found.get(wrong.caught_by[0])
    if found is None or confirmed(configuration, policy, found) is None:
        return None
    return len(found.operations), result.distinct


def main(arguments: Iterable[str] | None = None) -> int:
    """Explore and tell; 1 where some pool is not caught as the table says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every wrong pool, not only those that are quickly caught")
    parser.add_argument("--symmetry", action="store_true", help="with states that differ in names alone as one")
    wanted = parser.parse_args(None if arguments is None else list(arguments))
    names = [name for name, where in CAUGHT.items() if wanted.all or where.operations <= QUICK]
    missed = 0
    for name in names:
        found, where = catch(name, wanted.symmetry), CAUGHT[name]
        as_told = found is not None and found[0] == where.operations
        missed += not as_told
        told = "not caught" if found is None else f"{found[0]} operations, {found[1]} states"
        print(f"{name}: {where.configuration}: {told}{'' if as_told else ', not as the table says'}", flush=True)
    for name, reason in LARGER.items():
        print(f"{name}: {reason}")
    print(f"{len(names) - missed} of {len(names)} caught as the table says; {len(FAULTY)} wrong pools in all")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
