"""An engine's scheduler loop on a fast pool, at random and without an end."""

import numpy as np
from tests.fast.soak_calls import LATEST
from tests.fast.soak_checks import Owned, check_empty, check_pool
from tests.fast.soak_requests import as_key, ids_of
from tests.fast.soak_serving import Serving

from poolproof_fast.grants import Grant
from poolproof_fast.pages import Ids
from poolproof_fast.pool import FastPool


class Engine(Serving):
    """One pool and all that happens on it; `turn` does a few actions."""

    def __init__(
        self, pool: FastPool, seed: int, most_running: int = 48, prompts: tuple[int, int] = (2000, 4000)
    ) -> None:
        """`prompts`: shared documents, and finished prompts that later ones may go on from."""
        super().__init__(pool, seed, most_running, prompts)
        self.hogs: list[Ids] = []
        """Token ids of large requests that nobody shares."""
        self.choices = [
            (self.admit, 22),
            (self.decode, 40),
            (self.finish, 24),
            (self.free_windows, 8),
            (self.checkpoint, 3),
            (self.match, 4),
            (self.insert, 3),
            (self.recover, 1),
            (self.compact, 0.3),
            (self.hog, 0.6),
            (self.group, 3),
            (self.ask, 1),
        ]

    def fill(self) -> None:
        """Cache prompts until there is no room, some with a state: each of those makes a float move."""
        with self.pool.step():
            while True:
                with_state = self.has_states and self.rng.random() < 0.2
                if not self.got("insert", self.pool.insert(as_key(self.prompts.next()), with_state=with_state)):
                    break
        for index, member in enumerate(self.pool.store.members):
            self.stamps.write(index, np.flatnonzero(member.page_of_np).astype(np.int32))

    def match(self) -> None:
        """Look a prompt up."""
        self.pool.match(as_key(self.prompts.next()))
        self.count("match")

    def insert(self) -> None:
        """Cache a prompt at once, evicting nothing."""
        answer = self.pool.insert(as_key(self.prompts.next()), with_state=self.has_states)
        if self.got("insert", answer):
            assert isinstance(answer, Grant)
            self.write(self.new_pages(answer), [])

    def compact(self) -> None:
        """Close holes."""
        self.pool.compact()
        self.count("compact")

    def hog(self) -> None:
        """One large request of up to a hundredth of the arena, or the end of it."""
        if len(self.hogs) > 1:
            self.pool.free(self.hogs.pop(0))
            self.count("free")
            return
        pages = self.rng.randint(1, max(2, self.pool.reclaim.most_tokens // 100))
        answer = self.pool.alloc(pages * self.page_tokens, may_wait=self.may_wait())
        if self.got("alloc", answer):
            assert isinstance(answer, Grant)
            self.hogs.append(answer.ids)
            self.write(self.new_pages(answer), [])

    def group(self) -> None:
        """Open or close a group of frees."""
        if self.pool.group_open:
            self.pool.group_end()
        else:
            self.pool.group_begin()
        self.count("group")

    def ask(self) -> None:
        """[P11] What is said to be available fits, and no page more."""
        pages = self.pool.available_pages()
        assert self.pool.fits(pages, pages) and not self.pool.fits(pages + 1, pages + 1), "available_pages is wrong"
        self.count("available pages")

    def turn(self) -> None:
        """One turn of the scheduler: a few actions, after which the device's tables are brought up to date."""
        with self.pool.step():
            for _ in range(self.rng.randint(1, 4)):
                self.actions += 1
                self.end_forwards(self.actions)
                methods, weights = zip(*self.choices, strict=True)
                self.rng.choices(methods, weights)[0]()

    def held(self) -> Owned:
        """What the running requests hold, by their own books."""
        full = [i for request in self.running for i in request.own]
        swa = [i for request in self.running for i in request.swa_ids()]
        states = [request.state for request in self.running if request.state]
        with_hogs = (np.concatenate([ids_of(ids), *self.hogs]) for ids in (full, swa))
        locks = [request.handle for request in self.running if request.handle is not None]
        return Owned(next(with_hogs), next(with_hogs), ids_of(states), locks)

    def check(self) -> None:
        """Every invariant, every page."""
        check_pool(self.pool, self.held())
        self.stamps.check_all()

    def wind_up(self) -> None:
        """Everything ends and is given back; nothing is left."""
        self.pool.gate(open=True)
        self.end_forwards(self.actions + LATEST)
        for request in self.running:
            self.drop(request)
        for ids in self.hogs:
            self.pool.free(ids)
        if self.pool.group_open:
            self.pool.group_end()
        self.running, self.hogs = [], []
        self.check()
        grant = self.pool.reserve(self.pool.reclaim.most_tokens, self.pool.reclaim.most_tokens)
        assert grant, "with everything given back, the whole arena can be had"
        self.pool.free(grant.ids)
        self.pool.reclaim.evict(self.pool.cache.walk().take(self.pool.cache.entry_count))
        check_empty(self.pool)
