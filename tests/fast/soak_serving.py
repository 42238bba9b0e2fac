"""The life of requests on a soaked pool: prefill, decode, caching, preemption, windows."""

from tests.fast.soak_calls import Calls
from tests.fast.soak_requests import Prompts, Request, as_key, ids_of

from poolproof_fast.grants import Grant
from poolproof_fast.pool import FastPool
from poolproof_spec.units import ceil_div


class Serving(Calls):
    """The requests that run on a pool. Actions are methods without arguments."""

    def __init__(self, pool: FastPool, seed: int, most_running: int, prompts: tuple[int, int]) -> None:
        super().__init__(pool, seed)
        self.most_running = most_running
        self.prompts = Prompts(self.rng, *prompts)
        self.running: list[Request] = []

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
