"""One space of virtual ids: which are free, and who has each of the others."""

from array import array

import numpy as np

from poolproof_fast.errors import DoubleFreeError, UnknownIdError
from poolproof_fast.pages import Ids
from poolproof_fast.runs import where

FREE, HELD, CACHED, QUEUED = 0, 1, 2, 3
"""An id is free, held by a request, held by the cache, or freed into the open group."""


class IdSpace:
    """A stack of free ids; the owner of every id, so that nothing is freed twice or by somebody else."""

    __slots__ = ("free", "free_np", "name", "owner", "owner_np", "place_np", "size", "top")

    def __init__(self, name: str, ids: range) -> None:
        self.name, self.size = name, len(ids)
        self.free = array("i", reversed(ids))
        """The first `top` are free."""
        self.free_np = np.frombuffer(self.free, dtype=np.int32) if ids else np.empty(0, dtype=np.int32)
        self.top = len(ids)
        self.owner = bytearray(ids.stop if ids else 1)
        """Indexed by id."""
        self.owner_np = np.frombuffer(self.owner, dtype=np.uint8)
        self.place_np = np.zeros(len(self.owner), dtype=np.int32)
        """Scratch: where in a call each id was given."""

    def take(self, count: int, owner: int = HELD) -> Ids:
        """`count` free ids. There must be so many."""
        self.top -= count
        if count == 1:
            self.owner[self.free[self.top]] = owner
            return self.free_np[self.top : self.top + 1].copy()
        ids = self.free_np[self.top : self.top + count].copy()
        self.owner_np[where(ids)] = owner
        return ids

    def give_back(self, ids: Ids) -> None:
        """Ids that are free now, each once."""
        count = len(ids)
        if count == 1:
            self.free[self.top] = identifier = int(ids[0])
            self.owner[identifier] = FREE
        elif count:
            self.free_np[self.top : self.top + count] = ids
            self.owner_np[where(ids)] = FREE
        self.top += count

    def free_ids(self) -> Ids:
        """All free ids, in no order."""
        return self.free_np[: self.top]

    def ids_of(self, owner: int) -> Ids:
        """All ids that this owner has, in order: one pass over the space."""
        return np.flatnonzero(self.owner_np == owner).astype(np.int32)

    def check_held(self, ids: Ids) -> None:
        """Each id is held by a request, and given once. Raises UnknownIdError, DoubleFreeError."""
        if len(ids) == 1:
            identifier = int(ids[0])
            if not 0 < identifier < len(self.owner) or self.owner[identifier] != HELD:
                raise UnknownIdError(self._unknown(identifier))
            return
        if not len(ids):
            return
        if int(ids.min()) < 1 or int(ids.max()) >= len(self.owner):
            odd = int(ids[(ids < 1) | (ids >= len(self.owner))][0])
            raise UnknownIdError(self._unknown(odd))
        by_id = where(ids)
        held = self.owner_np[by_id] == HELD
        if not held.all():
            raise UnknownIdError(self._unknown(int(ids[~held][0])))
        if isinstance(by_id, slice):
            return
        order = np.arange(len(ids), dtype=np.int32)
        self.place_np[by_id] = order
        once = self.place_np[by_id] == order
        if not once.all():
            raise DoubleFreeError(f"{self.name} id {int(ids[~once][0])} is given twice in one call; free each id once")

    def check_known(self, ids: Ids) -> None:
        """Each id is somebody's. Raises UnknownIdError."""
        if not len(ids):
            return
        if int(ids.min()) < 1 or int(ids.max()) >= len(self.owner):
            raise UnknownIdError(self._unknown(int(ids[(ids < 1) | (ids >= len(self.owner))][0])))
        free = self.owner_np[ids] == FREE
        if free.any():
            raise UnknownIdError(self._unknown(int(ids[free][0])))

    def _unknown(self, identifier: int) -> str:
        names = {FREE: "is free", CACHED: "belongs to the cache", QUEUED: "was freed into the open group"}
        known = 0 < identifier < len(self.owner)
        what = names.get(self.owner[identifier], "is no id") if known else "is no id"
        return f"{self.name} id {identifier} {what}; expected one that a request holds"
