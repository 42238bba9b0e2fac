"""The bundled reference as a target; it can do everything that is asked."""

from poolproof_conformance.adapter import Description
from poolproof_reference.errors import RefusedError
from poolproof_reference.joint_pool import JointPool
from poolproof_spec.geometry import Geometry
from poolproof_spec.operation import AnyOperation
from poolproof_spec.outcome import AnyOutcome, Refused
from poolproof_spec.state import PoolState
from poolproof_spec.units import VirtualId


class ReferenceAdapter:
    """In-process; `pool_class` is replaced by pools that are wrong on purpose."""

    def __init__(self, pool_class: type[JointPool] = JointPool, target: str = "reference") -> None:
        self.pool_class, self.target = pool_class, target
        self.pool: JointPool | None = None

    def describe(self) -> Description:
        """See Adapter."""
        return Description(target=self.target)

    def build(self, geometry: Geometry) -> None:
        """See Adapter."""
        self.pool = self.pool_class(geometry)

    def apply(self, operation: AnyOperation) -> AnyOutcome:
        """See Adapter; a RefusedError becomes Refused."""
        try:
            return self._built().apply(operation)
        except RefusedError as error:
            return Refused(error=type(error).__name__, message=str(error))

    def write(self, member: str, identifier: VirtualId, stamp: int) -> None:
        """See Adapter."""
        pool = self._built()
        pool.pool.write(pool.pool.geometry.index_of(member), identifier, stamp)

    def observe(self) -> PoolState:
        """See Adapter."""
        return self._built().observe(with_payloads=True)

    def _built(self) -> JointPool:
        assert self.pool is not None, "build comes first"
        return self.pool
