"""The fast pool as a measured subject, called as an engine would call it."""

from array import array
from importlib.metadata import version
from typing import Any

import numpy as np

from poolproof_conformance.bench.subject import (
    PAGE_BYTES,
    STATE_BYTES,
    CannotError,
    Subject,
    float_geometry,
    hole_indices,
    pair_geometry,
)
from poolproof_conformance.bench.works import HOLE_SHARE, MOVED_SHARE
from poolproof_fast.pool import FastPool
from poolproof_spec.geometry import Geometry
from poolproof_spec.units import ceil_div


class FastSubject(Subject):
    """`tables_apart`: device tables are memory of their own, brought up to date after every operation."""

    def __init__(self, *, tables_apart: bool) -> None:
        import torch

        torch.set_num_threads(1)
        self.tables_apart = tables_apart
        self._key = 0
        self.build(8)

    def versions(self) -> dict[str, str]:
        """Release, and where its tables are."""
        return {"release": f"poolproof {version('poolproof')}", "tables": "apart" if self.tables_apart else "shared"}

    def build(self, pages: int) -> None:
        """FULL and SWA."""
        self._build(pair_geometry(pages))

    def _build(self, geometry: Geometry) -> None:
        self.pool = FastPool(geometry, tables_apart=self.tables_apart)
        free = self.pool.free
        self.take = self.pool.alloc  # type: ignore[method-assign,assignment]
        self.give = lambda taken: free(taken.ids)  # type: ignore[method-assign]

    def fill(self, entries: int) -> None:
        """One-token prefixes, each with its own first token."""
        insert = self.pool.insert
        with self.pool.step():
            for key in range(self._key + 1, self._key + entries + 1):
                if not insert(array("q", (key,))):
                    raise CannotError(f"the arena has no room for {entries} entries")
        self._key += entries

    def request(self, pages: int, keep: bool = True) -> Any:
        """A number of tokens; the tree is told of nothing but `fill`."""
        return pages

    def take(self, request: Any) -> Any:
        """Replaced by the pool's own method when a pool is built."""
        raise NotImplementedError

    def give(self, taken: Any) -> None:
        """Replaced by the pool's own method when a pool is built."""
        raise NotImplementedError

    def reserve(self, request: Any) -> Any:
        """The same call: it evicts what it must. The reason of a refusal is not asked for."""
        return self.pool.alloc(request) or None

    def restore(self, entries: int) -> None:
        """New entries for those that were evicted."""
        self.fill(entries)

    def cached_entries(self) -> int:
        """Nodes of the tree, one for each entry."""
        return self.pool.cache.entry_count

    def build_float(self, pages: int) -> None:
        """STATE, SWA and FULL; the float fills its region, and its holes are spread over it."""
        self._build(float_geometry(pages))
        grant = self.pool.alloc(pages)
        if not grant:
            raise CannotError(f"an arena of {pages} token pairs has no room for them: {grant.reason}")
        self.pool.free_window(grant.ids[hole_indices(pages)])
        self._float_pages = pages
        self._lay = self._pages_of_float()

    def move_float(self) -> None:
        """States below it, in as many bytes as one in MOVED_SHARE of its pages has: what lies there has to move."""
        live_bytes = self._float_pages * PAGE_BYTES // MOVED_SHARE
        self._states = self.pool.alloc_states(ceil_div(live_bytes * HOLE_SHARE // (HOLE_SHARE - 1), STATE_BYTES))

    def moved_pages(self) -> int:
        """Entries of its table that changed."""
        return int((self._pages_of_float() != self._lay).sum()) if self._states else 0

    def _pages_of_float(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        """The page of each token id in the float; 0 where it has none."""
        member = self.pool.store.members[self.pool.geometry.index_of("SWA")]
        return member.page_of_np.copy()
