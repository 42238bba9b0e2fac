"""Released SGLang under the conformance runner: one pool of it with its prefix cache, on the CPU.

Every operation goes through the engine's own entry points: demands as in demands.py; `insert`, `match_prefix`, `lock`,
`unlock`, `release_swa` of its unified radix cache; `free_segment`, `free_full_segment`, `free_swa_segment`,
`free_group_begin`/`end`, `set_disagg_move_gate`, `set_latest_forward_done_event`, `set_inflight_forward` and
`flush_opportunistic` of its allocator. What its callers do beyond that is not reached: ServerArgs, Req and the scheduler
(admission, retraction, chunked prefill), sessions, host tiers and PD transfers, int8 state checkpoints, Triton kernels.

Three of the engine's own limits show as Unsupported: in eager mode there are no move gates (it asserts lazy compaction)
and no record of a forward in flight (its frees wait for the forward); only one forward is in flight at a time; a tree
with states takes no prefix without one, and with pages of several tokens (no extra buffer) it has no states at all. Its
frees of states are never deferred. It cannot promise not to wait for an event.
"""

import traceback
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from poolproof_conformance.adapter import Description, Inability
from poolproof_conformance.sglang import factory
from poolproof_conformance.sglang.cpu_device import Event
from poolproof_conformance.sglang.demands import Demands, OutOfMemory, UnsupportedDemandError, tensor
from poolproof_conformance.sglang.engine import Engine
from poolproof_conformance.sglang.observe import live_pages, observe
from poolproof_conformance.sglang.payload import Arena
from poolproof_conformance.sglang.prefixes import Prefixes, UnsupportedPrefixError
from poolproof_conformance.sglang.recorder import Recorder
from poolproof_conformance.sglang.running import InFlight, Pages, Request
from poolproof_conformance.sglang.rust_tree import RustTree
from poolproof_conformance.sglang.tree import Node, PythonTree, Tree
from poolproof_spec.geometry import Geometry
from poolproof_spec.operation import (
    AnyDemand,
    AnyOperation,
    Capacity,
    Compact,
    DemandOperation,
    Fire,
    Free,
    FreeWindow,
    Gate,
    GroupBegin,
    GroupEnd,
    Insert,
    Launch,
    LockPrefix,
    Match,
    Query,
    Unlock,
    UnlockWindow,
    operation_name,
)
from poolproof_spec.outcome import (
    Answer,
    AnyOutcome,
    Crashed,
    Done,
    Granted,
    Refused,
    Rejected,
    Unsupported,
)
from poolproof_spec.state import PoolState
from poolproof_spec.units import VirtualId

Mode = Literal["eager", "lazy"]


class UnknownNameError(KeyError):
    """An operation names a request, lock or event that does not exist."""


class SglangAdapter:
    """One release of SGLang, one tree core, one compaction mode."""

    def __init__(self, engine: Engine, mode: Mode) -> None:
        self.engine = engine
        self.mode: Mode = mode
        self.lazy = mode == "lazy"
        self._handlers: dict[str, Callable[[Any], AnyOutcome]] = {
            "insert": self._insert,
            "match": self._match,
            "lock": self._lock,
            "unlock": self._unlock,
            "unlock_window": self._unlock_window,
            "free": self._free,
            "free_window": self._free_window,
            "group_begin": self._group_begin,
            "group_end": self._group_end,
            "gate": self._gate,
            "launch": self._launch,
            "fire": self._fire,
            "compact": self._compact,
            "query": self._query,
            "capacity": self._capacity,
        }

    def describe(self) -> Description:
        """Release, tree core that really runs, mode, and what it cannot do."""
        cannot: list[Inability] = ["reasons", "no_wait"]
        if not self.lazy:
            cannot += ["in_flight", "gates"]
        return Description(
            target=f"sglang=={self.engine.version}",
            details={"tree_core": self.engine.core_class(), "mode": self.mode},
            anchored=("SWA", "STATE", "FULL"),
            cannot=tuple(cannot),
        )

    def build(self, geometry: Geometry) -> None:
        """An empty pool of this geometry, and an empty cache over it."""
        built = factory.build(self.engine, geometry, lazy=self.lazy)
        tree_class: type[Tree] = PythonTree if self.engine.core == "python" else RustTree
        self.geometry = geometry
        self.built = built
        self.arena = Arena(built.arena)
        self.tree = tree_class(self.engine, built, geometry.page_tokens, geometry.window_tokens)
        self.demands = Demands(self.engine, built, geometry.page_tokens)
        self.prefixes = Prefixes(self.engine, built, self.tree, self.demands)
        self.recorder = Recorder(built, self.tree, [m.name for m in geometry.members])
        self.requests: dict[str, Request] = {}
        self.flight: InFlight | None = None
        self.gate_is_open = True
        if self.lazy:
            built.allocator.set_disagg_move_gate(lambda: self.gate_is_open)
        self.name_of = {m.role: m.name for m in geometry.members}
        self._nodes: list[Node] | None = []

    def nodes(self) -> list[Node]:
        """The tree as it is; read once between two operations."""
        if self._nodes is None:
            self._nodes = self.tree.nodes()
        return self._nodes

    def observe(self) -> PoolState:
        """The whole state."""
        return observe(
            self.geometry,
            self.built,
            self.arena,
            self.nodes(),
            self.requests,
            self.prefixes.handles,
            self.flight,
            self.gate_is_open,
        )

    def write(self, member: str, identifier: VirtualId, stamp: int) -> None:
        """Fill the id's page, found through the engine's table."""
        index = self.geometry.index_of(member)
        page = int(self.built.members[index].virtual_to_physical[identifier])
        if page < 0:
            raise UnknownNameError(f"{member} id {identifier} is bound to no page")
        sizes = self.geometry.members[index]
        self.arena.fill(sizes.page_bytes, sizes.page_count, page, stamp)

    def apply(self, operation: AnyOperation) -> AnyOutcome:
        """Carry one operation out; whatever the engine raises is Crashed, with the place that raised it."""
        self.engine.stream.waited.clear()
        try:
            if isinstance(operation, DemandOperation):
                return self._demand(operation)
            return self._handlers[operation_name(operation)](operation)
        except UnknownNameError as error:
            return Refused(error=type(error).__name__, message=str(error.args[0]))
        except (UnsupportedDemandError, UnsupportedPrefixError) as error:
            return Unsupported(what=str(error))
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            return Crashed(reason=f"{type(error).__name__}: {error} ({frame.filename}:{frame.lineno})")
        finally:
            self._nodes = None

    def _demand(self, demand: AnyDemand) -> AnyOutcome:
        self.recorder.start(self.nodes())
        request = self.requests.get(demand.name, Request())
        try:
            got = self.demands.take(demand, request)
        except OutOfMemory:
            return Rejected(
                steps=tuple(self.recorder.steps),
                waited=self._waited(),
                compactions=self.recorder.compactions,
                walks=self.recorder.walks,
            )
        self.requests[demand.name] = Request(
            ids=request.ids + got.ids,
            swa_ids=request.swa_ids | got.swa_ids,
            state_ids=request.state_ids + got.state_ids,
        )
        return Granted(
            steps=tuple(self.recorder.steps),
            pages=self._given_out(got.ids, sorted(got.swa_ids), got.state_ids),
            waited=self._waited(),
            compactions=self.recorder.compactions,
            walks=self.recorder.walks,
        )

    def _waited(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(event.name for event in self.engine.stream.waited))

    def _given_out(self, ids: list[VirtualId], swa_ids: list[VirtualId], state_ids: list[VirtualId]) -> Pages:
        by_role = (("full", ids), ("swa", swa_ids), ("state", state_ids))
        pages = tuple((self.name_of[role], i) for role, of_role in by_role for i in of_role)
        if self.flight is not None:
            self.flight.forget(pages)
        return pages

    def _insert(self, operation: Insert) -> AnyOutcome:
        inserted = self.prefixes.insert(self.nodes(), operation.key, operation.state)
        if inserted is None:
            return Rejected()
        return Done(pages=self._given_out(inserted.ids, sorted(inserted.swa_ids), inserted.state_ids))

    def _match(self, operation: Match) -> AnyOutcome:
        return Done(matched_pages=self.prefixes.match(operation.key)[0])

    def _lock(self, operation: LockPrefix) -> AnyOutcome:
        if operation.name in self.prefixes.handles:
            raise UnknownNameError(f"lock {operation.name!r} is taken")
        return Done(matched_pages=self.prefixes.lock(operation.name, operation.key))

    def _unlock(self, operation: Unlock) -> AnyOutcome:
        _known(self.prefixes.handles, "lock", operation.name)
        self.prefixes.unlock(operation.name)
        return Done()

    def _unlock_window(self, operation: UnlockWindow) -> AnyOutcome:
        if "swa" not in self.name_of:
            return Unsupported(
                what="unlock_window: the layout has no SWA pages, the engine then releases nothing early"
            )
        _known(self.prefixes.handles, "lock", operation.name)
        self.prefixes.unlock_window(operation.name)
        return Done()

    def _free(self, operation: Free) -> AnyOutcome:
        request = _known(self.requests, "request", operation.name)
        allocator = self.built.allocator
        without = [i for i in request.ids if i not in request.swa_ids] if "swa" in self.name_of else []
        rest = [i for i in request.ids if i not in without]
        if without:
            allocator.free_full_segment(self.demands.tokens_of(without), start_pos=0)
        if rest:
            allocator.free_segment(self.demands.tokens_of(rest), start_pos=0)
        if request.state_ids:
            self.built.states.free(tensor(request.state_ids))
        del self.requests[operation.name]
        return Done()

    def _free_window(self, operation: FreeWindow) -> AnyOutcome:
        request = _known(self.requests, "request", operation.name)
        leaving = [i for i in request.ids if i in request.swa_ids]
        if leaving:
            self.built.allocator.free_swa_segment(self.demands.tokens_of(leaving), start_pos=0)
        request.swa_ids = set()
        return Done()

    def _group_begin(self, _: GroupBegin) -> AnyOutcome:
        self.built.allocator.free_group_begin()
        return Done()

    def _group_end(self, _: GroupEnd) -> AnyOutcome:
        self.built.allocator.free_group_end()
        return Done()

    def _gate(self, operation: Gate) -> AnyOutcome:
        if not self.lazy:
            return Unsupported(what="gate: the engine's move gates need lazy compaction")
        self.gate_is_open = operation.open
        return Done()

    def _launch(self, operation: Launch) -> AnyOutcome:
        if not self.lazy:
            return Unsupported(what="launch: with eager compaction the engine keeps no record of a forward in flight")
        if self.flight is not None and not self.flight.event.fired:
            return Unsupported(what="launch: the engine has one forward in flight at a time")
        written = [_known(self.requests, "request", name) for name in operation.writes]
        event = Event(operation.event)
        reads = live_pages(self.geometry, self.built)
        names = {(self.name_of["full"], i) for request in written for i in request.ids}
        if "swa" in self.name_of:
            names |= {(self.name_of["swa"], i) for request in written for i in request.swa_ids}
        self.flight = InFlight(event=event, reads=reads, writes=names)
        self.built.allocator.set_latest_forward_done_event(event)
        tokens = self.demands.tokens_of([i for request in written for i in request.ids])
        self.built.allocator.set_inflight_forward(event, tokens)
        return Done()

    def _fire(self, operation: Fire) -> AnyOutcome:
        if self.flight is None or self.flight.event.name != operation.event:
            raise UnknownNameError(f"no forward in flight ends with event {operation.event!r}")
        self.flight.event.fired = True
        return Done()

    def _compact(self, _: Compact) -> AnyOutcome:
        self.built.allocator.flush_opportunistic()
        return Done()

    def _available(self) -> int:
        return int(self.built.allocator.available_size()) // self.geometry.page_tokens

    def _query(self, _: Query) -> AnyOutcome:
        return Answer(token_pages=self._available())

    def _capacity(self, _: Capacity) -> AnyOutcome:
        pages = self._available()
        exact, one_more = (self._try(count) for count in (pages, pages + 1))
        return Answer(token_pages=pages, exact_granted=exact, one_more_granted=one_more)

    def _try(self, pages: int) -> bool:
        """Allocate without evicting and give back, member by member as an eviction does: an open group stays as it is."""
        ids = self.demands.alloc_without_evicting(pages)
        if ids:
            tokens = self.demands.tokens_of(ids)
            if "swa" in self.name_of:
                self.built.allocator.swa_attn_allocator.free(tokens)
            self.built.allocator.full_attn_allocator.free(tokens)
            self._given_out(ids, ids if "swa" in self.name_of else [], [])
        return ids is not None


def _known(table: dict[str, Any], what: str, name: str) -> Any:
    if name not in table:
        raise UnknownNameError(f"there is no {what} {name!r}")
    return table[name]
