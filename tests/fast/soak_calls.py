"""Calls of a soaked pool: answers are booked, new pages looked at, and forwards launched that end late."""

from collections import Counter
from random import Random

import numpy as np
from tests.fast.soak_requests import Forward, Request
from tests.fast.soak_stamps import Stamps

from poolproof_fast.flights import Flight
from poolproof_fast.grants import Grant, Refusal
from poolproof_fast.pages import Ids
from poolproof_fast.pool import FastPool

MOST_IN_FLIGHT = 6
LATEST = 60
"""A forward ends at most so many actions after its launch."""


class Calls:
    """One pool, what was written to it, and what is in flight on it."""

    def __init__(self, pool: FastPool, seed: int) -> None:
        self.pool, self.rng, self.stamps = pool, Random(seed), Stamps(pool)
        self.in_flight: list[Forward] = []
        self.counts: Counter[str] = Counter()
        """Calls of the pool by what came of them."""
        self.actions = 0
        self.page_tokens = pool.geometry.page_tokens
        self.has_states = pool.cache.caches_states
        self.by_role = {member.role: index for index, member in enumerate(pool.store.members)}

    def count(self, what: str) -> None:
        """A call of the pool."""
        self.counts[what] += 1

    def may_wait(self) -> bool:
        """Most callers may."""
        return self.rng.random() < 0.85

    def got(self, what: str, answer: Grant | Refusal) -> bool:
        """Book an answer; new pages hold nothing foreign, and nothing of ours yet."""
        if not answer:
            self.count(f"{what} refused")
            assert answer.reason is not None or what == "insert", f"{what}: refused without a reason"
            return False
        self.count(what)
        self.counts["steps evicted"] += answer.evicted
        self.counts["events waited for"] += answer.waited
        self.counts["batches moved"] += len(answer.batches)
        for index, ids in self.new_pages(answer):
            self.stamps.handed_out(index, ids)
        return True

    def new_pages(self, grant: Grant) -> list[tuple[int, Ids]]:
        """(member index, ids) of a grant's pages."""
        ids = {"full": grant.ids, "swa": grant.swa_ids, "state": grant.state_ids}
        return [(index, ids[role]) for role, index in self.by_role.items() if len(ids[role])]

    def write(self, pages: list[tuple[int, Ids]], requests: list[Request]) -> None:
        """By a forward that ends late, or at once."""
        if requests and len(self.in_flight) < MOST_IN_FLIGHT and self.rng.random() < 0.5:
            self.launch(pages, requests)
        else:
            for index, ids in pages:
                if not self.stamps.writers[index][ids].any():
                    self.stamps.write(index, ids)

    def launch(self, pages: list[tuple[int, Ids]], requests: list[Request]) -> None:
        """A forward that writes these pages, and reads all that is live."""
        forward = Forward(self.stamps, requests, pages, self.actions + self.rng.randint(1, LATEST))
        ids = {role: ids for role, index in self.by_role.items() for at, ids in pages if at == index}
        tokens = [ids[role] for role in ("full", "swa") if role in ids]
        written = np.unique(np.concatenate(tokens)) if tokens else np.empty(0, np.int32)
        forward.flight = self.pool.launch(forward.event, written, ids.get("state", np.empty(0, np.int32)))
        for request in requests:
            request.busy += 1
        self.in_flight.append(forward)
        self.count("launch")

    def end_forwards(self, due: int) -> None:
        """End those that are due, in no order; some by hand, some by their event."""
        self.in_flight = [forward for forward in self.in_flight if not forward.ended]
        ending = [forward for forward in self.in_flight if forward.due <= due]
        self.rng.shuffle(ending)
        for forward in ending:
            forward.end()
            if self.rng.random() < 0.5:
                assert isinstance(forward.flight, Flight), "it was launched"
                self.pool.fire(forward.flight)
                self.count("fire")
            else:
                forward.event.fire()
        if ending:
            self.pool.poll()
            self.count("poll")
