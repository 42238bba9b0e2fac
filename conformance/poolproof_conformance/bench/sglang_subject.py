"""Released SGLang as a measured subject: its own calls without the recorder and observer of the adapter.

As its scheduler calls it: `allocator.alloc` and `allocator.free`; under pressure `alloc_token_slots`, which evicts from
the tree and then allocates; cached entries through `cache.insert`. A float is moved by `make_room`, which its ladder
for shortfalls calls: the copies of the payload are in it. It hands out zeroed pages, and that is in its times too.
"""

import array
import logging
from pathlib import Path
from typing import Any

from poolproof_conformance.bench.subject import (
    PAGE_BYTES,
    CannotError,
    Subject,
    float_geometry,
    hole_indices,
    pair_geometry,
)
from poolproof_conformance.bench.works import MOVED_SHARE
from poolproof_conformance.sglang import factory
from poolproof_conformance.sglang.engine import Core, Engine
from poolproof_spec.geometry import Geometry

LARGEST_FLOAT_PAGES = 100_000
"""A move takes time by the square of the float's pages: seventy seconds at a million."""
LARGEST_EAGER_ENTRIES = 100_000


class SglangSubject(Subject):
    """One release with one tree core, in one compaction mode."""

    def __init__(self, root: Path, core: Core, *, lazy: bool) -> None:
        import torch

        logging.getLogger("sglang").setLevel(logging.CRITICAL)
        torch.set_num_threads(1)
        self.engine = Engine(root, core)
        self.lazy = lazy
        self._key = 0
        self.build(8)

    def versions(self) -> dict[str, str]:
        """Release, the tree core that runs, the mode."""
        return {
            "release": f"sglang=={self.engine.version}",
            "tree_core": type(self.cache.tree_core).__name__,
            "mode": "lazy" if self.lazy else "eager",
        }

    def build(self, pages: int) -> None:
        """FULL and SWA."""
        self._build(pair_geometry(pages))

    def _build(self, geometry: Geometry) -> None:
        built = factory.build(self.engine, geometry, lazy=self.lazy)
        self.allocator, self.cache = built.allocator, built.cache
        self.take = built.allocator.alloc  # type: ignore[method-assign]
        self.give = built.allocator.free  # type: ignore[method-assign]

    def fill(self, entries: int) -> None:
        """One-token prefixes, each with its own first token."""
        ids = self.allocator.alloc(entries)
        insert, parameters, radix_key = self.cache.insert, self.engine.base.InsertParams, self.engine.radix_key
        for index in range(entries):
            self._key += 1
            key = radix_key(array.array("q", (self._key,)), None)
            insert(parameters(key=key, value=ids[index : index + 1], mamba_value=None, prev_prefix_len=0))

    def request(self, pages: int, keep: bool = True) -> Any:
        """A number of tokens; the tree is told of nothing but `fill`."""
        return pages

    def take(self, request: Any) -> Any:
        """Replaced by the allocator's own method when a pool is built."""
        raise NotImplementedError

    def give(self, taken: Any) -> None:
        """Replaced by the allocator's own method when a pool is built."""
        raise NotImplementedError

    def reserve(self, request: Any) -> Any:
        """Evict for it, then allocate; the engine raises where there is no memory."""
        try:
            return self.engine.allocation.alloc_token_slots(self.cache, request)
        except RuntimeError as error:
            if "out of memory" not in str(error).lower():
                raise
            return None

    def restore(self, entries: int) -> None:
        """New entries for those that were evicted."""
        self.fill(entries)

    def cached_entries(self) -> int:
        """Tokens in the tree, one for each entry."""
        return int(self.cache.full_evictable_size())

    def settle(self) -> None:
        """Compact while nothing is in flight, as its scheduler does."""
        self.allocator.flush_opportunistic()

    def build_float(self, pages: int) -> None:
        """States, SWA and FULL; the float fills its region, and its holes are spread over it."""
        import torch

        self._build(float_geometry(pages))
        ids = self.allocator.alloc(pages)
        if ids is None:
            raise CannotError(f"an arena of {pages} token pairs has room for {int(self.allocator.available_size())}")
        self.allocator.free_swa(ids[torch.from_numpy(hole_indices(pages))])
        self._float_pages = pages
        self._lay = self.allocator.swa_attn_allocator.virtual_to_physical.clone()

    def move_float(self) -> None:
        """Room below the float for one in MOVED_SHARE of its pages."""
        float_allocator = self.allocator.swa_attn_allocator
        gap, _ = float_allocator._gap_pages()
        float_allocator.make_room(side="low", min_bytes=(gap + self._float_pages // MOVED_SHARE) * PAGE_BYTES)

    def moved_pages(self) -> int:
        """Entries of its table that changed."""
        return int((self.allocator.swa_attn_allocator.virtual_to_physical != self._lay).sum())

    def check_size(self, work: str, size: int) -> None:
        """Floats of a million pages, and eager compaction of a million entries, take minutes."""
        if work == "float-move" and size > LARGEST_FLOAT_PAGES:
            raise CannotError("not run: its time grows with the square of the pages")
        if not self.lazy and work != "float-move" and size > LARGEST_EAGER_ENTRIES:
            raise CannotError(f"not run: eager compaction is measured up to {LARGEST_EAGER_ENTRIES}")
