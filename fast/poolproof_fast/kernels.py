"""The four device works as Triton kernels, one launch each; the naive twins in `naive.py` say what they do.

Where there is no GPU, importing this module switches Triton's interpreter on, so that the same kernels run (slowly)
on CPU tensors.

Chosen by reason for an H200, H100 or A100, and not measured there: a program handles TILE_BYTES = 8 KiB with 4 warps,
64 bytes a thread in 16-byte loads, so that four loads are under way in each thread and some 60 KiB in each
multiprocessor at 8 programs, about what hides the latency of HBM; translation and scatter take 1024 entries with 4
warps, 8 entries a thread. Page sizes are compile-time constants: one compilation for each member, and only so does
the compiler know that rows of a page grid are aligned and may be loaded 16 bytes at a time.
"""

import math
import os
import sys

import torch


def _switch_interpreter_on() -> None:
    """Unless the environment says otherwise. RuntimeError if Triton was imported as a compiler: it decides then."""
    if "TRITON_INTERPRET" in os.environ:
        return
    if "triton" in sys.modules:
        raise RuntimeError(
            "no CUDA device, and triton was imported without its interpreter; "
            "expected TRITON_INTERPRET=1 in the environment, or poolproof_fast.kernels imported before triton"
        )
    os.environ["TRITON_INTERPRET"] = "1"


if not torch.cuda.is_available():
    _switch_interpreter_on()

import triton  # noqa: E402
import triton.language as tl  # noqa: E402

TILE_BYTES = 8192
"""What one program copies or fills: one block of a large page, or several small pages."""

BLOCK_ENTRIES = 1024
"""What one program scatters or translates, in entries."""

WARPS = 4
"""Warps of each program."""

WORD_TYPES = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.uint8}
"""The words that pages are copied in, widest first, by their size in bytes."""


def _copy_pages(
    words: tl.tensor,
    sources: tl.tensor,
    destinations: tl.tensor,
    page_count: tl.tensor,
    PAGE_WORDS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
) -> None:
    blocks: tl.constexpr = (PAGE_WORDS + COLUMNS - 1) // COLUMNS
    rows = tl.program_id(0) // blocks * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(0) % blocks * COLUMNS + tl.arange(0, COLUMNS)
    source = tl.load(sources + rows, mask=rows < page_count, other=0).to(tl.int64)
    destination = tl.load(destinations + rows, mask=rows < page_count, other=0).to(tl.int64)
    mask = (rows < page_count)[:, None] & (columns < PAGE_WORDS)[None, :]
    content = tl.load(words + source[:, None] * PAGE_WORDS + columns[None, :], mask=mask)
    tl.store(words + destination[:, None] * PAGE_WORDS + columns[None, :], content, mask=mask)


def _fill_pages(
    words: tl.tensor,
    pages: tl.tensor,
    page_count: tl.tensor,
    WORD: tl.constexpr,
    PAGE_WORDS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
) -> None:
    blocks: tl.constexpr = (PAGE_WORDS + COLUMNS - 1) // COLUMNS
    rows = tl.program_id(0) // blocks * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(0) % blocks * COLUMNS + tl.arange(0, COLUMNS)
    page = tl.load(pages + rows, mask=rows < page_count, other=0).to(tl.int64)
    mask = (rows < page_count)[:, None] & (columns < PAGE_WORDS)[None, :]
    content = tl.full((ROWS, COLUMNS), WORD, words.dtype.element_ty)
    tl.store(words + page[:, None] * PAGE_WORDS + columns[None, :], content, mask=mask)


def _scatter(table: tl.tensor, positions: tl.tensor, values: tl.tensor, count: tl.tensor, BLOCK: tl.constexpr) -> None:
    entries = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    position = tl.load(positions + entries, mask=entries < count, other=0)
    value = tl.load(values + entries, mask=entries < count, other=0)
    tl.store(table + position, value, mask=entries < count)


def _translate(
    page_of: tl.tensor,
    token_ids: tl.tensor,
    out: tl.tensor,
    count: tl.tensor,
    PAGE_TOKENS: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    start = tl.program_id(0) * BLOCK
    entries = start + tl.arange(0, BLOCK)
    if start + BLOCK <= count:
        # No mask: the compiler may load and store 16 bytes at a time, whatever the count.
        identifier = tl.load(token_ids + entries)
        page = tl.load(page_of + identifier // PAGE_TOKENS)
        tl.store(out + entries, page.to(out.dtype.element_ty) * PAGE_TOKENS + identifier % PAGE_TOKENS)
    else:
        identifier = tl.load(token_ids + entries, mask=entries < count, other=0)
        page = tl.load(page_of + identifier // PAGE_TOKENS, mask=entries < count, other=0)
        slot = page.to(out.dtype.element_ty) * PAGE_TOKENS + identifier % PAGE_TOKENS
        tl.store(out + entries, slot, mask=entries < count)


# Not as decorators: Triton has no types, and an untyped decorator would take the functions' away. Counts and the places
# of page numbers differ from call to call: a kernel that was specialised on them would be compiled in mid-service.
_copy_pages_kernel = triton.jit(
    _copy_pages,
    do_not_specialize=["page_count"],
    do_not_specialize_on_alignment=["sources", "destinations"],
)
_fill_pages_kernel = triton.jit(_fill_pages, do_not_specialize=["page_count"], do_not_specialize_on_alignment=["pages"])
_scatter_kernel = triton.jit(
    _scatter, do_not_specialize=["count"], do_not_specialize_on_alignment=["positions", "values"]
)
_translate_kernel = triton.jit(_translate, do_not_specialize=["count"])


def copy_pages(arena: torch.Tensor, page_bytes: int, sources: torch.Tensor, destinations: torch.Tensor) -> None:
    """Copy pages of one member straight from place to place; `arena` is uint8 [bytes], pages are int32 or int64."""
    if not (count := sources.numel()):
        return
    words, page_words, rows, columns = _tiles(arena, page_bytes)
    grid = (_ceil(count, rows) * _ceil(page_words, columns),)
    _copy_pages_kernel[grid](
        words, sources, destinations, count, PAGE_WORDS=page_words, ROWS=rows, COLUMNS=columns, num_warps=WARPS
    )


def fill_pages(arena: torch.Tensor, page_bytes: int, pages: torch.Tensor, value: int) -> None:
    """Set every byte of pages of one member to `value`, in [0, 256)."""
    if not (count := pages.numel()):
        return
    words, page_words, rows, columns = _tiles(arena, page_bytes)
    word = int.from_bytes(bytes([value]) * words.element_size(), "little", signed=words.dtype.is_signed)
    grid = (_ceil(count, rows) * _ceil(page_words, columns),)
    _fill_pages_kernel[grid](
        words, pages, count, WORD=word, PAGE_WORDS=page_words, ROWS=rows, COLUMNS=columns, num_warps=WARPS
    )


def scatter(table: torch.Tensor, positions: torch.Tensor, values: torch.Tensor) -> None:
    """Change entries of an int32 table; positions are int32 or int64, a repeated one has the same value each time."""
    if not (count := positions.numel()):
        return
    grid = (_ceil(count, BLOCK_ENTRIES),)
    _scatter_kernel[grid](table, positions, values, count, BLOCK=BLOCK_ENTRIES, num_warps=WARPS)


def translate(page_of: torch.Tensor, token_ids: torch.Tensor, page_tokens: int, out: torch.Tensor) -> None:
    """Token slots of virtual token ids, which must be 0 or more; `page_of` is int32, ids and slots int32 or int64.

    All contiguous. Lanes of one page read the same entry of `page_of`, so that a warp fetches it once.
    """
    if not (count := token_ids.numel()):
        return
    grid = (_ceil(count, BLOCK_ENTRIES),)
    _translate_kernel[grid](
        page_of, token_ids, out, count, PAGE_TOKENS=page_tokens, BLOCK=BLOCK_ENTRIES, num_warps=WARPS
    )


def _tiles(arena: torch.Tensor, page_bytes: int) -> tuple[torch.Tensor, int, int, int]:
    """(the arena in the widest words that pages and its address allow, words of a page, pages and words of a tile)."""
    width = math.gcd(page_bytes, arena.data_ptr(), 8)
    words = arena[: arena.numel() // width * width].view(WORD_TYPES[width])
    page_words = page_bytes // width
    tile_words = TILE_BYTES // width
    columns = min(1 << (page_words - 1).bit_length(), tile_words)
    return words, page_words, tile_words // columns, columns


def _ceil(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)
