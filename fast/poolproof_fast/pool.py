"""The fast pool: one arena, its members, a prefix cache, and every operation on them; host data decides everything.

    pool = FastPool(layout("tri", total_bytes, STATE=48, SWA=32, FULL=32), device="cuda")
    with pool.step():                      # device tables are brought up to date once, at the end
        grant = pool.extend([0], [17])     # evicts what it must and no more; a Refusal (falsy) says why not
        if grant:
            grant.ids                      # virtual ids: translate them on the device with pool.translate

No operation reads device memory: what is free, bound, cached or in flight is known on the host, and the device is sent
page copies, fills and table entries in stream order. What an operation means is in docs/spec.md and in the reference.
"""

import operator
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import torch

from poolproof_fast.demands import check_size, decode_demand, extend_demand, tail_demand
from poolproof_fast.device_work import Kernels, device_work
from poolproof_fast.errors import (
    EmptyKeyError,
    GroupError,
    NoStatesError,
    NotInFlightError,
    SizeError,
    UnknownIdError,
)
from poolproof_fast.events import CudaEvent, Event, PlainEvent
from poolproof_fast.flights import Flight
from poolproof_fast.grants import Grant, Reason, Refusal
from poolproof_fast.hygiene import Mode
from poolproof_fast.ids import CACHED, QUEUED
from poolproof_fast.nodes import Column, key_array
from poolproof_fast.pages import Ids
from poolproof_fast.prefix_cache import Handle, Key, PrefixCache
from poolproof_fast.reclaim import Reclaim, largest
from poolproof_fast.self_check import SelfCheck
from poolproof_fast.store import NO_IDS, Store
from poolproof_spec.demand import token_pages
from poolproof_spec.geometry import Geometry, Role
from poolproof_spec.units import LARGEST_QUANTITY

GivenIds = Sequence[int] | Ids


class FastPool:
    """One pool with its cache. Not thread-safe: one scheduler owns it.

    Errors: a bad call raises a RefusedError and has changed nothing. A demand that cannot be met is no error: it
    returns a Refusal, and nothing was evicted for it.
    """

    def __init__(
        self,
        geometry: Geometry,
        device: str | torch.device = "cpu",
        *,
        kernels: Kernels | None = None,
        tables_apart: bool | None = None,
        hygiene: Mode | Mapping[Role, Mode] = "zero",
        debug: bool = False,
    ) -> None:
        """`kernels`: None for Triton on a GPU and plain torch on a CPU; "triton" on a CPU is its interpreter.

        `tables_apart`: whether the device's tables are memory of their own; None: on a GPU yes, on a CPU no.
        `hygiene`: what a page is filled with whose bytes were another member's, for all roles or each.
        `debug`: after every operation W1-W6 are checked, freed pages are poisoned, and pending ones are watched.
        """
        self.geometry = geometry
        self.store = Store(geometry, device, kernels, tables_apart, hygiene, poison_freed=debug)
        self.cache = PrefixCache(geometry)
        self.reclaim = Reclaim(self.store, self.cache)
        self._snapshot = self.reclaim.snapshot
        self._most_tokens = self.reclaim.most_tokens * geometry.page_tokens
        self.group_open = False
        self.queued: list[tuple[Ids, Ids]] = []
        """(token ids, state ids) that were freed into the open group."""
        self._page_tokens, self._has_swa = geometry.page_tokens, geometry.has_role("swa")
        self._has_states = geometry.has_role("state")
        self._state_members = list(geometry.with_role("state"))
        self._swa = [self.store.members[index] for index in geometry.with_role("swa")]
        self._steps_open = 0
        self._check = SelfCheck(self) if debug else None
        self._has_more_to_do = debug or self.store.tables.apart

    # Demands: each may evict; a Refusal says why it cannot be met, and then nothing was evicted

    def alloc(self, tokens: int, *, may_wait: bool = True) -> Grant | Refusal:
        """`tokens` new tokens. Raises SizeError."""
        if type(tokens) is not int:
            tokens = operator.index(tokens)
        if tokens > self._most_tokens and not self.queued:
            if tokens > LARGEST_QUANTITY:
                check_size(tokens)
            return Refusal(None, self._bound_of_tokens, tokens, self._snapshot())
        if not 0 <= tokens <= LARGEST_QUANTITY:
            check_size(tokens)
        pages = token_pages(tokens, self._page_tokens) if self._page_tokens > 1 else tokens
        return self._reserve((pages, pages * self._has_swa, 0), may_wait, NO_IDS)

    def _bound_of_tokens(self, tokens: int, counts: tuple[int, ...]) -> Reason:
        """The bound that so many tokens fail, in the numbers of a snapshot."""
        pages = token_pages(tokens, self._page_tokens)
        return self.reclaim.bound_of((pages, pages * self._has_swa, 0), counts)

    def extend(self, prefix_lens: Sequence[int], seq_lens: Sequence[int], *, may_wait: bool = True) -> Grant | Refusal:
        """A prefill batch: request r grows from prefix_lens[r] to seq_lens[r] tokens."""
        pages = extend_demand(prefix_lens, seq_lens, self._page_tokens)
        return self.reserve(pages, pages, may_wait=may_wait)

    def decode(self, seq_lens: Sequence[int], *, may_wait: bool = True) -> Grant | Refusal:
        """One decode step; lengths are those after it, in tokens."""
        pages = decode_demand(seq_lens, self._page_tokens)
        return self.reserve(pages, pages, may_wait=may_wait)

    def extend_tail(self, prefix_len: int, seq_len: int, tail: int, *, may_wait: bool = True) -> Grant | Refusal:
        """A prefill of which only the last `tail` tokens need SWA pages."""
        full, swa = tail_demand(prefix_len, seq_len, tail, self._page_tokens)
        return self.reserve(full, swa, may_wait=may_wait)

    def alloc_states(self, count: int, *, may_wait: bool = True) -> Grant | Refusal:
        """`count` Mamba states."""
        check_size(count)
        return self.reserve(states=count, may_wait=may_wait)

    def recover(self, ids: GivenIds, *, may_wait: bool = True) -> Grant | Refusal:
        """SWA pages for those of a request's token ids that have none. Raises UnknownIdError, DoubleFreeError."""
        held = _ids(ids)
        self.store.tokens.check_held(held)
        bare = held[self._swa[0].page_of_np[held] == 0] if self._swa else NO_IDS
        return self._reserve((0, len(bare), 0), may_wait, bare)

    def reserve(self, full: int = 0, swa: int = 0, states: int = 0, *, may_wait: bool = True) -> Grant | Refusal:
        """Exact pages of each role. What the chain has no member for is not demanded. `swa` is at most `full`.

        Raises SizeError.
        """
        full, swa, states = operator.index(full), operator.index(swa), operator.index(states)
        if not 0 <= swa <= full or states < 0:
            raise SizeError(f"{full} FULL, {swa} SWA, {states} state pages: must be 0 <= SWA <= FULL, and 0 <= states")
        needed = (full, swa if self._has_swa else 0, states if self._has_states else 0)
        return self._reserve(needed, may_wait, NO_IDS)

    def _reserve(self, needed: tuple[int, int, int], may_wait: bool, recovered: Ids) -> Grant | Refusal:
        if self.queued:
            self._flush_group()
        answer = self.reclaim.reserve(needed, may_wait, recovered)
        if self._has_more_to_do:
            self._done()
        return answer

    # Frees

    def free(self, ids: GivenIds = NO_IDS, state_ids: GivenIds = NO_IDS) -> None:
        """End (part of) a request: free its tokens' pages, SWA ones too, and states; deferred while a group is open.

        Raises UnknownIdError, DoubleFreeError.
        """
        token_ids, states = _ids(ids), _ids(state_ids)
        if len(token_ids):
            self.store.tokens.check_held(token_ids)
        if len(states):
            self.store.states.check_held(states)
        if self.group_open:
            self.store.tokens.owner_np[token_ids] = QUEUED
            self.store.states.owner_np[states] = QUEUED
            self.queued.append((token_ids.copy(), states.copy()))
        else:
            self._free(token_ids, states)
        self._done()

    def free_window(self, ids: GivenIds) -> None:
        """SWA pages of these tokens have left the window: free them; FULL stays. Never deferred.

        Raises UnknownIdError (also for an id that has no SWA page), DoubleFreeError.
        """
        token_ids = _ids(ids)
        self.store.tokens.check_held(token_ids)
        for member in self._swa:
            bare = member.page_of_np[token_ids] == 0
            if bare.any():
                raise UnknownIdError(f"token id {int(token_ids[bare][0])} has no {member.name} page to free")
        for member in self._swa:
            self.store.release(member.index, token_ids)
        self._done()

    def _free(self, token_ids: Ids, state_ids: Ids) -> None:
        store = self.store
        if len(token_ids):
            for index, role in enumerate(store.role_of):
                if role == 0:
                    store.release(index, token_ids)
                elif role == 1:
                    bound = store.members[index].page_of_np[token_ids] > 0
                    store.release(index, token_ids if bound.all() else token_ids[bound])
            store.tokens.give_back(token_ids)
        if len(state_ids):
            for index in self._state_members:
                store.release(index, state_ids)
            store.states.give_back(state_ids)

    def group_begin(self) -> None:
        """Collect frees from now on."""
        if self.group_open:
            raise GroupError("a group is open; end it first")
        self.group_open = True

    def group_end(self) -> None:
        """Carry the collected frees out."""
        if not self.group_open:
            raise GroupError("no group is open; begin one first")
        self._flush_group()
        self.group_open = False
        self._done()

    def _flush_group(self) -> None:
        """[P8] A phase boundary: what was collected is free, the group stays open."""
        for token_ids, state_ids in self.queued:
            self._free(token_ids, state_ids)
        self.queued.clear()

    # The prefix cache

    def insert(self, key: Key, *, with_state: bool = False) -> Grant | Refusal:
        """Cache a prefix without evicting or waiting; the Grant has its new pages, to be written by the caller.

        Raises EmptyKeyError, NoStatesError.
        """
        keys = self._key(key, with_state)
        full, swa, state = self.cache.missing(keys, with_state)
        needed = (full, swa, int(state))
        if not self._fits_now(needed):
            return self.reclaim.refuse(needed, may_wait=False)
        bare = self.cache.bare_ids(keys)
        grant = self.reclaim.place(needed, False, bare, CACHED)
        self.cache.insert(keys, grant.ids, int(grant.state_ids[0]) if state else 0)
        self._done()
        return grant

    def adopt(self, key: Key, ids: GivenIds, *, state_id: int = 0) -> Ids:
        """Cache a prefix with a request's own pages: no page is allocated, copied or evicted.

        `ids` are the token ids of the last len(ids) pages of `key`; what is above them must be cached. What is cached
        already is freed, or takes the place of a tombstoned copy. Of the SWA pages those count that reach to the end
        of the key without a gap; others are freed. Returns the token ids that were freed. Raises EmptyKeyError,
        UnknownIdError, DoubleFreeError, NoStatesError, and AdoptError where the pages above are not cached.
        """
        keys = self._key(key, state_id > 0)
        own, store = _ids(ids), self.store
        store.tokens.check_held(own)
        states = _ids([state_id] if state_id else [])
        store.states.check_held(states)
        swa_from = len(own)
        if self._swa:
            bare = np.flatnonzero(self._swa[0].page_of_np[own] == 0)
            swa_from = int(bare[-1]) + 1 if len(bare) else 0
        adopted = self.cache.adopt(keys, own, len(keys) - len(own) + swa_from, state_id)
        store.tokens.owner_np[own] = CACHED
        store.states.owner_np[states] = CACHED
        for member in self._swa:
            above = own[:swa_from]
            store.release(member.index, above[member.page_of_np[above] > 0])
        freed_states = _ids([adopted.duplicate_state] if adopted.duplicate_state else [])
        self._free(adopted.duplicates_full, freed_states)
        self._done()
        return adopted.duplicates_full

    def match(self, key: Key) -> int:
        """Pages of the longest usable prefix, which is the most recently used now. Raises EmptyKeyError."""
        return self.cache.depth_of(self.cache.match(self._key(key)))

    def lock(self, key: Key) -> Handle | None:
        """Match, and keep what was found from being evicted until `unlock`; None where nothing was found."""
        return self.cache.lock(self._key(key))

    def unlock(self, handle: Handle) -> None:
        """Give a lock back. Raises NotLockedError."""
        self.cache.unlock(handle)

    def unlock_window(self, handle: Handle) -> None:
        """Give the SWA and state part of a lock back. Raises NotLockedError."""
        self.cache.unlock_window(handle)

    def prefix_ids(self, handle: Handle) -> Ids:
        """Token ids of a locked prefix, root side first."""
        return self.cache.ids_of(handle.node)

    def prefix_state(self, handle: Handle) -> int:
        """State id cached at the end of a locked prefix; 0 where there is none."""
        return self.cache.state_of(handle.node)

    def _key(self, key: Key, with_state: bool = False) -> Column:
        """The key as the cache takes it."""
        if not len(key):
            raise EmptyKeyError("a prefix needs at least one page key")
        if with_state and not self.cache.caches_states:
            raise NoStatesError("this geometry caches no states; insert without one")
        try:
            return key_array(key)
        except OverflowError:
            raise SizeError("a page key of more than 64 bits: must be below 2**63") from None

    # Gates, forwards in flight, housekeeping

    def gate(self, *, open: bool) -> None:
        """Open or close every move gate: behind a closed one no page moves."""
        self.store.gate_open = open

    def launch(self, event: Event | None = None, writes: GivenIds = NO_IDS, state_writes: GivenIds = NO_IDS) -> Flight:
        """A forward goes in flight: it reads every live page, and writes those of the ids given.

        `event` fires when it ends. None: on a GPU, when all that the current stream has been given until now is done;
        on a CPU, where a caller's work is done when it returns, whenever the pool has to wait, or `fire` says so.
        Raises UnknownIdError for an id that is free.
        """
        token_ids, state_ids = _ids(writes), _ids(state_writes)
        self.store.tokens.check_known(token_ids)
        self.store.states.check_known(state_ids)
        if event is not None:
            given = event
        elif self.store.device.type == "cuda":
            given = CudaEvent()
        else:
            given = PlainEvent(on_wait=lambda: None)
        return self.store.flights.launch(given, (token_ids.copy(), state_ids.copy()))

    def fire(self, flight: Flight) -> None:
        """The forward ended; what only it kept pending is free. Raises NotInFlightError."""
        if flight not in self.store.flights.unfired:
            raise NotInFlightError(f"flight {flight.number} is not in flight: it was fired or waited for")
        self.store.fire(flight)
        self._done()

    def poll(self) -> int:
        """Fire every flight whose event has fired, without blocking; how many."""
        ended = [flight for flight in self.store.flights.unfired if flight.event.query()]
        for flight in ended:
            self.fire(flight)
        return len(ended)

    def compact(self) -> None:
        """Close holes inside each member without waiting; places that are still read become pending."""
        self.store.compact()
        self._done()

    # Questions: nothing is changed, no device memory is read

    def fits(self, full: int = 0, swa: int = 0, states: int = 0) -> bool:
        """Whether so many pages could be had now: nothing evicted, no event waited for."""
        return self._fits_now((full, swa if self._has_swa else 0, states if self._has_states else 0))

    def available_pages(self) -> int:
        """The largest number of token pages that could be had now: nothing evicted, no event waited for."""
        return largest(lambda pages: self._fits_now((pages, pages * self._has_swa, 0)))

    def _fits_now(self, needed: tuple[int, int, int]) -> bool:
        return self.store.fits_as_it_lies(needed) or self.reclaim.question(needed, may_wait=False).fits_after(())

    def translate(self, index: int, token_ids: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        """Token slots of virtual token ids in a member, on the device: page_of[v // t] * t + v % t for each v.

        `token_ids` int32 or int64 [n], t = page_tokens; unbound ids give slots of the padding sink.
        """
        out = torch.empty_like(token_ids) if out is None else out
        work = device_work(self.store.kernels)
        work.translate(self.store.tables.device_page_of(index), token_ids, self._page_tokens, out)
        return out

    # Device tables

    @contextmanager
    def step(self) -> Iterator[None]:
        """Within it device tables wait: they are brought up to date once, at the end of the scheduler's step.

        A step within a step ends with the outer one.
        """
        self._steps_open += 1
        try:
            yield
        finally:
            self._steps_open -= 1
            if not self._steps_open:
                self.store.tables.flush()

    @property
    def in_step(self) -> bool:
        """Whether device tables wait for the end of a step."""
        return self._steps_open > 0

    def flush_tables(self) -> None:
        """Bring the device tables up to date now, also within a step: before a forward that was planned in it."""
        self.store.tables.flush()

    def _done(self) -> None:
        if self.store.tables.apart and not self._steps_open:
            self.store.tables.flush()
        if self._check is not None:
            self._check.check()


def _ids(ids: GivenIds) -> Ids:
    """As int32. Raises UnknownIdError for what no int32 can be: that must not become another id."""
    if isinstance(ids, np.ndarray) and ids.dtype == np.int32:
        return ids
    if not len(ids):
        return NO_IDS
    given = np.asarray(ids)
    if given.dtype.kind not in "iu" or given.min() < -(2**31) or given.max() >= 2**31:
        raise UnknownIdError("an id that is no 32-bit integer; expected those that a grant has")
    return given.astype(np.int32)
