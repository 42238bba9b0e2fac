"""The naive twins of the kernels: a few lines of torch each, on any device; see `DeviceWork` for what they owe."""

import torch


def copy_pages(arena: torch.Tensor, page_bytes: int, sources: torch.Tensor, destinations: torch.Tensor) -> None:
    """Copy pages of one member; `arena` is uint8 [bytes], page numbers are int32 or int64 [pages]."""
    pages = as_pages(arena, page_bytes)
    pages[destinations.long()] = pages[sources.long()]


def fill_pages(arena: torch.Tensor, page_bytes: int, pages: torch.Tensor, value: int) -> None:
    """Set every byte of pages of one member."""
    as_pages(arena, page_bytes).index_fill_(0, pages.long(), value)


def scatter(table: torch.Tensor, positions: torch.Tensor, values: torch.Tensor) -> None:
    """Change entries of an int32 table."""
    table[positions.long()] = values


def translate(page_of: torch.Tensor, token_ids: torch.Tensor, page_tokens: int, out: torch.Tensor) -> None:
    """Token slots of virtual token ids, which must be 0 or more; `page_of` is int32, ids and slots int32 or int64."""
    ids = token_ids.long()
    out.copy_(page_of[ids // page_tokens].long() * page_tokens + ids % page_tokens)


def as_pages(arena: torch.Tensor, page_bytes: int) -> torch.Tensor:
    """The whole pages of a uint8 arena as a view [pages, page_bytes]."""
    return arena[: arena.numel() // page_bytes * page_bytes].view(-1, page_bytes)
