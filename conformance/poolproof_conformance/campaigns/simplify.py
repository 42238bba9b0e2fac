"""Smaller histories that shrink.py has no single step to: they change the arena and the operations together.

Without them one cause would end in several kinds: with pages of two tokens and of one, with a setup that happens to
leave FULL pages without SWA and with a plain one.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from poolproof_conformance.generator import History
from poolproof_conformance.shrink import Fails, Shrinker, resized
from poolproof_spec import operation as op
from poolproof_spec.geometry import Geometry
from poolproof_spec.units import TokenCount, ceil_div


def smallest(history: History, fails: Fails, runs: int) -> History:
    """The smallest history found that still fails, shrunk and simplified in turn; at most `runs` runs each time."""
    history = Shrinker(fails, runs).shrink(history)
    while (simpler := _first_failing(history, fails, runs)) is not None:
        history = Shrinker(fails, runs).shrink(simpler)
    return history


def _first_failing(history: History, fails: Fails, runs: int) -> History | None:
    shrinker = Shrinker(fails, runs)
    return next((failing for other in simplifications(history) if (failing := shrinker.tried(other))), None)


def simplifications(history: History) -> Iterator[History]:
    """Pages of one token with the operations scaled to them; plainer setups; a setup less, and a smaller arena."""
    geometry, operations = history
    if geometry.page_tokens > 1:
        scaled = tuple(_in_pages(operation, geometry) for operation in operations)
        for smaller in _with_one_token(geometry):
            yield smaller, scaled
    for index, operation in enumerate(operations[:-1]):
        for plainer in _plainer(operation):
            yield geometry, (*operations[:index], plainer, *operations[index + 1 :])
    for index in range(len(operations) - 1):
        for smaller in resized(geometry, {member.role: member.page_bytes for member in geometry.members}):
            yield smaller, (*operations[:index], *operations[index + 1 :])


def _with_one_token(geometry: Geometry) -> Iterator[Geometry]:
    """The same pages, of one token: first the bytes as they are, then page sizes divided as well."""
    yield replace(geometry, page_tokens=1)
    tokens = geometry.page_tokens
    sizes: dict[str, int] = {m.role: m.page_bytes // (1 if m.role == "state" else tokens) for m in geometry.members}
    yield from resized(geometry, sizes, page_tokens=1)


def _in_pages(operation: op.AnyOperation, geometry: Geometry) -> op.AnyOperation:
    """The operation on pages of one token that takes as many pages."""
    t = geometry.page_tokens

    def pages(tokens: int) -> TokenCount:
        return TokenCount(ceil_div(tokens, t))

    match operation:
        case op.Insert():
            return replace(operation, state=geometry.has_role("state"))
        case op.Alloc(tokens=tokens):
            return replace(operation, tokens=pages(tokens))
        case op.Extend(prefix_lens=prefixes, seq_lens=lengths):
            scaled = (tuple(map(pages, prefixes)), tuple(map(pages, lengths)))
            return replace(operation, prefix_lens=scaled[0], seq_lens=scaled[1])
        case op.ExtendTail(prefix_len=prefix, seq_len=length, tail=tail):
            scaled_tail = min(pages(tail), TokenCount(pages(length) - pages(prefix)))
            return replace(operation, prefix_len=pages(prefix), seq_len=pages(length), tail=scaled_tail)
        case op.Decode(seq_lens=lengths):
            new = tuple(length for length in lengths if (length - 1) % t == 0)
            return replace(operation, seq_lens=tuple(map(pages, new or lengths)))
    return operation


def _plainer(operation: op.AnyOperation) -> Iterator[op.AnyOperation]:
    """Other ways to hold token pages, the plainest first."""
    match operation:
        case op.ExtendTail(name=name, prefix_len=prefix, seq_len=length) if length > prefix:
            yield op.Alloc(name=name, tokens=TokenCount(length - prefix))
        case op.Decode(name=name, seq_lens=lengths):
            yield op.Alloc(name=name, tokens=TokenCount(len(lengths)))
