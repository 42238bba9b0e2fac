"""What is measured: each work with the sizes it is measured at, and how many operations make one run.

A page is the unit that a subject hands out: one token in each of FULL and SWA for `fast` and SGLang, one block of 16
tokens in each of a full-attention and a sliding-window group for vLLM. An entry is a cached prefix of one page.
"""

from dataclasses import dataclass

ALLOC_PAGES = 100_000
"""Pages of each role in the pool that `alloc-free` is measured in."""
ROOM_PAGES = 64
"""Pages that are free beside the cached entries in `reserve-room`."""
HOLE_SHARE = 10
"""One in so many pages of the float is a hole before it moves."""
MOVED_SHARE = 20
"""One in so many pages of the float has to move: 5 %."""
VICTIM_ENTRIES = 100_000
"""Cached entries in `evict-victims`."""
TABLE_SIZES = (1_000, 10_000, 100_000, 1_000_000)
"""Sizes of the growth tables."""


@dataclass(frozen=True)
class Work:
    """One kind of work, measured at several sizes."""

    name: str
    title: str
    """What one operation is, in a line."""
    axis: str
    """What a size counts."""
    sizes: tuple[int, ...]
    quick_sizes: tuple[int, ...]
    """Sizes with --quick."""
    operations: int
    """Operations in one run at the smallest size; larger ones may take fewer."""

    def operations_at(self, size: int) -> int:
        """Operations in one run: fewer where one is large, at least one."""
        if self.name == "alloc-free":
            return max(4, self.operations // max(1, size // 16))
        if self.name == "evict-victims":
            return max(8 if size <= 100 else 1, self.operations // size)
        return self.operations

    def warming_at(self, size: int) -> int:
        """Operations before each run that are not timed: other subjects ran meanwhile, and caches are cold."""
        return self.operations_at(size) // 4


WORKS: tuple[Work, ...] = (
    Work("alloc-free", "alloc then free, no pressure", "pages a call", (1, 256, 4096), (1, 4096), 400),
    Work("alloc-free-pages", "alloc then free of 1 page", "pages in the pool", TABLE_SIZES, (1_000, 100_000), 400),
    Work("reserve-room", "reserve 1 page, which is there", "cached entries", TABLE_SIZES, TABLE_SIZES[:3], ROOM_PAGES),
    Work("evict-1", "reserve 1 page, evicting 1 entry", "cached entries", TABLE_SIZES, TABLE_SIZES[:3], 30),
    Work("evict-1000", "reserve 1000 pages, evicting 1000", "cached entries", TABLE_SIZES, TABLE_SIZES[1:3], 1),
    Work("evict-victims", "reserve, evicting of 100k entries", "victims", (1, 10, 100, 1_000, 10_000), (1, 100), 30),
    Work("refuse", "refuse a demand that cannot be met", "cached entries", TABLE_SIZES, TABLE_SIZES[1:3], 200),
    Work("float-move", "move a float by 5 % of its pages", "pages of the float", TABLE_SIZES, TABLE_SIZES[:3], 1),
    Work("memory", "memory of a cached entry", "cached entries", (100_000,), (100_000,), 1),
)
"""All works, in the order of the tables."""


def work_named(name: str) -> Work:
    """The work of that name; KeyError names the known ones."""
    for work in WORKS:
        if work.name == name:
            return work
    raise KeyError(f"no work {name!r}; there are {', '.join(work.name for work in WORKS)}")


def state_of(work: str, size: int) -> tuple[str, int]:
    """The state that a work starts from: cells with the same one are measured one after the other."""
    if work == "alloc-free":
        return "empty", ALLOC_PAGES
    if work == "alloc-free-pages":
        return "empty", size
    if work == "float-move":
        return "float", size
    if work == "memory":
        return "memory", size
    return "filled", VICTIM_ENTRIES if work == "evict-victims" else size
