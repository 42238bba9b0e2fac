"""PoolAdapter: the one class to subclass for a pool in Python; a method for each operation that the pool has."""

import traceback
from collections.abc import Callable
from typing import Any, ClassVar, get_args

from poolproof_conformance.adapter import Description, Inability
from poolproof_spec.geometry import Geometry
from poolproof_spec.operation import AnyOperation, operation_name
from poolproof_spec.outcome import AnyOutcome, Crashed, Refused, Unsupported
from poolproof_spec.state import PoolState
from poolproof_spec.units import VirtualId

OPERATIONS = tuple(str(kind.__struct_config__.tag) for kind in get_args(AnyOperation))
"""Names of all operations: alloc, decode, insert, ..."""


class RefusedCallError(Exception):
    """Raise it, or a subclass, in a method for a bad call; nothing must have been changed."""


class PoolAdapter:
    """A pool in this process.

    Write `build` and `observe`, and a method called like each operation that the pool has: `def alloc(self, operation)`
    takes the struct of that name in poolproof_spec/operation.py and returns an outcome. Operations without a method are
    not sent, and nothing is said of them. An exception other than RefusedCallError is a crash: no answer, never a pass.
    """

    name: ClassVar[str] = "my-pool"
    """What reports call it."""
    anchored: ClassVar[tuple[str, ...]] = ()
    """Members that bound their neighbours even when empty, by design."""
    cannot: ClassVar[tuple[Inability, ...]] = ()
    """What the pool has no notion of; it is told as not judged. The words are in poolproof_conformance/adapter.py."""

    def describe(self) -> Description:
        """Who this is; from the class's own fields and methods."""
        operations = tuple(name for name in OPERATIONS if callable(getattr(self, name, None)))
        return Description(target=self.name, anchored=self.anchored, cannot=self.cannot, operations=operations)

    def build(self, geometry: Geometry) -> None:
        """Start from an empty pool of this geometry. Raises UnsupportedGeometryError where the pool has no such."""
        raise NotImplementedError(f"{type(self).__name__}.build(geometry): start from an empty pool of this geometry")

    def apply(self, operation: AnyOperation) -> AnyOutcome:
        """Call the method of the operation's name."""
        name = operation_name(operation)
        method: Callable[[Any], AnyOutcome] | None = getattr(self, name, None)
        if method is None:
            return Unsupported(what=name)
        try:
            return method(operation)
        except RefusedCallError as error:
            return Refused(error=type(error).__name__, message=str(error))
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            return Crashed(reason=f"{type(error).__name__}: {error} ({frame.name}, line {frame.lineno})")

    def write(self, member: str, identifier: VirtualId, stamp: int) -> None:
        """Fill the page bound to the id with `stamped(stamp, page_bytes)`; nothing where `payloads` is in `cannot`."""
        if "payloads" not in self.cannot:
            raise NotImplementedError(f'{type(self).__name__}.write: fill the page, or list "payloads" in `cannot`')

    def observe(self) -> PoolState:
        """The whole state as seen now; changes nothing. `written` stays empty."""
        raise NotImplementedError(f"{type(self).__name__}.observe(): the whole state as seen now")
