"""What goes wrong around a pool: gates that flap, demands that can never be met, and calls that must be refused."""

from array import array
from collections.abc import Callable
from zlib import crc32

import numpy as np
from tests.fast.soak_engine import Engine
from tests.fast.soak_requests import as_key, ids_of

from poolproof_fast.errors import RefusedError
from poolproof_spec.outcome import Impossible

GATE_SHUT = 40
"""A gate stays shut for at most so many actions."""


class Faults:
    """Faults are injected into an engine's loop as further actions."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.gate_due, self.copied_bytes = engine, 0, 0
        engine.choices += [(self.flap_gate, 1), (self.ask_too_much, 0.5), (self.call_badly, 1.5)]

    def flap_gate(self) -> None:
        """Shut the gate; it opens again some actions later."""
        engine = self.engine
        if engine.pool.store.gate_open:
            engine.pool.gate(open=False)
            engine.count("gate")
            self.gate_due = engine.actions + engine.rng.randint(1, GATE_SHUT)
            self.copied_bytes = engine.pool.store.arena.copied_bytes

    def look_at_gate(self) -> None:
        """Open it when it is due; no page was copied behind it."""
        store = self.engine.pool.store
        if not store.gate_open and self.engine.actions >= self.gate_due:
            moved = store.arena.copied_bytes - self.copied_bytes
            assert not moved, f"[P7] {moved} bytes of pages were moved behind a shut gate"
            self.engine.pool.gate(open=True)
            self.engine.count("gate")

    def fingerprint(self) -> tuple[object, ...]:
        """Whatever a refused call could have changed."""
        pool = self.engine.pool
        store, cache = pool.store, pool.cache
        contents: list[bytearray | array[int]] = [store.tokens.owner, store.states.owner]
        for member in store.members:
            contents += [member.page_of, member.vacant]
        crc = 0
        for content in contents:
            crc = crc32(content, crc)
        counts = [(member.live, member.taken, member.low, member.high) for member in store.members]
        nodes = (cache.entry_count, tuple(cache.cached), tuple(cache.evictable), cache.tree.recency.clock)
        return crc, counts, nodes, store.tokens.top, store.states.top, len(pool.queued), pool.group_open

    def ask_too_much(self) -> None:
        """[P3], [P4] A demand that can never be met is refused as such, and costs nothing."""
        engine, pool = self.engine, self.engine.pool
        if pool.group_open:
            return
        before = self.fingerprint()
        pages = pool.reclaim.most_tokens + engine.rng.randint(1, 1000)
        answer = pool.alloc(pages * engine.page_tokens, may_wait=engine.may_wait())
        assert not answer, f"{pages} pages were granted in an arena of {pool.reclaim.most_tokens}"
        assert isinstance(answer.reason, Impossible), f"refused for {answer.reason}, expected it to be impossible"
        assert self.fingerprint() == before, "a refused demand has changed something"
        engine.count("impossible")

    def call_badly(self) -> None:
        """A bad call raises a RefusedError and changes nothing."""
        engine = self.engine
        name, call = engine.rng.choice(self.bad_calls())
        before = self.fingerprint()
        try:
            call()
        except RefusedError:
            assert self.fingerprint() == before, f"{name}: refused, and has changed something"
            engine.count(f"bad call: {name}")
        else:
            raise AssertionError(f"{name}: expected a RefusedError")

    def bad_calls(self) -> list[tuple[str, Callable[[], object]]]:
        """Those that can be made now."""
        pool, rng = self.engine.pool, self.engine.rng
        store = pool.store
        beyond = len(store.tokens.owner) + rng.randint(0, 10)
        calls: list[tuple[str, Callable[[], object]]] = [
            ("free of an id beyond the space", lambda: pool.free(ids_of([beyond]))),
            ("free of id 0", lambda: pool.free(ids_of([0]))),
            ("free of -1", lambda: pool.free([-1])),
            ("negative size", lambda: pool.alloc(-1)),
            ("shrinking request", lambda: pool.extend([8], [7])),
            ("lengths that do not pair up", lambda: pool.extend([0, 0], [1])),
            ("empty key", lambda: pool.insert([])),
            ("group twice", pool.group_begin if pool.group_open else pool.group_end),
        ]
        if store.tokens.top:
            free = int(store.tokens.free_np[rng.randrange(store.tokens.top)])
            calls.append(("free of a free id", lambda: pool.free([free])))
            calls.append(("window of a free id", lambda: pool.free_window([free])))
        cached = pool.cache.tree.nodes.live_slots()[:1]
        if len(cached):
            taken = pool.cache.tree.ids_along(cached.tolist())
            calls.append(("free of a cached id", lambda: pool.free(taken)))
        own = next((request.own for request in self.engine.running if request.own), None)
        if own:
            twice = ids_of([*own, own[0]])
            calls.append(("free of an id twice", lambda: pool.free(twice)))
            calls.append(("recovery of an id twice", lambda: pool.recover(twice)))
            calls.append(("one good id and a bad one", lambda: pool.free(np.append(ids_of(own), np.int32(beyond)))))
            calls.append(("adoption below nothing", lambda: pool.adopt(as_key([-5, -6, 1]), ids_of(own[:1]))))
        states = next((request.state for request in self.engine.running if request.state), 0)
        if states:
            calls.append(("free of a state twice", lambda: pool.free(state_ids=[states, states])))
        return calls
