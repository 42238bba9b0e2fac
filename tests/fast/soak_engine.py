"""An engine's scheduler loop on a fast pool: admit, prefill, decode, cache, preempt, at random and without an end."""

from collections import Counter
from random import Random

import numpy as np

from poolproof_fast.flights import Flight
from poolproof_fast.grants import Grant, Refusal
from poolproof_fast.pages import Ids
from poolproof_fast.pool import FastPool
from poolproof_spec.units import ceil_div
from tests.fast.soak_checks import Owned, check_empty, check_pool
from tests.fast.soak_requests import Forward, Prompts, Request, as_key, ids_of
from tests.fast.soak_stamps import Stamps

MOST_IN_FLIGHT = 6
LATEST = 60
"""A forward ends at most so many actions after its launch."""


class Engine:
    """One pool and the requests that run on it. Actions are methods without arguments; `turn` does a few of them."""

    def __init__(self, pool: FastPool, seed: int, most_running: int = 48) -> None:
        self.pool, self.rng, self.most_running = pool, Random(seed), most_running
        self.stamps = Stamps(pool)
        self.prompts = Prompts(self.rng, 2000)
        self.running: list[Request] = []
        self.hogs: list[Ids] = []
        """Token ids of large requests that nobody shares."""
        self.in_flight: list[Forward] = []
        self.counts: Counter[str] = Counter()
        """Calls of the pool by what came of them."""
        self.actions = 0
        self.page_tokens = pool.geometry.page_tokens
        self.has_states = pool.cache.caches_states
        self.by_role = {member.role: index for index, member in enumerate(pool.store.members)}
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

    # Demands

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

    # Requests

    def admit(self) -> None:
        """Prefill a batch of new requests, as far as their prefixes are not cached."""
        if len(self.running) >= self.most_running:
            return
        batch = [self._found() for _ in range(self.rng.randint(1, 4))]
        if self.has_states and not self._with_states(batch):
            return
        t, window = self.page_tokens, self.pool.geometry.window_tokens
        prefixes, lengths = [r.prefix * t for r in batch], [r.tokens for r in batch]
        if len(batch) == 1:
            answer = self.pool.extend_tail(prefixes[0], lengths[0], window, may_wait=self.may_wait())
        else:
            answer = self.pool.extend(prefixes, lengths, may_wait=self.may_wait())
        if not self.got("extend", answer):
            for request in batch:
                self.drop(request)
            self.preempt()
            return
        assert isinstance(answer, Grant)
        at = 0
        for request in batch:
            count = ceil_div(request.tokens, t) - request.prefix
            request.own = answer.ids[at : at + count].tolist()
            at += count
        batch[-1].swa_from += len(answer.ids) - len(answer.swa_ids)
        self.running += batch
        states = [(self.by_role["state"], ids_of([r.state for r in batch]))] if self.has_states else []
        self.write(self.new_pages(answer) + states, batch)

    def _found(self) -> Request:
        key, rng = self.prompts.next(), self.rng
        rest = rng.randint(1, self.page_tokens)
        tokens = (len(key) - 1) * self.page_tokens + rest
        handle = self.pool.lock(as_key(key[:-1])) if len(key) > 1 else None
        self.count("lock" if handle else "lock found nothing")
        prefix = self.pool.cache.depth_of(handle.node) if handle else 0
        self.counts["pages hit"] += prefix
        request = Request(key[: tokens // self.page_tokens], tokens, handle, prefix)
        request.target = tokens + rng.randint(1, 3 * self.page_tokens + 3)
        return request

    def _with_states(self, batch: list[Request]) -> bool:
        answer = self.pool.alloc_states(len(batch), may_wait=self.may_wait())
        if not self.got("alloc states", answer):
            for request in batch:
                self.drop(request)
            self.preempt()
            return False
        assert isinstance(answer, Grant)
        for request, state in zip(batch, answer.state_ids.tolist(), strict=True):
            request.state = state
        return True

    def decode(self) -> None:
        """One token for some of the running requests."""
        ready = [request for request in self.running if request.tokens < request.target]
        batch = self.rng.sample(ready, min(len(ready), self.rng.randint(1, 16)))
        if not batch:
            return
        answer = self.pool.decode([request.tokens + 1 for request in batch], may_wait=self.may_wait())
        if not self.got("decode", answer):
            self.preempt()
            return
        assert isinstance(answer, Grant)
        new, t = iter(answer.ids.tolist()), self.page_tokens
        for request in batch:
            if request.tokens % t == 0:
                request.own.append(next(new))
            request.tokens += 1
            if request.tokens % t == 0:
                request.key.append(self.rng.choice((1, 2, 3, self.rng.getrandbits(62))))
        last = [request.own[-1] for request in batch]
        pages = [(self.by_role[role], ids_of(last)) for role in ("full", "swa")]
        if self.has_states:
            pages.append((self.by_role["state"], ids_of([request.state for request in batch])))
        self.write(pages, batch)

    def finish(self) -> None:
        """Cache or free requests that are done and that no forward in flight is about."""
        done = [r for r in self.running if r.tokens >= r.target and not r.busy]
        for request in self.rng.sample(done, min(len(done), 3)):
            self.running.remove(request)
            if self.rng.random() < 0.85:
                self.cache(request)
                self.prompts.remember(request.key)
            self.drop(request)

    def cache(self, request: Request) -> None:
        """The cache takes over its full pages, and its state."""
        full = request.tokens // self.page_tokens
        count = full - request.prefix
        if count <= 0:
            return
        state = request.state if self.has_states and self.rng.random() < 0.9 else 0
        key, own = as_key(request.key[:full]), ids_of(request.own[:count])
        self.pool.adopt(key, own, state_id=state)
        self.count("adopt")
        del request.own[:count]
        request.prefix, request.swa_from = full, max(full, request.swa_from)
        if state:
            request.state = 0

    def drop(self, request: Request) -> None:
        """Free what it has and give its lock back."""
        if request.own or request.state:
            self.pool.free(ids_of(request.own), ids_of([request.state] if request.state else []))
            self.count("free")
        if request.handle is not None:
            self.pool.unlock(request.handle)
            self.count("unlock")

    def preempt(self) -> None:
        """Room is short: the newest request that no forward is about goes."""
        for request in reversed(self.running):
            if not request.busy:
                self.running.remove(request)
                self.drop(request)
                self.counts["preempted"] += 1
                return

    def checkpoint(self) -> None:
        """Cache a request in the middle, and go on from the cached prefix, as chunked prefill does."""
        idle = [r for r in self.running if not r.busy]
        if not idle:
            return
        request = self.rng.choice(idle)
        self.running.remove(request)
        self.cache(request)
        old, key = request.handle, request.key[: request.prefix]
        request.handle = self.pool.lock(as_key(key)) if key else None
        self.count("checkpoint")
        if old is not None:
            self.pool.unlock(old)
        if request.prefix > (self.pool.cache.depth_of(request.handle.node) if request.handle else 0):
            self.drop(request)
        elif not self.has_states or request.state or self._with_states([request]):
            self.running.append(request)
            if self.has_states:
                self.stamps.write(self.by_role["state"], ids_of([request.state]))

    def free_windows(self) -> None:
        """SWA pages that have left the window, own ones and the prefix's."""
        window, t = self.pool.geometry.window_tokens, self.page_tokens
        for request in self.running:
            left = (request.tokens - window) // t
            if request.busy or left <= request.swa_from:
                continue
            self.pool.free_window(ids_of(request.own[request.swa_from - request.prefix : left - request.prefix]))
            self.count("free window")
            request.swa_from = left
            if request.handle is not None and not request.handle.window_released:
                self.pool.unlock_window(request.handle)
                self.count("unlock window")

    def recover(self) -> None:
        """SWA pages for all of a request's own tokens, as after a retraction."""
        idle = [r for r in self.running if not r.busy and r.swa_from > r.prefix]
        if not idle:
            return
        request = self.rng.choice(idle)
        answer = self.pool.recover(ids_of(request.own), may_wait=self.may_wait())
        if self.got("recover", answer):
            assert isinstance(answer, Grant)
            request.swa_from = request.prefix
            self.write(self.new_pages(answer), [])

    # The rest

    def fill(self) -> None:
        """Cache prompts until there is no room."""
        refused = self.counts["insert refused"]
        with self.pool.step():
            while self.counts["insert refused"] == refused:
                self.insert()
                if self.rng.random() < 0.3:
                    self.prompts.remember(self.prompts.next())

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
        return Owned(*[np.concatenate([ids_of(ids), *more]) for ids, more in ((full, self.hogs), (swa, self.hogs))],
                     ids_of(states))

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
