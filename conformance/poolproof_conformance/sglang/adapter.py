"""Released SGLang under the conformance runner: one pool of it with its prefix cache, on the CPU.

Every operation goes through the engine's own entry points: demands as told in demands.py; `insert`, `match_prefix`,
`lock`, `unlock`, `release_swa` of its unified radix cache; `free_segment`, `free_full_segment`, `free_swa_segment`,
`free_group_begin`/`end`, `set_disagg_move_gate`, `set_latest_forward_done_event`, `set_inflight_forward` and
`flush_opportunistic` of its allocator. Not reached: ServerArgs, Req and the scheduler (admission, retraction, chunked
prefill), sessions, host tiers and transfers, int8 state checkpoints, Triton kernels.

Where the engine has no such thing the outcome is Unsupported: move gates and a record of the forward in flight with
eager compaction (it asserts lazy; its frees wait for the forward), a second forward in flight, a prefix without a state
in a tree with states, states in a tree whose pages hold several tokens (that takes its extra buffer), an early release
without SWA pages. Its frees of states are never deferred, and it cannot promise not to wait for an event.
"""

import traceback
from typing import Literal

from msgspec.structs import replace

from poolproof_conformance.adapter import Description, Inability
from poolproof_conformance.sglang import factory
from poolproof_conformance.sglang.demands import Demands, OutOfMemory, UnsupportedDemandError
from poolproof_conformance.sglang.engine import Engine
from poolproof_conformance.sglang.housekeeping import Housekeeping
from poolproof_conformance.sglang.observe import observe
from poolproof_conformance.sglang.payload import Arena
from poolproof_conformance.sglang.prefixes import Prefixes, UnsupportedPrefixError
from poolproof_conformance.sglang.recorder import Recorder
from poolproof_conformance.sglang.running import Request, UnknownNameError
from poolproof_conformance.sglang.rust_tree import RustTree
from poolproof_conformance.sglang.tree import Node, PythonTree, Tree
from poolproof_spec.geometry import Geometry
from poolproof_spec.operation import (
    Alloc,
    AllocStates,
    AnyDemand,
    AnyOperation,
    Decode,
    Extend,
    ExtendTail,
    Insert,
    LockPrefix,
    Match,
    Recover,
    Unlock,
    UnlockWindow,
)
from poolproof_spec.outcome import AnyOutcome, Crashed, Done, Granted, Refused, Rejected, Unsupported
from poolproof_spec.state import PoolState
from poolproof_spec.units import VirtualId

Mode = Literal["eager", "lazy"]


class SglangAdapter:
    """One release of SGLang, one tree core, one compaction mode."""

    def __init__(self, engine: Engine, mode: Mode) -> None:
        self.engine = engine
        self.mode: Mode = mode
        self.lazy = mode == "lazy"

    def describe(self) -> Description:
        """Release, tree core that really runs (every build checks it), mode, and what it cannot do.

        Other by design are its order of victims, a walk for each component that falls short, so that a tombstone may
        come before a leaf (unified_radix_cache.py 1000), and its recency: the half of a split node that a match or an
        insert does not need is stamped too (unified_tree_core.py 1524). It is not told which states a forward writes
        (unified_mamba.py 436), and its scheduler compacts only while no forward is in flight (scheduler.py 2103, 5277).
        """
        cannot: list[Inability] = ["reasons", "no_wait", "refusals", "policy_order", "recency", "state_writes"]
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
        self.house = Housekeeping(geometry, built, self.demands, lazy=self.lazy)
        self.recorder = Recorder(built, self.tree, [m.name for m in geometry.members])
        self._nodes: list[Node] | None = []

    def nodes(self) -> list[Node]:
        """The tree as it is; read once between two operations."""
        if self._nodes is None:
            self._nodes = self.tree.nodes()
        return self._nodes

    def observe(self) -> PoolState:
        """The whole state."""
        house = self.house
        return observe(
            self.geometry,
            self.built,
            self.arena,
            self.nodes(),
            house.requests,
            self.prefixes.handles,
            house.flight,
            house.gate_is_open,
        )

    def write(self, member: str, identifier: VirtualId, stamp: int) -> None:
        """Fill the id's page, found through the engine's table."""
        index = self.geometry.index_of(member)
        page = int(self.built.members[index].virtual_to_physical[identifier])
        if page <= 0:
            raise UnknownNameError(f"{member} id {identifier} is bound to no page")
        sizes = self.geometry.members[index]
        self.arena.fill(sizes.page_bytes, sizes.page_count, page, stamp)

    def apply(self, operation: AnyOperation) -> AnyOutcome:
        """Carry one operation out; whatever the engine raises is Crashed, with the place that raised it."""
        self.engine.stream.waited.clear()
        try:
            return self._with_waits(self._apply(operation))
        except UnknownNameError as error:
            return Refused(error=type(error).__name__, message=str(error))
        except (UnsupportedDemandError, UnsupportedPrefixError) as error:
            return Unsupported(what=str(error))
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            return Crashed(reason=f"{type(error).__name__}: {error} ({frame.name}, line {frame.lineno})")
        finally:
            self._nodes = None

    def _with_waits(self, outcome: AnyOutcome) -> AnyOutcome:
        """The outcome with the events that the engine waited for, where that kind of outcome can tell."""
        waited = tuple(event.name for event in self.engine.stream.waited)
        return replace(outcome, waited=waited) if waited and "waited" in outcome.__struct_fields__ else outcome

    def _apply(self, operation: AnyOperation) -> AnyOutcome:
        match operation:
            case Alloc() | Extend() | Decode() | ExtendTail() | AllocStates() | Recover():
                return self._demand(operation)
            case Insert():
                got = self.prefixes.insert(self.nodes(), operation.key, operation.state)
                return Rejected() if got is None else Done(pages=self.house.given_out(got))
            case Match():
                return Done(matched_pages=self.prefixes.match(operation.key)[0])
            case LockPrefix():
                return Done(matched_pages=self.prefixes.lock(operation.name, operation.key))
            case Unlock():
                self.prefixes.unlock(operation.name)
                return Done()
            case UnlockWindow():
                self.prefixes.unlock_window(operation.name)
                return Done()
            case _:
                return self.house.apply(operation)

    def _demand(self, demand: AnyDemand) -> AnyOutcome:
        self.recorder.start(self.nodes())
        requests = self.house.requests
        request = requests.get(demand.name, Request())
        try:
            got = self.demands.take(demand, request)
        except OutOfMemory:
            got = None
        recorder = self.recorder
        steps = tuple(recorder.steps)
        if got is None:
            return Rejected(steps=steps, compactions=recorder.compactions, walks=recorder.walks)
        requests[demand.name] = request.plus(got)
        pages = self.house.given_out(got)
        return Granted(steps=steps, pages=pages, compactions=recorder.compactions, walks=recorder.walks)
