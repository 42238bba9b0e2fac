"""The fast pool as a target: what its caller keeps (names of requests, locks and events) is kept here."""

from collections.abc import Callable
from typing import Any

from poolproof_conformance.adapter import Description
from poolproof_conformance.fast_variant import FastVariant
from poolproof_fast.abstraction import abstraction
from poolproof_fast.errors import RefusedError
from poolproof_fast.events import PlainEvent
from poolproof_fast.flights import Flight
from poolproof_fast.grants import Grant, Refusal
from poolproof_fast.pool import FastPool
from poolproof_fast.prefix_cache import Handle, Victims
from poolproof_spec import operation as op
from poolproof_spec.geometry import Geometry
from poolproof_spec.operation import AnyOperation
from poolproof_spec.outcome import Answer, AnyOutcome, Done, Granted, Refused, Rejected, Step, StepKind
from poolproof_spec.payload import stamped
from poolproof_spec.state import PoolState
from poolproof_spec.units import PageKey, VirtualId

STEP_KINDS: tuple[StepKind, ...] = ("leaf", "tombstone", "state")


class UnknownNameError(RefusedError):
    """No running request, lock or event of that name."""


class NameInUseError(RefusedError):
    """A lock or an event of that name exists already."""


def build_pool(geometry: Geometry, variant: FastVariant) -> FastPool:
    """A pool of that variant."""
    match variant:
        case "cpu":
            return FastPool(geometry)
        case "interpreter":
            return FastPool(geometry, kernels="triton", tables_apart=True)
        case "cuda":
            return FastPool(geometry, device="cuda")


class FastAdapter:
    """In-process; `make_pool` is replaced where a pool is to be wrong on purpose."""

    def __init__(
        self,
        variant: FastVariant = "cpu",
        make_pool: Callable[[Geometry], FastPool] | None = None,
        target: str | None = None,
    ) -> None:
        self.variant = variant
        self.make_pool = make_pool or (lambda geometry: build_pool(geometry, variant))
        self.target = target or ("fast" if variant == "cpu" else f"fast:{variant}")
        self.pool: FastPool | None = None

    def describe(self) -> Description:
        """See Adapter."""
        return Description(target=self.target)

    def build(self, geometry: Geometry) -> None:
        """See Adapter."""
        self.pool = self.make_pool(geometry)
        self.pool.reclaim.on_evict = self._note_steps
        self.requests: dict[str, tuple[list[int], list[int]]] = {}
        self.locks: dict[str, Handle] = {}
        self.flights: dict[str, Flight] = {}
        self.steps: tuple[Step, ...] = ()

    def apply(self, operation: AnyOperation) -> AnyOutcome:
        """See Adapter; a RefusedError becomes Refused."""
        try:
            if isinstance(operation, op.DemandOperation):
                return self._demand(operation)
            method: Callable[[Any], AnyOutcome] = getattr(self, f"_{op.operation_name(operation)}")
            return method(operation)
        except RefusedError as error:
            return Refused(error=type(error).__name__, message=str(error))

    def write(self, member: str, identifier: VirtualId, stamp: int) -> None:
        """See Adapter."""
        store = self._built().store
        index = store.geometry.index_of(member)
        size = store.geometry.members[index].page_bytes
        store.arena.write_page(index, store.members[index].page_of[identifier], stamped(stamp, size))

    def observe(self) -> PoolState:
        """See Adapter."""
        names = {flight.number: name for name, flight in self.flights.items()}
        return abstraction(self._built(), self.requests, self.locks, names, with_payloads=True)

    def _built(self) -> FastPool:
        assert self.pool is not None, "build comes first"
        return self.pool

    def _note_steps(self, victims: Victims) -> None:
        key_of = self._built().cache.key_of
        self.steps = tuple(
            Step(kind=STEP_KINDS[kind], key=tuple(PageKey(key) for key in key_of(node)))
            for kind, node in zip(victims.kind.tolist(), victims.node.tolist(), strict=True)
        )

    def _new_pages(self, grant: Grant) -> tuple[tuple[str, VirtualId], ...]:
        ids = {"full": grant.ids, "swa": grant.swa_ids, "state": grant.state_ids}
        return tuple(
            (member.name, VirtualId(identifier))
            for member in self._built().geometry.members
            for identifier in ids[member.role].tolist()
        )

    def _demand(self, operation: op.DemandOperation) -> AnyOutcome:
        pool, may_wait = self._built(), operation.may_wait
        answer: Grant | Refusal
        self.steps = ()
        in_flight = tuple(self.flights)
        match operation:
            case op.Alloc(tokens=tokens):
                answer = pool.alloc(tokens, may_wait=may_wait)
            case op.Extend(prefix_lens=prefix_lens, seq_lens=seq_lens):
                answer = pool.extend(prefix_lens, seq_lens, may_wait=may_wait)
            case op.Decode(seq_lens=seq_lens):
                answer = pool.decode(seq_lens, may_wait=may_wait)
            case op.ExtendTail(prefix_len=prefix_len, seq_len=seq_len, tail=tail):
                answer = pool.extend_tail(prefix_len, seq_len, tail, may_wait=may_wait)
            case op.AllocStates(count=count):
                answer = pool.alloc_states(count, may_wait=may_wait)
            case op.Recover(name=name):
                answer = pool.recover(self._request(name)[0], may_wait=may_wait)
            case _:
                raise AssertionError(f"a demand of an unknown kind: {operation}")
        if not answer:
            return Rejected(reason=answer.reason, steps=self.steps, compactions=(), walks=1)
        return self._granted(operation.name, answer, in_flight)

    def _granted(self, name: str, grant: Grant, in_flight: tuple[str, ...]) -> Granted:
        waited = tuple(sorted(in_flight)) if grant.waited else ()
        for event in waited:
            del self.flights[event]
        tokens, states = self.requests.setdefault(name, ([], []))
        tokens += grant.ids.tolist()
        states += grant.state_ids.tolist()
        members = self._built().geometry.members
        return Granted(
            steps=self.steps,
            pages=self._new_pages(grant),
            waited=waited,
            compactions=tuple((members[index].name, 1) for index in grant.batches),
            walks=1 if grant.evicted else 0,
        )

    def _request(self, name: str) -> tuple[list[int], list[int]]:
        if name not in self.requests:
            raise UnknownNameError(f"no running request named {name!r}; there are {sorted(self.requests)}")
        return self.requests[name]

    def _lock_named(self, name: str) -> Handle:
        if name not in self.locks:
            raise UnknownNameError(f"no lock named {name!r}; held are {sorted(self.locks)}")
        return self.locks[name]

    def _insert(self, operation: op.Insert) -> AnyOutcome:
        answer = self._built().insert(operation.key, with_state=operation.state)
        return Done(pages=self._new_pages(answer)) if answer else Rejected(reason=answer.reason)

    def _match(self, operation: op.Match) -> AnyOutcome:
        return Done(matched_pages=self._built().match(operation.key))

    def _lock(self, operation: op.LockPrefix) -> AnyOutcome:
        if operation.name in self.locks:
            raise NameInUseError(f"a lock named {operation.name!r} exists; unlock it, or use another name")
        handle = self._built().lock(operation.key)
        if handle is None:
            return Done(matched_pages=0)
        self.locks[operation.name] = handle
        return Done(matched_pages=self._built().cache.depth_of(handle.node))

    def _unlock(self, operation: op.Unlock) -> AnyOutcome:
        self._built().unlock(self._lock_named(operation.name))
        del self.locks[operation.name]
        return Done()

    def _unlock_window(self, operation: op.UnlockWindow) -> AnyOutcome:
        self._built().unlock_window(self._lock_named(operation.name))
        return Done()

    def _free(self, operation: op.Free) -> AnyOutcome:
        tokens, states = self._request(operation.name)
        self._built().free(tokens, states)
        del self.requests[operation.name]
        return Done()

    def _free_window(self, operation: op.FreeWindow) -> AnyOutcome:
        pool, (tokens, _) = self._built(), self._request(operation.name)
        swa = next((member for member in pool.store.members if member.role == "swa"), None)
        pool.free_window([i for i in tokens if swa is not None and swa.page_of[i]])
        return Done()

    def _group_begin(self, operation: op.GroupBegin) -> AnyOutcome:
        self._built().group_begin()
        return Done()

    def _group_end(self, operation: op.GroupEnd) -> AnyOutcome:
        self._built().group_end()
        return Done()

    def _gate(self, operation: op.Gate) -> AnyOutcome:
        self._built().gate(open=operation.open)
        return Done()

    def _launch(self, operation: op.Launch) -> AnyOutcome:
        if operation.event in self.flights:
            raise NameInUseError(f"event {operation.event!r} is in flight; fire it, or use another name")
        written = [self._request(name) for name in operation.writes]
        tokens = [i for ids, _ in written for i in ids]
        states = [i for _, ids in written for i in ids]
        event = PlainEvent(on_wait=lambda: None)
        self.flights[operation.event] = self._built().launch(event, tokens, states)
        return Done()

    def _fire(self, operation: op.Fire) -> AnyOutcome:
        if operation.event not in self.flights:
            raise UnknownNameError(f"no event {operation.event!r}; in flight are {sorted(self.flights)}")
        self._built().fire(self.flights.pop(operation.event))
        return Done()

    def _compact(self, operation: op.Compact) -> AnyOutcome:
        self._built().compact()
        return Done()

    def _query(self, operation: op.Query) -> AnyOutcome:
        return Answer(token_pages=self._built().available_pages())

    def _capacity(self, operation: op.Capacity) -> AnyOutcome:
        available = self._built().available_pages()
        return Answer(
            token_pages=available,
            exact_granted=self._try(available),
            one_more_granted=self._try(available + 1),
        )

    def _try(self, pages: int) -> bool:
        """Take pages as an insert would, evicting nothing, and give them back."""
        pool = self._built()
        if not pool.fits(pages, pages):
            return False
        grant = pool.reserve(pages, pages, may_wait=False)
        assert grant and not grant.evicted, "what fits is granted without evicting"
        pool.free(grant.ids)
        return True
