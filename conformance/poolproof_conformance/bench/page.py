"""docs/performance.md from a file of results: every figure in it is in that file."""

from collections.abc import Iterator

from poolproof_conformance.bench.results import Results
from poolproof_conformance.bench.table import (
    MET_WORDS,
    bound_words,
    cell_words,
    gpu_words,
    measured_words,
    notes,
)
from poolproof_conformance.bench.works import work_named

PLOT_NAME = "performance-growth.svg"
"""The plot that the page shows, beside it."""

OPENING = """# Performance

Written by `poolproof bench --markdown`, figures from [performance.json](performance.json); do not edit.

`poolproof bench` measures the fast pool and released engines side by side: each in a process of its own, one at a
time while the others idle, interleaved run by run (A B C A B C ...). A figure is the median over the runs, with the
least and the most, of CPU time (user and system) an operation; garbage collection is off while the clock runs, and one
thread each is all there is; memory that a process frees stays with it, so that no subject pays for page faults of its
temporary tensors. Levels differ from machine to machine: compare ratios. Nothing is measured before the fast
pool has passed a run of random histories under the conformance rules.

## What is timed

A page is what a subject hands out: one token in each of FULL and SWA (32 bytes each) for fast and SGLang, a block of
16 tokens in each of a full-attention and a sliding-window group for vLLM. An entry is a cached prefix of one page.

- **fast**: `alloc`, `free`, under pressure `alloc` too; the reason of a refusal is not asked for. On the CPU its device
  tables share memory with the host's; *tables apart* keeps a copy and brings it up to date after every operation.
- **SGLang**: `allocator.alloc` and `free`, under pressure `alloc_token_slots` (evict, then allocate), with lazy
  compaction and the Rust tree core; *eager* is its other mode. It zeroes the pages that it hands out, within its times.
- **vLLM**: `allocate_slots` and `free` of a new request, whose making and hashing is not timed. With prefix caching on
  that enters the request's blocks in the cache, within its times; *nothing cached* has requests without hashes. It
  moves no pages and has no float.
- A float is moved by making room below it for 5 % of its pages, of which 10 % are holes, payload and tables included:
  SGLang through its `make_room` alone, fast through the whole `alloc_states` that needs the room.
- Memory is resident memory from before the pool is built until it is filled, 64 bytes of payload an entry included for
  fast and SGLang.
"""


def page_text(results: Results) -> str:
    """The page."""
    return "\n".join([OPENING, *_bars(results), *_machine(results), *_works(results), *_gpu(results)]).rstrip() + "\n"


def _bars(results: Results) -> Iterator[str]:
    yield "## Bars\n"
    yield "| work | bar | measured | |\n|---|---|---:|---|"
    for bar in results.bars:
        yield f"| {bar.work} | {bar.bar} | {measured_words(bar)} | {MET_WORDS[bar.met]} |"
    yield ""


def _machine(results: Results) -> Iterator[str]:
    yield "## Machine and versions\n"
    for name, value in results.machine.items():
        yield f"- {name}: {value}"
    for subject, versions in results.versions.items():
        yield f"- {subject}: " + ", ".join(f"{name} {value}" for name, value in versions.items())
    yield f"- gate: {results.gate}\n"


def _works(results: Results) -> Iterator[str]:
    subjects = results.subjects()
    yield "## Figures\n\nMedian (least to most), and how many times the time of fast.\n"
    yield f"![Growth curves]({PLOT_NAME})\n"
    for work in dict.fromkeys(row.work for row in results.rows):
        known = work_named(work)
        yield f"### {known.name}: {known.title}\n"
        yield f"| {known.axis} | " + " | ".join(subjects) + " |\n|---:|" + "---:|" * len(subjects)
        for size in (size for name, size in results.cells() if name == work):
            cells = [cell_words(results.row(work, size, subject)) for subject in subjects]
            yield f"| {size:,} | " + " | ".join(cells) + " |"
        yield ""
    for note in notes(results):
        yield f"- {note}"
    yield ""


def _gpu(results: Results) -> Iterator[str]:
    if not results.gpu:
        return
    yield "## GPU\n"
    yield "A rate is held against a plain copy in the same run, a number against the number that is allowed.\n"
    yield "| work | size | measured | bound |\n|---|---|---:|---:|"
    for figure in results.gpu:
        yield f"| {figure.work} | {figure.size} | {gpu_words(figure)} | {bound_words(figure)} |"
