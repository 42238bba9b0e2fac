"""Look for a wrong pool's fault in a history: what the rules find at the first step that goes wrong."""

from collections.abc import Callable, Iterable

from poolproof_conformance.adapter import Adapter, Description
from poolproof_conformance.generator import History
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.run import Session
from poolproof_reference.joint_pool import JointPool
from poolproof_spec.geometry import Geometry
from poolproof_spec.operation import AnyOperation
from poolproof_spec.outcome import AnyOutcome, Crashed
from poolproof_spec.state import PoolState
from poolproof_spec.units import VirtualId


class Guarded:
    """An adapter of a wrong pool, which may also crash; that is no answer, and no catch either."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter

    def describe(self) -> Description:
        """See Adapter."""
        return self.adapter.describe()

    def build(self, geometry: Geometry) -> None:
        """See Adapter."""
        self.adapter.build(geometry)

    def apply(self, operation: AnyOperation) -> AnyOutcome:
        """See Adapter."""
        try:
            return self.adapter.apply(operation)
        except Exception as error:
            return Crashed(reason=f"{type(error).__name__}: {error}")

    def write(self, member: str, identifier: VirtualId, stamp: int) -> None:
        """See Adapter."""
        self.adapter.write(member, identifier, stamp)

    def observe(self) -> PoolState:
        """See Adapter."""
        return self.adapter.observe()


class GuardedAdapter(Guarded):
    """The same for a pool made like the reference."""

    def __init__(self, pool_class: type[JointPool], target: str = "reference") -> None:
        super().__init__(ReferenceAdapter(pool_class, target))


def findings_on(adapter: Adapter, history: History) -> dict[str, str]:
    """Name of each rule violated at the first step that violates any, and what it found; empty where all hold.

    Later steps are not looked at: once the state is wrong, any rule may complain.
    """
    geometry, operations = history
    session = Session(Guarded(adapter), geometry)
    for index, operation in enumerate(operations):
        record = session.step(index, operation)
        found = {finding.property: finding.message for finding in record.findings if finding.verdict == "violated"}
        if found or isinstance(record.outcome, Crashed):
            return found
    return {}


def first_findings(pool_class: type[JointPool], history: History) -> dict[str, str]:
    """`findings_on` for a pool made like the reference."""
    return findings_on(ReferenceAdapter(pool_class), history)


def hunt_on(make_adapter: Callable[[], Adapter], rule: str, corpus: Iterable[History]) -> int | None:
    """How many histories it takes until `rule` is among the first findings; None where the corpus ends before."""
    for count, history in enumerate(corpus, start=1):
        if rule in findings_on(make_adapter(), history):
            return count
    return None


def hunt(pool_class: type[JointPool], rule: str, corpus: Iterable[History]) -> int | None:
    """`hunt_on` for a pool made like the reference."""
    return hunt_on(lambda: ReferenceAdapter(pool_class), rule, corpus)
