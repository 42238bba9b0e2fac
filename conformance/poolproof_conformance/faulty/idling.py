"""Operations that are answered and not carried out, or only in part; bad calls are refused as they should be."""

from poolproof_reference.joint_pool import JointPool
from poolproof_spec import operation as op
from poolproof_spec.calls import is_good_call
from poolproof_spec.outcome import AnyOutcome, Done


class DropsInserts(JointPool):
    """Says that a prefix was cached, and caches nothing."""

    def insert(self, operation: op.Insert) -> AnyOutcome:
        """Done, without pages."""
        if not is_good_call(self.observe(), operation):
            return super().insert(operation)
        return Done()


class IgnoresLaunch(JointPool):
    """Takes no note of what a forward in flight reads and writes."""

    def launch(self, operation: op.Launch) -> AnyOutcome:
        """The event alone."""
        outcome = super().launch(operation)
        self.pool.flights[operation.event] = (set(), set())
        return outcome


class IgnoresFire(JointPool):
    """Never hears that a forward has ended."""

    def fire(self, operation: op.Fire) -> AnyOutcome:
        """What is pending stays pending."""
        if not is_good_call(self.observe(), operation):
            return super().fire(operation)
        return Done()


class IgnoresGateCall(JointPool):
    """Never closes a gate."""

    def gate(self, operation: op.Gate) -> AnyOutcome:
        """They stay open."""
        return Done()


class IgnoresGroup(JointPool):
    """Frees at once, group or not."""

    def group_begin(self, operation: op.GroupBegin) -> AnyOutcome:
        """No group is opened."""
        if not is_good_call(self.observe(), operation):
            return super().group_begin(operation)
        return Done()


class IgnoresLock(JointPool):
    """Finds the prefix and does not lock it."""

    def lock(self, operation: op.LockPrefix) -> AnyOutcome:
        """A match."""
        if not is_good_call(self.observe(), operation):
            return super().lock(operation)
        return Done(matched_pages=len(self.cache.match(operation.key)))
