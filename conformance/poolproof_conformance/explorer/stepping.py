"""One step of one pool from a frozen state: what the model, its rules and its witnesses say of it."""

from dataclasses import dataclass

from msgspec.structs import replace

from poolproof_conformance.explorer.policies import ExploredPolicy
from poolproof_conformance.explorer.snapshot import Frozen, freeze, thaw
from poolproof_conformance.run import applies, checked_properties
from poolproof_reference.errors import RefusedError
from poolproof_reference.joint_pool import JointPool
from poolproof_spec.calls import is_good_call
from poolproof_spec.geometry import Geometry
from poolproof_spec.operation import AnyOperation
from poolproof_spec.outcome import AnyOutcome, Refused
from poolproof_spec.state import PoolState
from poolproof_spec.transition import Transition
from poolproof_spec.units import VirtualId

Stamps = dict[tuple[int, VirtualId], int]
"""(member index, id) of each live page to what was last written to it."""


@dataclass(frozen=True)
class Stepped:
    """One operation carried out."""

    after: Frozen | None
    """The state it led to; None where the pool crashed."""
    violated: dict[str, str]
    """Name of each violated rule, and what it found."""
    crash: str = ""
    """Why there is no answer; empty where there is one."""


class Stepper:
    """Steps of one policy in one geometry; notes which witnesses were seen."""

    def __init__(self, policy: ExploredPolicy, geometry: Geometry, bad_calls: bool = False) -> None:
        self.policy, self.geometry, self.bad_calls = policy, geometry, bad_calls
        anchored = policy.description.anchored
        members = tuple(replace(m, anchored=m.anchored or m.name in anchored) for m in geometry.members)
        self.seen_geometry = replace(geometry, members=members)
        self.rules = checked_properties(policy.description)
        self.unseen = list(self.rules)
        """Rules whose witness no transition was yet."""
        ids = [(index, i) for index, member in enumerate(geometry.members) for i in geometry.id_range(member.role)]
        self.stamp_of = {page: number for number, page in enumerate(ids, 1)}
        """What is written to each live page before an operation; to a new one after it: that and `len(ids)` more."""

    def initial(self) -> Frozen:
        """The empty pool."""
        return freeze(self.policy.pool_class(self.geometry))

    def before(self, frozen: Frozen) -> PoolState:
        """The state as a checker sees it, with payloads as written."""
        pool = self._written(frozen)
        return self._observed(pool, self._stamps(pool))

    def applies(self, before: PoolState, operation: AnyOperation) -> bool:
        """Whether the operation is tried in the state."""
        good = self.bad_calls or is_good_call(before, operation)
        return good and applies(before, operation, self.policy.description)

    def step(self, frozen: Frozen, before: PoolState, operation: AnyOperation) -> Stepped:
        """Carry the operation out in the state and judge it by every rule."""
        pool = self._written(frozen)
        stamps = self._stamps(pool)
        try:
            outcome = _answer(pool, operation)
            for name, identifier in getattr(outcome, "pages", ()):
                page = self.geometry.index_of(name), identifier
                stamps[page] = len(self.stamp_of) + self.stamp_of.get(page, 0)
                pool.pool.write(page[0], identifier, stamps[page])
            after = self._observed(pool, stamps)
        except Exception as error:  # a wrong pool may also crash: that is no answer
            return Stepped(None, {}, f"{type(error).__name__}: {error}")
        transition = Transition(before, operation, outcome, after)
        if isinstance(outcome, Refused) and transition.good_call and transition.demand is None:
            return Stepped(None, {}, f"refused a well-formed call: {outcome.error}: {outcome.message}")
        return Stepped(freeze(pool), self._judged(transition))

    def _judged(self, transition: Transition) -> dict[str, str]:
        self.unseen = [rule for rule in self.unseen if not rule.witness(transition)]
        found = {rule.name: rule.check(transition) for rule in self.rules}
        return {name: message for name, message in found.items() if message is not None}

    def _written(self, frozen: Frozen) -> JointPool:
        pool = thaw(self.policy.pool_class, self.geometry, frozen)
        for (index, identifier), stamp in self._stamps(pool).items():
            pool.pool.write(index, identifier, stamp)
        return pool

    def _stamps(self, pool: JointPool) -> Stamps:
        return {(i, page): self.stamp_of[i, page] for i, table in enumerate(pool.pool.page_of) for page in table}

    def _observed(self, pool: JointPool, stamps: Stamps) -> PoolState:
        state = pool.observe(with_payloads=True)
        live = {(m.name, i) for m, now in zip(self.geometry.members, state.members, strict=True) for i in now.live_ids}
        named = ((self.geometry.members[index].name, i, stamp) for (index, i), stamp in stamps.items())
        written = tuple(sorted(page for page in named if page[:2] in live))
        return replace(state, geometry=self.seen_geometry, written=written)


def _answer(pool: JointPool, operation: AnyOperation) -> AnyOutcome:
    try:
        return pool.apply(operation)
    except RefusedError as error:
        return Refused(error=type(error).__name__, message=str(error))
