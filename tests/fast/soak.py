"""A long run of an engine-like loop on the fast pool, with faults: `python -m tests.fast.soak --minutes 10`.

Two large pools (SWA/FULL, and state/SWA/FULL with device tables of their own) run side by side, and a small one in
debug mode, whose every operation is checked against the specification's own invariants. Exit 0: all held; 1: not.
"""

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import torch
from tests.fast.soak_engine import Engine
from tests.fast.soak_faults import Faults

from poolproof_fast.pool import FastPool
from poolproof_spec.geometry import layout

SLICE_ACTIONS = 1_000
"""Actions on each large pool between two checks of everything."""
SMALL_ACTIONS = 100
"""Actions on the small pool in the same time, each checked against the specification."""
GROWTH_LIMIT = 1.05
"""Resident memory may grow by so much after the warm-up."""
WARM_UP = 0.2
"""Share of the run after which memory is compared."""
MIB = 2**20


def pools(entries: int) -> dict[str, FastPool]:
    """Arenas that stay filled with about so many entries and more; page sizes in bytes."""
    return {
        "swa2": FastPool(layout("swa2", 340 * entries, page_tokens=4, window_tokens=8, FULL=64, SWA=64)),
        "tri": FastPool(layout("tri", 230 * entries, window_tokens=2, FULL=32, SWA=32, STATE=48), tables_apart=True),
    }


def small_pool() -> FastPool:
    """Requests take much of it, so that locked nodes are stripped and demands refused."""
    return FastPool(layout("tri", 6_000, window_tokens=3, FULL=32, SWA=48, STATE=96), tables_apart=True, debug=True)


def resident_bytes() -> int:
    """Resident memory of this process."""
    return int(psutil.Process().memory_info().rss)


class Soak:
    """The run and its figures."""

    def __init__(self, entries: int, seed: int, say: Callable[[str], None]) -> None:
        torch.set_num_threads(1)
        self.entries, self.say = entries, say
        self.engines = {name: Engine(pool, seed + i) for i, (name, pool) in enumerate(pools(entries).items())}
        self.small = Engine(small_pool(), seed + 2, most_running=6, prompts=(3, 4))
        self.faults = {name: Faults(engine) for name, engine in [*self.engines.items(), ("small", self.small)]}
        self.least = dict.fromkeys(self.engines, 0)
        """Fewest cached entries at the end of a slice."""
        self.filled = 0
        """Calls that filled the caches; not timed."""
        self.rss: list[int] = []
        """After each round, in bytes, from the end of the warm-up on."""
        self.rounds, self.wall_s, self.cpu_s = 0, 0.0, 0.0
        """Rounds, and what the actions of the large pools took."""

    def run(self, seconds: float) -> dict[str, Any]:
        """All of it; AssertionError where something does not hold."""
        for name, engine in self.engines.items():
            engine.fill()
            engine.check()
            self.least[name] = engine.pool.cache.entry_count
            self.say(f"{name}: filled with {engine.pool.cache.entry_count} entries")
        self.filled = self.operations()
        start, said = time.monotonic(), 0.0
        while (elapsed := time.monotonic() - start) < seconds:
            self.round()
            if elapsed >= WARM_UP * seconds:
                gc.collect()
                self.rss.append(resident_bytes())
            if elapsed - said > max(seconds / 40, 5):
                said = elapsed
                self.say(self.line(elapsed))
        elapsed = time.monotonic() - start
        for engine in (*self.engines.values(), self.small):
            engine.wind_up()
        return self.figures(elapsed)

    def round(self) -> None:
        """Some actions on each pool, then every check."""
        self.rounds += 1
        for name, engine in self.engines.items():
            self.timed(name, engine, SLICE_ACTIONS)
            engine.check()
            self.least[name] = min(self.least[name], engine.pool.cache.entry_count)
        self.act("small", self.small, SMALL_ACTIONS)
        self.small.check()

    def timed(self, name: str, engine: Engine, actions: int) -> None:
        """Actions whose time counts: the pool's, and what the engine does around it."""
        wall, cpu = time.monotonic(), time.process_time()
        self.act(name, engine, actions)
        self.wall_s += time.monotonic() - wall
        self.cpu_s += time.process_time() - cpu

    def act(self, name: str, engine: Engine, actions: int) -> None:
        """So many actions of an engine, and its gate opened when due."""
        end = engine.actions + actions
        while engine.actions < end:
            self.faults[name].look_at_gate()
            engine.turn()

    def operations(self) -> int:
        """Calls of the two large pools."""
        told = ("steps evicted", "events waited for", "batches moved", "pages hit", "preempted")
        return -self.filled + sum(n for e in self.engines.values() for what, n in e.counts.items() if what not in told)

    def line(self, elapsed: float) -> str:
        """Progress."""
        cached = ", ".join(f"{name} {e.pool.cache.entry_count}" for name, e in self.engines.items())
        evicted = sum(e.counts["steps evicted"] for e in self.engines.values())
        return (
            f"{elapsed:5.0f} s  {self.operations():9d} operations  {evicted:8d} evicted  entries: {cached}  "
            f"{resident_bytes() / MIB:.0f} MiB"
        )

    def figures(self, elapsed: float) -> dict[str, Any]:
        """What is reported."""
        engines = {**self.engines, "small": self.small}
        rss = self.rss or [resident_bytes()]
        return {
            "seconds": round(elapsed, 1),
            "operations": self.operations(),
            "operations_per_second": round(self.operations() / self.wall_s),
            "operations_per_cpu_second": round(self.operations() / self.cpu_s),
            "rounds_checked": self.rounds,
            "pages_read_back": sum(e.stamps.checked for e in engines.values()),
            "least_entries": self.least,
            "rss_mib": {"start": _mib(rss[0]), "peak": _mib(max(rss)), "end": _mib(rss[-1])},
            "rss_growth": round(max(rss) / rss[0], 4),
            "counts": {name: dict(sorted(e.counts.items())) for name, e in engines.items()},
        }


def _mib(size: int) -> float:
    return round(size / MIB, 1)


def main(arguments: list[str] | None = None) -> int:
    """Run, and say how it went."""
    parser = argparse.ArgumentParser(prog="python -m tests.fast.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    soak = Soak(given.entries, given.seed, lambda line: print(line, flush=True))
    figures = {"seed": given.seed, "entries": given.entries, **soak.run(60 * given.minutes)}
    text = json.dumps(figures, indent=1)
    if given.json:
        given.json.write_text(text + "\n")
    print(text)
    if figures["rss_growth"] > GROWTH_LIMIT:
        print(f"resident memory grew to {figures['rss_growth']} times what it was after the warm-up", file=sys.stderr)
        return 1
    if min(figures["least_entries"].values()) < given.entries:
        print(f"fewer than {given.entries} entries were cached: {figures['least_entries']}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
