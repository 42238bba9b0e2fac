"""Released vLLM as a measured subject: its KVCacheManager, called as its scheduler calls it.

`allocate_slots` for a new request and `free` when it ends. A page is a block of 16 tokens in each of a full-attention
and a sliding-window group, which share one pool of blocks. With prefix caching on, `allocate_slots` also enters the
request's full blocks in the cache, and a freed block stays cached until it is handed out again: that is how it caches.
`cached=False` measures the same requests without block hashes, so without that part. Making the request, and hashing
its tokens, are not timed. It has no float and moves no pages.
"""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from poolproof_conformance.bench.subject import WINDOW_TOKENS, CannotError, Subject
from poolproof_conformance.vllm.engine import Engine

BLOCK_TOKENS = 16
GROUPS = 2


class _Pooling:
    """All that a request asks of its parameters on this path: reading the prefix cache is allowed."""

    skip_reading_prefix_cache: ClassVar[bool] = False


class Asked(NamedTuple):
    """A request with the tokens that are to be allocated for it."""

    request: Any
    tokens: int


class VllmSubject(Subject):
    """One release."""

    def __init__(self, root: Path, *, cached: bool) -> None:
        self.engine = Engine(root)
        self.cached = cached
        self._hasher = self.engine.hasher(BLOCK_TOKENS)
        self._numbers: Iterator[int] = count(1)
        self.build(8)

    def versions(self) -> dict[str, str]:
        """Release and what coordinates its groups."""
        return {
            "release": f"vllm=={self.engine.version}",
            "coordinator": type(self.manager.coordinator).__name__,
            "requests": "cached" if self.cached else "not cached",
        }

    def build(self, pages: int) -> None:
        """One block for each page and group, and the null block."""
        self.manager = self.engine.manager(GROUPS * pages + 1, BLOCK_TOKENS, WINDOW_TOKENS)

    def fill(self, entries: int) -> None:
        """One-block requests that were computed and ended."""
        for _ in range(entries):
            asked = self._asked(1, hashed=True)
            self.give(self.take(asked))

    def request(self, pages: int, keep: bool = True) -> Any:
        """A request of so many full blocks, with tokens that nobody had."""
        return self._asked(pages, hashed=self.cached and keep)

    def _asked(self, pages: int, *, hashed: bool) -> Asked:
        number, tokens = next(self._numbers), pages * BLOCK_TOKENS
        hasher = self._hasher if hashed else None
        request = self.engine.request_class(str(number), [number] * tokens, None, _Pooling(), block_hasher=hasher)
        return Asked(request, tokens)

    def take(self, request: Asked) -> Any:
        """Slots for all its tokens at once, as in a prefill."""
        if self.manager.allocate_slots(request.request, request.tokens) is None:
            return None
        return request

    def give(self, taken: Asked) -> None:
        """The request ended."""
        self.manager.free(taken.request)

    def reserve(self, request: Any) -> Any:
        """The same call: cached blocks that nobody holds are handed out, and lose their entry, in their turn."""
        return self.take(request)

    def restore(self, entries: int) -> None:
        """Where requests are cached the freed blocks are entries by themselves."""
        if not self.cached:
            self.fill(entries)

    def cached_entries(self) -> int:
        """Blocks in the cache's table of hashes, over the groups."""
        return len(self.manager.block_pool.cached_block_hash_to_block) // GROUPS

    def build_float(self, pages: int) -> None:
        """There is none."""
        raise CannotError("vllm has no float and moves no pages")

    def move_float(self) -> None:
        """There is none."""

    def moved_pages(self) -> int:
        """There are none."""
        return 0
