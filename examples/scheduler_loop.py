"""A serving engine's scheduler in miniature, on the fast pool: `python examples/scheduler_loop.py`.

A hybrid model: full attention, a sliding window, and one Mamba state a request, all in one arena. Conversations share
system prompts and come back with a next question. There is no model: where its kernels would run, their addresses are
looked up. A page holds one token here, so that a page's key is its token.
"""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import torch

from poolproof_fast.events import PlainEvent
from poolproof_fast.flights import Flight
from poolproof_fast.grants import Grant, Refusal
from poolproof_fast.pool import FastPool
from poolproof_fast.prefix_cache import Handle
from poolproof_spec.geometry import layout
from poolproof_spec.outcome import Impossible

WINDOW = 8
"""Tokens that the sliding-window layers look back."""
OVERLAP = 2
"""Forwards in flight: the host plans so many steps ahead of the device."""
MOST_RUNNING = 12


@dataclass(eq=False)
class Request:
    """A turn of a conversation: what was said so far, and how long it shall be when it is answered."""

    tokens: list[int]
    target: int
    handle: Handle | None = None
    """Lock on the prefix that was found in the cache."""
    prefix: int = 0
    """Length of that prefix, in tokens."""
    ids: list[int] = field(default_factory=list)
    """Virtual ids of the tokens after the prefix."""
    swa_from: int = 0
    """Tokens from here on have pages in the sliding-window layers too; those before it have left the window."""
    state: int = 0
    in_flight: int = 0
    """Forwards in flight that it is part of."""


class Scheduler:
    """Continuous batching: prefill what has room, one token for all that run, cache what is done."""

    def __init__(self, pool: FastPool, waiting: list[Request], seed: int = 0) -> None:
        self.pool, self.random = pool, Random(seed)
        self.waiting, self.running = deque(waiting), list[Request]()
        self.in_flight = deque[tuple[Flight, list[Request]]]()
        self.happened = Counter[str]()

    def step(self) -> None:
        """One step: the device's tables are brought up to date when a forward needs them, and at the end."""
        with self.pool.step():
            while self.waiting and len(self.running) < MOST_RUNNING and self.prefill(self.waiting[0]):
                self.waiting.popleft()
            launched = self.decode()
            while len(self.in_flight) > (OVERLAP if launched else 0):
                self.end_oldest_forward()
            for request in [r for r in self.running if len(r.tokens) == r.target and not r.in_flight]:
                self.retire(request)
                self.happened["finished"] += 1
                self.next_turn(request)

    def prefill(self, request: Request) -> bool:
        """Compute a prompt from the end of its cached prefix on; False where there is no room now."""
        pool, length = self.pool, len(request.tokens)
        request.handle = pool.lock(request.tokens[:-1])  # at least one token is computed: its output is wanted
        request.prefix = len(pool.prefix_ids(request.handle)) if request.handle else 0
        states = pool.alloc_states(1)  # to start from pool.prefix_state(request.handle), or from zero
        grant = states and pool.extend_tail(request.prefix, length, tail=WINDOW)
        if not states or not grant:
            pool.free(state_ids=states.state_ids if states else [])
            if request.handle:
                pool.unlock(request.handle)
            self.refused(states and grant)
            return False
        request.state = int(states.state_ids[0])
        request.ids = grant.ids.tolist()
        request.swa_from = length - len(grant.swa_ids)
        self.running.append(request)
        self.count(states, grant)
        self.happened["tokens found cached"] += request.prefix
        self.happened["tokens computed"] += length - request.prefix
        self.forward([request], request.ids)
        return True

    def decode(self) -> bool:
        """One token for every request that is not answered yet; where there is no room the newest one gives way."""
        while batch := [request for request in self.running if len(request.tokens) < request.target]:
            grant = self.pool.decode([len(request.tokens) + 1 for request in batch])
            if grant:
                break
            self.refused(grant)
            self.preempt()
        else:
            return False
        self.count(grant)
        for request, identifier in zip(batch, grant.ids.tolist(), strict=True):
            request.ids.append(identifier)
            request.tokens.append(self.random.randrange(1000))  # what the model would say
            self.leave_window(request)
        self.happened["tokens computed"] += len(batch)
        self.forward(batch, grant.ids.tolist())
        return True

    def forward(self, batch: list[Request], ids: list[int]) -> None:
        """Launch a forward that writes these tokens' pages and the requests' states."""
        pool, states = self.pool, [request.state for request in batch]
        pool.flush_tables()
        for index in range(len(pool.geometry.members)):
            # Where the kernels write; with a real model this is a kernel's argument.
            pool.translate(index, torch.tensor(states if index == 0 else ids))
        flight = pool.launch(PlainEvent(on_wait=self.end_all_forwards), ids, states)
        self.in_flight.append((flight, batch))
        for request in batch:
            request.in_flight += 1

    def leave_window(self, request: Request) -> None:
        """Free sliding-window pages that no forward looks at any more, not even one that is in flight."""
        left = len(request.tokens) - WINDOW - OVERLAP
        if left > request.swa_from:
            self.pool.free_window(request.ids[request.swa_from - request.prefix : left - request.prefix])
            request.swa_from = left
            if request.handle and not request.handle.window_released:
                self.pool.unlock_window(request.handle)

    def end_oldest_forward(self) -> None:
        """The device is done with it; places that pages were moved away from meanwhile are free."""
        flight, batch = self.in_flight.popleft()
        self.pool.fire(flight)
        for request in batch:
            request.in_flight -= 1

    def end_all_forwards(self) -> None:
        """The pool waits: it moves pages that forwards in flight still use, and takes them for ended itself."""
        self.happened["forwards waited for"] += len(self.in_flight)
        for _, batch in self.in_flight:
            for request in batch:
                request.in_flight -= 1
        self.in_flight.clear()

    def preempt(self) -> None:
        """The newest request stops. What it has computed is cached, and found again if nobody needs the room."""
        while self.in_flight:
            self.end_oldest_forward()
        request = self.running[-1]
        self.retire(request)
        self.waiting.appendleft(Request(request.tokens, request.target))
        self.happened["preempted"] += 1

    def retire(self, request: Request) -> None:
        """The cache takes over the request's pages and state; what it has already is freed."""
        self.pool.adopt(request.tokens, request.ids, state_id=request.state)
        if request.handle:
            self.pool.unlock(request.handle)
        self.running.remove(request)

    def next_turn(self, request: Request) -> None:
        """Most users ask again, some time later."""
        if len(request.tokens) < 100 and self.random.random() < 0.7:
            self.waiting.append(turn_of(self.random, request.tokens))

    def refused(self, answer: Grant | Refusal) -> None:
        """Nothing was evicted for it. RuntimeError where it could not be met even with all else gone."""
        self.happened["refused"] += 1
        if not answer and isinstance(answer.reason, Impossible) and not self.running:
            raise RuntimeError(f"a request is too large for the arena: {answer.reason}")

    def count(self, *grants: Grant) -> None:
        """What the grants cost."""
        for grant in grants:
            self.happened["entries evicted"] += grant.evicted
            self.happened["batches of pages moved"] += len(grant.batches)


def turn_of(random: Random, before: list[int]) -> Request:
    """A question of some tokens, and room for its answer."""
    tokens = before + [random.randrange(1000) for _ in range(random.randint(2, 10))]
    return Request(tokens, target=len(tokens) + random.randint(5, 25))


def run(conversations: int = 150, seed: int = 1, say: Callable[[str], None] = print) -> tuple[FastPool, Counter[str]]:
    """Serve them all; the pool as it is then, and what happened."""
    random = Random(seed)
    pool = FastPool(layout("tri", total_bytes=40_000, window_tokens=WINDOW, FULL=32, SWA=32, STATE=128))
    systems = [[1000 + i] * 20 for i in range(4)]
    for system in systems:
        pool.insert(system, with_state=True)  # its new pages would be computed now
    scheduler = Scheduler(pool, [turn_of(random, random.choice(systems)) for _ in range(conversations)], seed)
    step = 0
    while scheduler.waiting or scheduler.running:
        scheduler.step()
        step += 1
        if step % 50 == 0:
            full, swa, states = pool.cache.cached
            say(
                f"step {step:4}: {scheduler.happened['finished']:3} finished, {len(scheduler.running):2} running, "
                f"{len(scheduler.waiting):3} waiting; cached: {full} tokens, {swa} with a window, {states} states"
            )
    while scheduler.in_flight:
        scheduler.end_oldest_forward()
    scheduler.happened["steps"] = step
    return pool, scheduler.happened


def main() -> None:
    """Serve, and say what it took."""
    _, happened = run()
    for what, count in sorted(happened.items()):
        print(f"{count:7} {what}")


if __name__ == "__main__":
    main()
