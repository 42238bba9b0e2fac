"""What a soaked engine runs: prompts that share prefixes, requests, and forwards that end late and out of order."""

from array import array
from random import Random

import numpy as np
from tests.fast.soak_stamps import Stamps, Words

from poolproof_fast.events import PlainEvent
from poolproof_fast.flights import Flight
from poolproof_fast.pages import Ids, Pages
from poolproof_fast.prefix_cache import Handle

LONGEST_PAGES = 40
"""No prompt is longer."""
READ_PAGES = 48
"""Pages of a forward's batch that it is followed up on: it must find them as they were until it ends."""


def ids_of(numbers: list[int]) -> Ids:
    """As the pool takes them."""
    return np.array(numbers, dtype=np.int32)


class Prompts:
    """Page keys of prompts: shared documents, turns that go on from finished ones, and unrelated ones."""

    def __init__(self, rng: Random, document_count: int, remembered: int) -> None:
        self.rng, self.remembered = rng, remembered
        self.documents = [self.fresh(rng.randint(1, 12)) for _ in range(document_count)]
        self.finished: list[list[int]] = []

    def fresh(self, pages: int) -> list[int]:
        """Keys that nobody has seen."""
        return [self.rng.getrandbits(62) for _ in range(pages)]

    def next(self) -> list[int]:
        """The keys of a prompt, at least one page."""
        rng, kind = self.rng, self.rng.random()
        if kind < 0.35 or not self.finished:
            document = self.documents[int(len(self.documents) * rng.random() ** 3)]
            key = document[: rng.randint(1, len(document))] + self.fresh(rng.randint(1, 4))
        elif kind < 0.7:
            key = self.finished[rng.randrange(len(self.finished))] + self.fresh(rng.randint(0, 3))
        else:
            key = self.fresh(rng.randint(1, 6))
        return key[:LONGEST_PAGES]

    def remember(self, key: list[int]) -> None:
        """A prompt and its answer that a later turn may go on from."""
        if not key:
            return
        if len(self.finished) < self.remembered:
            self.finished.append(key)
        else:
            self.finished[self.rng.randrange(self.remembered)] = key


class Request:
    """One running request."""

    __slots__ = ("busy", "handle", "key", "own", "prefix", "state", "swa_from", "target", "tokens")

    def __init__(self, key: list[int], tokens: int, handle: Handle | None, prefix: int) -> None:
        self.key = key
        """Keys of its full pages."""
        self.tokens, self.target = tokens, tokens
        self.handle, self.prefix = handle, prefix
        """The lock on what was found cached, and its pages."""
        self.own: list[int] = []
        """Token ids of its own pages, after the prefix."""
        self.swa_from = prefix
        """Its own pages from here on, counted from the root, have SWA pages."""
        self.state = 0
        self.busy = 0
        """Forwards in flight that it is part of."""

    def swa_ids(self) -> list[int]:
        """Own ids that have an SWA page."""
        return self.own[self.swa_from - self.prefix :]


class Forward:
    """A forward in flight that really reads and writes late: at the pages that it looked up when it was launched."""

    def __init__(self, stamps: Stamps, requests: list[Request], writes: list[tuple[int, Ids]], due: int) -> None:
        self.stamps, self.requests, self.due = stamps, requests, due
        self.event = PlainEvent(on_wait=self.end)
        self.flight: Flight | None = None
        self.ended = False
        self.writes = [(index, ids, stamps.places(index, ids)) for index, ids in writes if len(ids)]
        for index, ids, _ in self.writes:
            stamps.writers[index][ids] += 1
        self.reads: list[tuple[int, Pages, Words]] = []
        for index, member in enumerate(stamps.pool.store.members):
            if member.role != "state":
                self._note_reads(index, member.role)

    def _note_reads(self, index: int, role: str) -> None:
        stamps, numbers = self.stamps, []
        for request in self.requests:
            numbers += request.own if role == "full" else request.swa_ids()
        ids = ids_of(numbers[-READ_PAGES:])
        ids = ids[(stamps.written[index][ids] != 0) & (stamps.writers[index][ids] == 0)]
        if len(ids):
            self.reads.append((index, stamps.places(index, ids), stamps.written[index][ids]))

    def end(self) -> None:
        """Read, write, and be done; called by the engine, or by the pool where it waits."""
        if self.ended:
            return
        self.ended = True
        stamps = self.stamps
        for index, pages, written in self.reads:
            found = stamps.grids[index][pages]
            assert (found == written[:, None]).all(), f"member {index}: [P7] a page changed while a forward read it"
        for index, ids, pages in self.writes:
            now = stamps.pool.store.members[index].page_of_np[ids]
            assert (now == pages).all(), f"member {index}: [P7] a page moved while a forward wrote it"
            stamps.write(index, ids, pages)
            stamps.writers[index][ids] -= 1
        for request in self.requests:
            request.busy -= 1
        stamps.checked += sum(len(pages) for _, pages, _ in self.reads)


def as_key(key: list[int]) -> "array[int]":
    """Keys as the pool likes them best."""
    return array("q", key)
