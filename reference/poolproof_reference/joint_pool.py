"""The reference: one pool, one prefix cache, running requests; one method for each operation of a history."""

from collections.abc import Callable
from typing import Any, ClassVar

from msgspec.structs import replace

from poolproof_reference.errors import (
    EmptyKeyError,
    GroupError,
    NameInUseError,
    NoStatesError,
    SizeError,
    UnknownNameError,
)
from poolproof_reference.pool import Pool
from poolproof_reference.prefix_cache import PrefixCache
from poolproof_reference.reserve import victims
from poolproof_spec import operation as op
from poolproof_spec.demand import Demand, demand_of
from poolproof_spec.fits import fits, ids_suffice
from poolproof_spec.geometry import Geometry
from poolproof_spec.outcome import Answer, AnyOutcome, Done, Granted, Rejected, Step
from poolproof_spec.state import Hold, PoolState
from poolproof_spec.steps import after_step, freed_by, tree_of
from poolproof_spec.units import LARGEST_QUANTITY, VirtualId
from poolproof_spec.verdict import honest_reason, unfired_events


class JointPool:
    """Small and plain: every decision is a function of `observe()`, the state that a checker sees too.

    A method for each decision, so that a pool that is wrong on purpose differs from this one in one method.
    """

    pool_class: ClassVar[type[Pool]] = Pool
    cache_class: ClassVar[type[PrefixCache]] = PrefixCache

    def __init__(self, geometry: Geometry) -> None:
        self.pool = self.pool_class(geometry)
        self.cache = self.cache_class(geometry)
        self.holds: dict[str, Hold] = {}
        self.group_open = False
        self.queued = Hold(name="")

    def apply(self, operation: op.AnyOperation) -> AnyOutcome:
        """Carry one operation out. Raises a RefusedError where the call is bad; then nothing was changed."""
        check_sizes(operation)
        if isinstance(operation, op.DemandOperation):
            return self.reserve(operation)
        method: Callable[[Any], AnyOutcome] = getattr(self, op.operation_name(operation))
        return method(operation)

    def observe(self, with_payloads: bool = False) -> PoolState:
        """The whole state; reading the arena is optional, no decision needs it."""
        members = self.pool.geometry.members
        payloads = (
            (member.name, identifier, self.pool.read(index, identifier))
            for index, member in enumerate(members)
            for identifier in self.pool.page_of[index]
        )
        return replace(
            self.pool.observe(),
            entries=tuple(self.cache.entries()),
            holds=tuple(self.holds[name] for name in sorted(self.holds)),
            locks=tuple(self.cache.locks[name] for name in sorted(self.cache.locks)),
            group_open=self.group_open,
            queued=self.queued,
            payloads=tuple(sorted(payloads)) if with_payloads else (),
        )

    # Demands

    def reserve(self, operation: op.DemandOperation) -> AnyOutcome:
        """Meet the demand with the fewest of the least recently used entries, or change nothing and say why."""
        if isinstance(operation, op.Recover):
            self.hold_named(operation.name)
        self.settle()
        state = self.observe()
        demand = self.demand(state, operation)
        steps = self.choose(state, demand, operation)
        if steps is None:
            return self.reject(state, demand)
        self.evict(steps)
        return self.grant(operation, demand, steps)

    def settle(self) -> None:
        """[P8] The phase boundary before the first eviction: grouped frees count."""
        self.flush_group()

    def demand(self, state: PoolState, operation: op.DemandOperation) -> Demand:
        """What the operation asks for."""
        demand = demand_of(state, operation)  # type: ignore[arg-type]
        assert demand is not None, "every demand operation has a demand"
        return demand

    def choose(self, state: PoolState, demand: Demand, operation: op.DemandOperation) -> list[Step] | None:
        """V, or None where the demand is to be rejected."""
        return victims(state, demand)

    def reject(self, state: PoolState, demand: Demand) -> Rejected:
        """The answer where no legal steps suffice."""
        return Rejected(reason=honest_reason(state, demand), compactions=(), walks=1)

    def evict(self, steps: list[Step]) -> None:
        """Take the steps, in order."""
        tree = tree_of(self.observe())
        for step in steps:
            self.release(freed_by(tree, step))
            self.cache.evict(step)
            tree = after_step(tree, step)

    def release(self, freed: Hold) -> None:
        """Free what one step gives up."""
        self.pool.free(freed)

    def grant(self, operation: op.DemandOperation, demand: Demand, steps: list[Step]) -> AnyOutcome:
        """Take the pages for the request that asked."""
        pages, waited, compactions = self.take(demand, recovered=self.holds.get(operation.name, Hold(name="")))
        self.holds[operation.name] = self.with_pages(operation.name, pages)
        return Granted(
            steps=tuple(steps), pages=self.named(pages), waited=waited, compactions=compactions, walks=1 if steps else 0
        )

    def take(
        self, demand: Demand, recovered: Hold
    ) -> tuple[list[tuple[int, VirtualId]], tuple[str, ...], tuple[tuple[str, int], ...]]:
        """Make room for a demand that fits, and take its pages: (pages, events waited for, batches a member)."""
        placed = self.pool.place(demand)
        assert placed is not None, "the demand was found to fit"
        windows, batches, waits = placed
        waited = tuple(sorted(unfired_events(self.pool.observe()))) if waits else ()
        for event in waited:
            self.pool.fire(event)
        for batch in batches:
            self.pool.move(batch)
        pages = self.pool.take(demand, windows)
        if demand.swa_pages > demand.full_pages:
            bare = [identifier for identifier in recovered.ids if identifier not in recovered.swa_ids]
            for index in self.pool.geometry.with_role("swa"):
                pages += self.pool.bind(index, bare, windows[index])
        return pages, waited, tuple((self.pool.geometry.members[batch.member_index].name, 1) for batch in batches)

    def with_pages(self, name: str, pages: list[tuple[int, VirtualId]]) -> Hold:
        """The running request with new pages added."""
        hold = self.holds.get(name, Hold(name=name))
        ids: dict[str, dict[VirtualId, None]] = {"full": {}, "swa": {}, "state": {}}
        for index, identifier in pages:
            ids[self.pool.geometry.members[index].role][identifier] = None
        return Hold(
            name=name,
            ids=(*hold.ids, *ids["full"]),
            swa_ids=(*hold.swa_ids, *ids["swa"]),
            state_ids=(*hold.state_ids, *ids["state"]),
        )

    def named(self, pages: list[tuple[int, VirtualId]]) -> tuple[tuple[str, VirtualId], ...]:
        """Pages with their member's name instead of its index."""
        return tuple((self.pool.geometry.members[index].name, identifier) for index, identifier in pages)

    # The cache

    def insert(self, operation: op.Insert) -> AnyOutcome:
        """Cache a prefix without evicting anything, or change nothing."""
        require_key(operation.key)
        if operation.state and not self.cache.caches_states:
            raise NoStatesError("this geometry caches no states; insert with state=false")
        full_pages, swa_pages, with_state = self.cache.missing(operation.key, operation.state)
        demand = Demand(full_pages=full_pages, swa_pages=swa_pages, state_pages=int(with_state), may_wait=False)
        state = self.observe()
        if not fits(state, demand):
            return Rejected(reason=honest_reason(state, demand))
        path = [self.cache.nodes[key] for key in self.cache.path(operation.key)]
        bare = tuple(i for node in path if self.cache.caches_swa and not node.has_swa for i in node.ids)
        pages, _, _ = self.take(demand, recovered=Hold(name="", ids=bare))
        new = self.with_pages("", pages)
        self.cache.insert(operation.key, list(new.ids), new.state_ids[0] if new.state_ids else None)
        return Done(pages=self.named(pages))

    def match(self, operation: op.Match) -> AnyOutcome:
        """Look a prefix up."""
        require_key(operation.key)
        return Done(matched_pages=len(self.cache.match(operation.key)))

    def lock(self, operation: op.LockPrefix) -> AnyOutcome:
        """Match and lock."""
        require_key(operation.key)
        return Done(matched_pages=len(self.cache.lock(operation.name, operation.key)))

    def unlock(self, operation: op.Unlock) -> AnyOutcome:
        """Give a lock back."""
        self.cache.unlock(operation.name)
        return Done()

    def unlock_window(self, operation: op.UnlockWindow) -> AnyOutcome:
        """Give the SWA and state part of a lock back."""
        self.cache.unlock(operation.name, window_only=True)
        return Done()

    # Frees

    def hold_named(self, name: str) -> Hold:
        """The running request of that name. Raises UnknownNameError."""
        if name not in self.holds:
            raise UnknownNameError(f"no running request named {name!r}; there are {sorted(self.holds)}")
        return self.holds[name]

    def free(self, operation: op.Free) -> AnyOutcome:
        """End a request; what it held waits in the group while one is open."""
        hold = self.hold_named(operation.name)
        if self.group_open:
            queued = self.queued
            self.queued = Hold(
                name="",
                ids=(*queued.ids, *hold.ids),
                swa_ids=(*queued.swa_ids, *hold.swa_ids),
                state_ids=(*queued.state_ids, *hold.state_ids),
            )
        else:
            self.pool.free(hold)
        del self.holds[operation.name]
        return Done()

    def free_window(self, operation: op.FreeWindow) -> AnyOutcome:
        """Free the SWA pages of a request at once."""
        hold = self.hold_named(operation.name)
        self.pool.free(Hold(name="", swa_ids=hold.swa_ids))
        self.holds[operation.name] = replace(hold, swa_ids=())
        return Done()

    def group_begin(self, operation: op.GroupBegin) -> AnyOutcome:
        """Collect frees from now on."""
        if self.group_open:
            raise GroupError("a group is open; end it first")
        self.group_open = True
        return Done()

    def group_end(self, operation: op.GroupEnd) -> AnyOutcome:
        """Carry the collected frees out."""
        if not self.group_open:
            raise GroupError("no group is open; begin one first")
        self.flush_group()
        self.group_open = False
        return Done()

    def flush_group(self) -> None:
        """[P8] A phase boundary: what was collected is free, the group stays open."""
        self.pool.free(self.queued)
        self.queued = Hold(name="")

    # Gates, events, housekeeping, questions

    def gate(self, operation: op.Gate) -> AnyOutcome:
        """Open or close every move gate."""
        self.pool.gate_open = operation.open
        return Done()

    def launch(self, operation: op.Launch) -> AnyOutcome:
        """A forward goes in flight."""
        if operation.event in self.pool.flights:
            raise NameInUseError(f"event {operation.event!r} is in flight; fire it, or use another name")
        holds = [self.hold_named(name) for name in operation.writes]
        ids = {
            "full": {i for hold in holds for i in hold.ids},
            "swa": {i for hold in holds for i in hold.swa_ids},
            "state": {i for hold in holds for i in hold.state_ids},
        }
        reads = {(index, identifier) for index, pages in enumerate(self.pool.page_of) for identifier in pages}
        members = self.pool.geometry.members
        writes = {(index, identifier) for index, identifier in reads if identifier in ids[members[index].role]}
        self.pool.flights[operation.event] = (reads, writes)
        return Done()

    def fire(self, operation: op.Fire) -> AnyOutcome:
        """A forward ended."""
        if operation.event not in self.pool.flights and operation.event not in unfired_events(self.pool.observe()):
            raise UnknownNameError(f"no event {operation.event!r}; in flight are {sorted(self.pool.flights)}")
        self.pool.fire(operation.event)
        return Done()

    def compact(self, operation: op.Compact) -> AnyOutcome:
        """Close holes without waiting."""
        self.pool.compact()
        return Done()

    def query(self, operation: op.Query) -> AnyOutcome:
        """How many token pages could be had now: no eviction, no waiting."""
        return Answer(token_pages=self.available_pages())

    def capacity(self, operation: op.Capacity) -> AnyOutcome:
        """Take that many for real and give them back; then try one more."""
        available = self.available_pages()
        return Answer(
            token_pages=available,
            exact_granted=self.try_pages(available),
            one_more_granted=self.try_pages(available + 1),
        )

    def available_pages(self) -> int:
        """The largest number of token pages that fits without evicting or waiting, in pages."""
        state, pages = self.observe(), 0
        while fits(state, self.token_demand(pages + 1)):
            pages += 1
        return pages

    def token_demand(self, pages: int) -> Demand:
        """The demand of token pages, without waiting."""
        return Demand(full_pages=pages, swa_pages=pages * self.cache.caches_swa, may_wait=False)

    def try_pages(self, pages: int) -> bool:
        """Take pages and give them back; False, and nothing changed, where they cannot be had."""
        demand = self.token_demand(pages)
        if not ids_suffice(self.observe(), demand) or self.pool.place(demand) is None:
            return False
        self.pool.free(self.with_pages("", self.take(demand, recovered=Hold(name=""))[0]))
        return True


def require_key(key: tuple[int, ...]) -> None:
    """Raises EmptyKeyError for a prefix of no pages."""
    if not key:
        raise EmptyKeyError("a prefix needs at least one page key")


def check_sizes(operation: op.AnyOperation) -> None:
    """Raises SizeError for a negative or absurd size, lengths that do not pair up, or a request that shrinks."""
    sizes: list[int] = []
    match operation:
        case op.Alloc(tokens=tokens):
            sizes = [tokens]
        case op.AllocStates(count=count):
            sizes = [count]
        case op.Extend(prefix_lens=prefix_lens, seq_lens=seq_lens):
            sizes = [*prefix_lens, *seq_lens]
            if len(prefix_lens) != len(seq_lens):
                raise SizeError(
                    f"{len(prefix_lens)} prefix lengths, {len(seq_lens)} sequence lengths: must be equally many"
                )
            if any(prefix > seq for prefix, seq in zip(prefix_lens, seq_lens, strict=True)):
                raise SizeError("a sequence is shorter than its prefix: extend only grows")
        case op.Decode(seq_lens=seq_lens):
            sizes = [*(length - 1 for length in seq_lens)]
        case op.ExtendTail(prefix_len=prefix, seq_len=seq, tail=tail):
            sizes = [prefix, seq, tail]
            if prefix > seq:
                raise SizeError("a sequence is shorter than its prefix: extend only grows")
    if bad := [size for size in sizes if not 0 <= size <= LARGEST_QUANTITY]:
        raise SizeError(f"size {bad[0]}: must be between 0 and {LARGEST_QUANTITY}")
