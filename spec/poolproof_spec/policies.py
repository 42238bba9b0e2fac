"""Policies as arithmetic: which victims an allocation under pressure takes, and whether it is granted (docs/spec.md).

A policy is one source text over `Arithmetic`. On ints it runs a pool (read with `view_of`); on solver terms it is what
`poolproof search` looks for counterexamples of. It sees no page, only a `View`: what each member holds after each
number of victims, in the order in which the victims would go.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from poolproof_spec.arithmetic import INTEGERS, Arithmetic, Quantity, Truth
from poolproof_spec.demand import Demand
from poolproof_spec.geometry import Geometry, Kind, Role
from poolproof_spec.occupancy import Occupancy, pinned_pages
from poolproof_spec.outcome import StepKind
from poolproof_spec.state import PoolState
from poolproof_spec.steps import after_steps, policy_order, tree_of
from poolproof_spec.sweep import sweep


class Band(NamedTuple):
    """One member as a policy sees it; sizes may be a carrier's terms, the rest is known."""

    role: Role
    kind: Kind
    page_bytes: int
    first_page: Quantity
    page_count: Quantity
    anchored: bool
    span_low: Quantity
    """Lowest page since the member was last empty: a float's frontier, which frees alone do not move."""
    span_high: Quantity
    """One past the highest such page."""


class Holding(NamedTuple):
    """What one member holds at one stage."""

    live: Quantity
    """Pages."""
    low: Quantity
    """Lowest live page; page_count where there is none."""
    high: Quantity
    """One past the highest; 0 where there is none."""
    loose: Quantity
    """Live pages that can move now."""
    pinned: Quantity
    """Pages that cannot, pending ones among them."""
    pinned_low: Quantity
    """Lowest of them; page_count where there is none."""
    pinned_high: Quantity
    """One past the highest; 0 where there is none."""


Stage = tuple[Holding, ...]
"""All members, low bytes to high."""


class View(NamedTuple):
    """A state, and what becomes of it victim by victim."""

    total_bytes: Quantity
    """Of the arena."""
    members: tuple[Band, ...]
    stages: tuple[Stage, ...]
    """Before the first victim, after it, ..., after the last."""
    victims: tuple[StepKind, ...]
    """The kind of each; leaves come first."""
    split: Truth
    """Whether some cached prefix is more than one node."""

    def place(self, role: Role) -> int | None:
        """Which member holds `role`; None where there is none."""
        return next((i for i, member in enumerate(self.members) if member.role == role), None)

    @property
    def leaves(self) -> int:
        """How many of the victims are leaves."""
        return sum(kind == "leaf" for kind in self.victims)

    def freed(self, role: Role, stage: int) -> Quantity:
        """Pages of `role` freed up to a stage; 0 where no member holds it."""
        index = self.place(role)
        return 0 if index is None else self.stages[0][index].live - self.stages[stage][index].live


class Ask(NamedTuple):
    """A demand: exact pages, and the pages that a caller without exact counts asks its evictor for."""

    full: Quantity
    swa: Quantity
    state: Quantity
    probe: Quantity
    """Token pages that the evictor is asked for: one for each decoding request; else as many as are needed."""

    def pages(self, role: Role) -> Quantity:
        """Exact pages for the member that holds `role`."""
        return {"full": self.full, "swa": self.swa, "state": self.state}[role]


class Choice(NamedTuple):
    """What a policy does with a demand."""

    victims: Quantity
    """How many, from the first on."""
    granted: Truth
    exact: Truth = True
    """False where the policy's own rule does something else than take the first so many: nothing is claimed there."""


Choose = Callable[[View, Ask, Arithmetic], Choice]


def ids_of(view: View, role: Role) -> Quantity:
    """Size of the id space that `role` owns: its usable pages."""
    index = view.place(role)
    return 0 if index is None else view.members[index].page_count - view.members[index].first_page


def fits_at(view: View, stage: int, ask: Ask, a: Arithmetic = INTEGERS) -> Truth:
    """[D-fits] after that many victims: ids suffice and the sweep finds windows."""
    needs, enough = [], []
    for band, held in zip(view.members, view.stages[stage], strict=True):
        if band.role != "swa":
            enough.append(held.live + ask.pages(band.role) <= ids_of(view, band.role))
        needs.append(
            Occupancy(
                page_bytes=band.page_bytes,
                first_page=band.first_page,
                page_count=band.page_count,
                anchored_up=band.anchored and band.kind == "up",
                anchored_down=band.anchored and band.kind == "down",
                pinned_count=held.pinned,
                pinned_start=held.pinned_low,
                pinned_end=held.pinned_high,
                loose_count=held.loose + ask.pages(band.role),
            )
        )
    return a.all_of(*enough, sweep(needs, a).fits)


def first(conditions: Sequence[Truth], otherwise: Quantity, a: Arithmetic, offset: int = 0) -> Quantity:
    """Index of the first condition that holds, plus `offset`."""
    found = otherwise
    for index in reversed(range(len(conditions))):
        found = a.where(conditions[index], index + offset, found)
    return found


def at(values: Sequence[Truth], index: Quantity, a: Arithmetic) -> Truth:
    """The condition with that index."""
    return a.any_of(*(a.all_of(index == position, value) for position, value in enumerate(values)))


def tight(view: View, ask: Ask, a: Arithmetic) -> Choice:
    """Refuse by what is left with every victim gone; else take the first so many with which the sweep finds windows."""
    enough = [fits_at(view, stage, ask, a) for stage in range(len(view.stages))]
    return Choice(a.where(enough[-1], first(enough, 0, a), 0), enough[-1])


def whole_cache(view: View, ask: Ask, a: Arithmetic) -> Choice:
    """Walk until it fits, with the whole cache as the quota, and see then: what never fits costs everything."""
    enough = [fits_at(view, stage, ask, a) for stage in range(len(view.stages))]
    return Choice(first(enough, len(view.victims), a), a.any_of(*enough))


# Reading a view of a state


def view_of(state: PoolState, demand: Demand, spans: Sequence[tuple[int, int]], anchored: Sequence[str] = ()) -> View:
    """What a policy sees of a state; `spans` are the members' frontiers, [low, high) in pages."""
    order = policy_order(tree_of(state))
    stages = [after_steps(state, order[:count]) for count in range(len(order) + 1)]
    members = tuple(
        Band(m.role, m.kind, m.page_bytes, m.first_page, m.page_count, m.anchored or m.name in anchored, low, high)
        for m, (low, high) in zip(state.geometry.members, spans, strict=True)
    )
    return View(
        total_bytes=state.geometry.total_bytes,
        members=members,
        stages=tuple(_stage(stage, state.geometry, demand.may_wait) for stage in stages),
        victims=tuple(step.kind for step in order),
        split=any(entry.parent_key for entry in state.entries),
    )


def _stage(state: PoolState, geometry: Geometry, may_wait: bool) -> Stage:
    holdings = []
    for index, (member, now) in enumerate(zip(geometry.members, state.members, strict=True)):
        pages, pinned = now.live_pages, pinned_pages(state, index, may_wait)
        ends = [(min(some, default=member.page_count), max(some, default=-1) + 1) for some in (pages, pinned)]
        holdings.append(Holding(len(pages), *ends[0], len(pages - pinned), len(pinned), *ends[1]))
    return tuple(holdings)


def ask_of(demand: Demand, probe: int | None = None) -> Ask:
    """A demand as a policy sees it; the probe is what is needed unless given."""
    return Ask(demand.full_pages, demand.swa_pages, demand.state_pages, demand.full_pages if probe is None else probe)
