"""No page is read with another member's bytes: which member last owned each part of the arena, and what to fill."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt

from poolproof_fast.runs import where
from poolproof_fast.staging import Words
from poolproof_spec.geometry import Geometry, Role

Mode = Literal["zero", "poison", "none"]
"""What a page of a role is filled with when its bytes were another member's: zeroes, POISON, or nothing."""

POISON = 0xFF
"""A byte that reads as NaN in float16, bfloat16, float32 and both 8-bit formats, whatever a page is read as."""

NOBODY = 0
"""Owner of bytes that were never handed out: they are zero."""

MIXED = 255
"""Owner of a granule that several members may have left bytes in."""

FINEST = 4
"""The map has at most this many granules for each page of the smallest member."""


class Hygiene:
    """A byte for each granule of the arena says which member last owned it: NOBODY, 1 + index, or MIXED.

    A granule is the greatest common divisor of the page sizes, if that leaves at most FINEST of them in the smallest
    page: then every page is made of whole granules and the map is exact. Otherwise it is the smallest page size, and
    a granule that a page covers only in part becomes MIXED unless its owner is the same or nobody: some clean pages
    are then reported, and no dirty one is missed. What a member's own earlier pages left is not dirt.
    """

    def __init__(self, geometry: Geometry, modes: Mode | Mapping[Role, Mode] = "zero") -> None:
        """One mode for all roles, or by role; roles that are not named are zeroed.

        ValueError for an unknown mode or too many members.
        """
        chosen: dict[Role, Mode] = {"full": "zero", "swa": "zero", "state": "zero"}
        chosen.update(dict.fromkeys(chosen, modes) if isinstance(modes, str) else modes)
        if wrong := [mode for mode in chosen.values() if mode not in ("zero", "poison", "none")]:
            raise ValueError(f"hygiene mode {wrong[0]!r}; expected 'zero', 'poison' or 'none'")
        if len(geometry.members) >= MIXED:
            raise ValueError(f"{len(geometry.members)} members; expected fewer than {MIXED}, an owner is one byte")
        self._values = [POISON if chosen[member.role] == "poison" else 0 for member in geometry.members]
        sizes = [int(member.page_bytes) for member in geometry.members]
        common, least = int(np.gcd.reduce(sizes)), min(sizes)
        self.granule_bytes = common if least <= FINEST * common else least
        """Size of the part of the arena that has one owner, in bytes."""
        self.owners = bytearray(-(-geometry.total_bytes // self.granule_bytes))
        """The owner of each granule."""
        self._owners_np: npt.NDArray[np.uint8] = np.frombuffer(self.owners, np.uint8)
        self._sizes = sizes
        self._fills = [chosen[member.role] != "none" for member in geometry.members]
        self._widths = [size // self.granule_bytes if size % self.granule_bytes == 0 else 0 for size in sizes]
        self._wholes = [bytes([1 + index]) * width for index, width in enumerate(self._widths)]

    def value(self, index: int) -> int:
        """The byte that dirty pages of a member are to be filled with."""
        return self._values[index]

    def dirty_one(self, index: int, page: int) -> bool:
        """Whether a page that is handed out to a member must be filled first; the member owns it from now on."""
        width, owners = self._widths[index], self.owners
        if width == 1:
            was = owners[page]
            owners[page] = 1 + index
            return was != 1 + index and was != NOBODY and self._fills[index]
        if width == 0:
            return len(self._dirty_astride(index, np.array([page], np.int32))) > 0
        start, mine = page * width, self._wholes[index]
        was_all = owners[start : start + width]
        if was_all == mine:
            return False
        owners[start : start + width] = mine
        return self._fills[index] and was_all.count(1 + index) + was_all.count(NOBODY) != width

    def dirty(self, index: int, pages: Words) -> Words:
        """Those of `pages`, handed out to a member, that must be filled first; the member owns all from now on.

        int32 [pages], no page twice.
        """
        width = self._widths[index]
        if width == 0:
            return self._dirty_astride(index, pages)
        if not len(pages):
            return pages
        by_page = where(pages)
        grid = self._owners_np[: len(self._owners_np) // width * width].reshape(-1, width)
        was = grid[by_page]
        foreign = (was != 1 + index) & (was != NOBODY)
        grid[by_page] = 1 + index
        return self._reported(index, pages, foreign)

    def own(self, index: int, pages: int | Words) -> None:
        """The member has filled these pages itself: moves and writes of whole pages."""
        if isinstance(pages, int):
            self.dirty_one(index, pages)
        else:
            self.dirty(index, pages)

    def _reported(self, index: int, pages: Words, foreign: npt.NDArray[np.bool_]) -> Words:
        """The pages with a foreign granule, where the role is filled at all; `foreign` is [pages, granules]."""
        return pages[foreign.any(axis=1)] if self._fills[index] and foreign.any() else pages[:0]

    def _dirty_astride(self, index: int, pages: Words) -> Words:
        """As `dirty`, for pages whose ends may lie inside a granule."""
        size, granule, owners, mine = self._sizes[index], self.granule_bytes, self._owners_np, np.uint8(1 + index)
        starts = pages.astype(np.int64) * size
        first, last = starts // granule, (starts + size - 1) // granule
        spread = np.minimum(first[:, None] + np.arange(-(-size // granule) + 1), last[:, None])
        was = owners[spread]
        foreign = (was != mine) & (was != NOBODY)
        covered = (spread * granule >= starts[:, None]) & ((spread + 1) * granule <= starts[:, None] + size)
        # Edges first, whole granules last: pages that share an edge granule never share a whole one.
        owners[spread[~covered]] = np.where(foreign[~covered], np.uint8(MIXED), mine)
        owners[spread[covered]] = mine
        return self._reported(index, pages, foreign)
