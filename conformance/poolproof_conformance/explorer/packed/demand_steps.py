"""The step of a demand: what goes, what moves, what is taken."""

from __future__ import annotations

from collections.abc import Callable

from poolproof_conformance.explorer.packed.derived import Derived
from poolproof_conformance.explorer.packed.fields import page_field
from poolproof_conformance.explorer.packed.lanes import Column, Lanes
from poolproof_conformance.explorer.packed.room import Item, put
from poolproof_conformance.explorer.packed.step_base import StepBase, Stepped
from poolproof_conformance.explorer.packed.victims import Choice
from poolproof_spec import operation as op
from poolproof_spec.demand import demand_of
from poolproof_spec.state import MemberState, PoolState


class DemandSteps(StepBase):
    """All kinds of demands go one way."""

    def __init__(self, derived: Derived, looks_at_locks: bool, spares: bool) -> None:
        super().__init__(derived)
        self.looks_at_locks, self.spares = looks_at_locks, spares
        self.seen: set[str] = set()
        """Rules to which some step put a question."""
        self._empty = PoolState(
            geometry=self.model.geometry, members=tuple(MemberState() for _ in self.model.geometry.members)
        )

    def demand(self, root: Lanes, operation: op.DemandOperation) -> Stepped:
        """Meet the demand with the fewest of the least recently used entries, or change nothing."""
        backend, start = self.backend, root
        if isinstance(operation, op.Recover):
            start = root.some(backend.which(self.holds(root, operation.name)))
        asked = demand_of(self._empty, operation)  # type: ignore[arg-type]
        assert asked is not None
        swa: Column | int = asked.swa_pages
        if isinstance(operation, op.Recover):
            swa = self._bare(start, operation.name)
        demand = self.by_member(asked.full_pages, swa, asked.state_pages)
        live = self.room.live(start)
        fitting = self.room.fits(start, live, demand, self.room.pinned(start, live, operation.may_wait))
        unfit = backend.which(~fitting)
        broken: list[tuple[str, Column]] = []
        if len(unfit) and self.model.positions:
            lanes = start.some(unfit)
            wanted = [self.rows_of(d, unfit) for d in demand]
            found, evicted, broken = self._evicting(lanes, wanted, operation.may_wait)
            start, demand, fitting = self._merged(start, unfit, found, evicted, demand, fitting)
        granted = start.some(backend.which(fitting))
        if len(granted):
            rows = backend.which(fitting)
            self._grant(granted, operation, [self.rows_of(d, rows) for d in demand])
        return Stepped(len(start), granted, broken)

    def _evicting(
        self, lanes: Lanes, demand: list[Column | int], may_wait: bool
    ) -> tuple[Column, tuple[Column, Column, Column], list[tuple[str, Column]]]:
        """(where it is granted, what goes, what is wrong with that)."""
        choice = Choice(self.room, lanes, demand, may_wait, looks_at_locks=self.looks_at_locks, spares=self.spares)
        found = choice.choose()
        broken = [("first-sufficient", found & choice.needless()), ("locks-kept", found & choice.breaks_a_lock())]
        broken += [("irredundant", found & choice.spareable()), ("complete", ~found & choice.suffices_in_full())]
        self._see(choice, found)
        rows_of = [(rule, self.backend.which(mask)) for rule, mask in broken if self.backend.any(mask)]
        rows = [(rule, lanes.chunk_rows(found_rows)) for rule, found_rows in rows_of]
        return found, choice.gone(choice.evicted), rows

    def _see(self, choice: Choice, found: Column) -> None:
        """Note the rules to which these lanes put a question."""
        several = choice.count() > 1
        asked: dict[str, Callable[[], Column]] = {
            "first-sufficient": lambda: found & several,
            "irredundant": lambda: found & several,
            "complete": lambda: found,
            "preserving": lambda: ~found & (choice.lanes["CACHED"] != 0),
            "locks-kept": lambda: found & (choice.lanes["FULL LOCKED"] != 0),
        }
        self.seen |= {rule for rule, mask in asked.items() if rule not in self.seen and self.backend.any(mask())}

    def _merged(
        self,
        start: Lanes,
        unfit: Column,
        found: Column,
        gone: tuple[Column, Column, Column],
        demand: list[Column | int],
        fitting: Column,
    ) -> tuple[Lanes, list[Column | int], Column]:
        """The lanes with what goes gone, and where the demand now fits."""
        backend = self.backend
        lanes = start.some(backend.which(start.number(0) == 0))
        hit = backend.which(found)
        rows = backend.rows(unfit, hit)
        if len(rows):
            nodes, swa, states = (put(start.number(0), rows, backend.rows(column, hit)) for column in gone)
            self.cache.forget(lanes, nodes, swa, states)
        return lanes, demand, put(fitting, rows, True) if len(rows) else fitting

    def _grant(self, lanes: Lanes, operation: op.DemandOperation, demand: list[Column | int]) -> None:
        model, name = self.model, operation.name
        full, states = demand[model.full], demand[model.state[0]] if model.state else 0
        swa = demand[model.swa[0]] if model.swa else 0
        held = lanes[f"tokens.{name}"]
        places = list(enumerate(model.slots[name]))
        fresh = [Item(slot, (held <= n) & (n < held + full)) for n, slot in places]
        bare: list[Item] = []
        if isinstance(operation, op.Recover):
            first_swa = self._has_swa(lanes, name)
            bare = [Item(slot, (n < held) & (first_swa[n] == 0)) for n, slot in places]
            with_swa: list[Item] = []
        else:
            with_swa = [Item(slot, (held + full - swa <= n) & (n < held + full)) for n, slot in places]
        state: list[Item] = []
        if model.state and not (isinstance(states, int) and states == 0):
            owned = lanes[f"states.{name}"]
            slots = enumerate(model.state_slots[name])
            state = [Item(slot, (owned <= n) & (n < owned + states)) for n, slot in slots]
        asks = not (isinstance(full, int) and full == 0)
        items = self.items(fresh if asks else [], with_swa if asks else [], state)
        self.room.take(lanes, demand, operation.may_wait, items, self.items([], bare, []))

    def _has_swa(self, lanes: Lanes, name: str) -> list[Column]:
        """Of each slot of a request, whether it has an SWA page."""
        member = self.model.swa[0]
        return [self.backend.as_small(lanes[page_field(member, slot)] != 0) for slot in self.model.slots[name]]

    def _bare(self, lanes: Lanes, name: str) -> Column | int:
        """Pages of a request without their SWA page."""
        if not self.model.swa:
            return 0
        count = lanes[f"tokens.{name}"]
        for has in self._has_swa(lanes, name):
            count = count - has
        return count
