"""What the fast pool answers to a demand."""

from collections.abc import Callable
from typing import Any, Literal

from poolproof_fast.pages import Ids
from poolproof_spec.outcome import Blocked, Impossible

Reason = Impossible | Blocked | None
Explain = Callable[[Any, Any], Reason]
"""What was demanded, and the numbers of the moment, into words."""


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

    __slots__ = ("_explain", "_needed", "_reason", "_snapshot")

    def __init__(
        self, reason: Reason = None, explain: Explain | None = None, needed: Any = None, snapshot: Any = None
    ) -> None:
        self._reason, self._explain, self._needed, self._snapshot = reason, explain, needed, snapshot

    @property
    def reason(self) -> Reason:
        """Why [P4]: the bound that can never be met, or the fewest things that block.

        None only for what does not evict (insert): there evicting would have done. Put into words when first asked
        for, from the numbers of the moment of refusal.
        """
        if self._explain is not None:
            self._reason, self._explain = self._explain(self._needed, self._snapshot), None
        return self._reason

    def __bool__(self) -> Literal[False]:
        return False
