"""What the fast pool answers to a demand. Structs that are made in C: one is made for every call."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from poolproof_fast.pages import Ids
from poolproof_spec.outcome import Blocked, Impossible

Reason = Impossible | Blocked | None
Explain = Callable[[Any, Any], Reason]
"""What was demanded, and the numbers of the moment, into words."""


class Grant(msgspec.Struct, eq=False, gc=False):
    """The demand was met; true."""

    ids: Ids
    """Token ids that have a new FULL page."""
    swa_ids: Ids
    """Token ids that have a new SWA page: the last of `ids`, or those that were recovered."""
    state_ids: Ids
    evicted: int = 0
    """Eviction steps that were taken for it."""
    waited: int = 0
    """Events that were waited for."""
    batches: tuple[int, ...] = ()
    """Index of each member that pages were moved in: one launch each."""

    def __bool__(self) -> Literal[True]:
        return True


class Refusal(msgspec.Struct, eq=False, gc=False):
    """The demand was not met and nothing was evicted; false."""

    _reason: Reason = None
    _explain: Explain | None = None
    _needed: Any = None
    _snapshot: Any = None

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
