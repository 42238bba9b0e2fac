"""Look for a wrong pool's fault in a history: what the rules find at the first step that goes wrong."""

from collections.abc import Iterable

from poolproof_conformance.generator import History
from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.run import Session
from poolproof_reference.joint_pool import JointPool
from poolproof_spec.operation import AnyOperation
from poolproof_spec.outcome import AnyOutcome, Crashed


class GuardedAdapter(ReferenceAdapter):
    """A wrong pool may also crash; that is no answer, and no catch either."""

    def apply(self, operation: AnyOperation) -> AnyOutcome:
        """See Adapter."""
        try:
            return super().apply(operation)
        except Exception as error:
            return Crashed(reason=f"{type(error).__name__}: {error}")


def first_findings(pool_class: type[JointPool], history: History) -> dict[str, str]:
    """Name of each rule violated at the first step that violates any, and what it found; empty where all hold.

    Later steps are not looked at: once the state is wrong, any rule may complain.
    """
    geometry, operations = history
    session = Session(GuardedAdapter(pool_class), geometry)
    for index, operation in enumerate(operations):
        record = session.step(index, operation)
        found = {finding.property: finding.message for finding in record.findings if finding.verdict == "violated"}
        if found or isinstance(record.outcome, Crashed):
            return found
    return {}


def hunt(pool_class: type[JointPool], rule: str, corpus: Iterable[History]) -> int | None:
    """How many histories it takes until `rule` is among the first findings; None where the corpus ends before."""
    for count, history in enumerate(corpus, start=1):
        if rule in first_findings(pool_class, history):
            return count
    return None
