"""What the fast pool answers to a demand."""

from collections.abc import Callable
from typing import Any, Literal

from poolproof_fast.pages import Ids
from poolproof_spec.outcome import Blocked, Impossible

Reason = Impossible | Blocked | None


class Grant:
    """The demand was met; true."""

    __slots__ = ("batches", "evicted", "ids", "state_ids", "swa_ids", "waited")

    def __init__(self, ids: Ids, swa_ids: Ids, state_ids: Ids) -> None:
        self.ids = ids
        """Token ids that have a new FULL page."""
        self.swa_ids = swa_ids
        """Token ids that have a new SWA page: the last of `ids`, or those that were recovered."""
        self.state_ids = state_ids
        self.evicted = 0
        """Eviction steps that were taken for it."""
        self.waited = 0
        """Events that were waited for."""
        self.batches: tuple[int, ...] = ()
        """Index of each member that pages were moved in: one launch each."""

    def __bool__(self) -> Literal[True]:
        return True


class Refusal:
    """The demand was not met and nothing was evicted; false."""

    __slots__ = ("_later", "_reason")

    def __init__(self, reason: Reason, later: tuple[Callable[..., Reason], tuple[Any, ...]] | None = None) -> None:
        self._reason, self._later = reason, later

    @property
    def reason(self) -> Reason:
        """Why [P4]: the bound that can never be met, or the fewest things that block.

        None only for what does not evict (insert): there evicting would have done. Put into words when first asked
        for, from the numbers of the moment of refusal.
        """
        if self._later is not None:
            function, arguments = self._later
            self._reason, self._later = function(*arguments), None
        return self._reason

    def __bool__(self) -> Literal[False]:
        return False
