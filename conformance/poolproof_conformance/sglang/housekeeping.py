"""What the engine's caller does besides allocating and caching: frees, gates, forwards, compaction, capacity."""

from typing import Any

from poolproof_conformance.sglang.cpu_device import Event
from poolproof_conformance.sglang.demands import Demands, tensor
from poolproof_conformance.sglang.factory import Built
from poolproof_conformance.sglang.observe import live_pages
from poolproof_conformance.sglang.running import InFlight, Pages, Request, UnknownNameError, known
from poolproof_spec.geometry import Geometry
from poolproof_spec.operation import (
    Capacity,
    Compact,
    Fire,
    Free,
    FreeWindow,
    Gate,
    GroupBegin,
    GroupEnd,
    Launch,
    Query,
)
from poolproof_spec.outcome import Answer, AnyOutcome, Done, Unsupported
from poolproof_spec.units import VirtualId

AnyHousekeeping = Free | FreeWindow | GroupBegin | GroupEnd | Gate | Launch | Fire | Compact | Query | Capacity


class Housekeeping:
    """The allocator of one pool, and the running requests and the forward that its caller keeps."""

    def __init__(self, geometry: Geometry, built: Built, demands: Demands, *, lazy: bool) -> None:
        self.geometry = geometry
        self.built = built
        self.allocator: Any = built.allocator
        self.demands = demands
        self.lazy = lazy
        self.requests: dict[str, Request] = {}
        self.flight: InFlight | None = None
        self.gate_is_open = True
        self.full_name, self.swa_name, self.state_name = (
            next((m.name for m in geometry.members if m.role == role), "") for role in ("full", "swa", "state")
        )
        if lazy:
            built.allocator.set_disagg_move_gate(lambda: self.gate_is_open)

    def apply(self, operation: AnyHousekeeping) -> AnyOutcome:
        """Carry one of them out."""
        match operation:
            case Free():
                return self._free(operation.name)
            case FreeWindow():
                return self._free_window(operation.name)
            case GroupBegin():
                self.allocator.free_group_begin()
            case GroupEnd():
                self.allocator.free_group_end()
            case Gate():
                if not self.lazy:
                    return Unsupported(what="gate: the engine's move gates need lazy compaction")
                self.gate_is_open = operation.open
            case Launch():
                return self._launch(operation)
            case Fire():
                return self._fire(operation.event)
            case Compact():
                self.allocator.flush_opportunistic()
            case Query():
                return Answer(token_pages=self._available())
            case Capacity():
                pages = self._available()
                exact, one_more = (self._try(count) for count in (pages, pages + 1))
                return Answer(token_pages=pages, exact_granted=exact, one_more_granted=one_more)
        return Done()

    def given_out(self, got: Request) -> Pages:
        """(member, id) of new pages; the forward in flight has nothing to do with them."""
        pages = [(self.full_name, i) for i in got.ids]
        pages += [(self.swa_name, i) for i in sorted(got.swa_ids)]
        pages += [(self.state_name, i) for i in got.state_ids]
        if self.flight is not None:
            self.flight.forget(pages)
        return tuple(pages)

    def _free(self, name: str) -> AnyOutcome:
        """FULL pages without SWA ones first, as the engine frees a request's row (mem_cache/common.py 175)."""
        request: Request = known(self.requests, "request", name)
        without = [i for i in request.ids if self.swa_name and i not in request.swa_ids]
        rest = [i for i in request.ids if i not in without]
        if without:
            self.allocator.free_full_segment(self.demands.tokens_of(without), start_pos=0)
        if rest:
            self.allocator.free_segment(self.demands.tokens_of(rest), start_pos=0)
        if request.state_ids:
            self.built.states.free(tensor(request.state_ids))
        del self.requests[name]
        return Done()

    def _free_window(self, name: str) -> AnyOutcome:
        request: Request = known(self.requests, "request", name)
        leaving = [i for i in request.ids if i in request.swa_ids]
        if leaving:
            self.allocator.free_swa_segment(self.demands.tokens_of(leaving), start_pos=0)
        request.swa_ids = set()
        return Done()

    def _launch(self, operation: Launch) -> AnyOutcome:
        if not self.lazy:
            return Unsupported(what="launch: with eager compaction the engine keeps no record of a forward in flight")
        if self.flight is not None and not self.flight.event.fired:
            return Unsupported(what="launch: the engine has one forward in flight at a time")
        writing: list[Request] = [known(self.requests, "request", name) for name in operation.writes]
        writes = {(self.full_name, i) for request in writing for i in request.ids}
        writes |= {(self.swa_name, i) for request in writing for i in request.swa_ids}
        event = Event(operation.event)
        self.flight = InFlight(event=event, reads=live_pages(self.geometry, self.built), writes=writes)
        tokens: list[VirtualId] = [i for request in writing for i in request.ids]
        self.allocator.set_latest_forward_done_event(event)
        self.allocator.set_inflight_forward(event, self.demands.tokens_of(tokens))
        return Done()

    def _fire(self, name: str) -> AnyOutcome:
        if self.flight is None or self.flight.event.name != name:
            raise UnknownNameError(f"no forward in flight ends with event {name!r}")
        self.flight.event.fired = True
        return Done()

    def _available(self) -> int:
        return int(self.allocator.available_size()) // self.geometry.page_tokens

    def _try(self, pages: int) -> bool:
        """Allocate for real, without evicting, and give back."""
        ids = self.demands.alloc_without_evicting(pages)
        if ids is None:
            return False
        self.demands.give_back(ids)
        self.given_out(Request(ids=ids, swa_ids=set(ids) if self.swa_name else set()))
        return True
