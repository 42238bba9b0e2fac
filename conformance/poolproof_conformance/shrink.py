"""Make a failing history small: fewer operations, then smaller ones, then a smaller arena, while it still fails.

Hypothesis finds the failures; it is not asked to shrink them, because that would draw the whole run again on a target
that may be slow, and cannot go below the length that the generator needs to build up pressure.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from poolproof_conformance.generator import KV_BYTES, STATE_BYTES, History
from poolproof_spec import operation as op
from poolproof_spec.geometry import Geometry, derive, geometry_problems

Item = TypeVar("Item")
Fails = Callable[[History], int | None]
"""Index of the operation at which a history fails in the way that is looked for; None where it does not."""

RUNS = 600
"""Most histories that one shrink runs."""


class Shrinker:
    """Greedy descent: the first smaller history that still fails is taken, until none is left or the runs are."""

    def __init__(self, fails: Fails, runs: int = RUNS) -> None:
        self._fails, self._runs_left = fails, runs
        self._tried: set[bytes] = set()

    def shrink(self, history: History) -> History:
        """The smallest that was found; the history itself where it does not fail (again)."""
        failing = self.tried(history)
        if failing is None:
            return history
        smallest = failing
        while self._runs_left > 0 and (smaller := self._first_smaller(smallest)) is not None:
            smallest = smaller
        return smallest

    def _first_smaller(self, history: History) -> History | None:
        for candidate in candidates(history):
            failing = self.tried(candidate)
            if failing is not None:
                return failing
        return None

    def tried(self, history: History) -> History | None:
        """The history up to its failing operation; None where it holds, was tried before, or the runs are used up."""
        image = msgspec.json.encode(history)
        if image in self._tried or self._runs_left <= 0:
            return None
        self._tried.add(image)
        self._runs_left -= 1
        index = self._fails(history)
        return None if index is None else (history[0], history[1][: index + 1])


def candidates(history: History) -> Iterator[History]:
    """Smaller histories, the boldest first."""
    geometry, operations = history
    yield from ((geometry, fewer) for fewer in without_chunks(operations))
    for index, operation in enumerate(operations):
        for simpler in simpler_operations(operation):
            yield geometry, (*operations[:index], simpler, *operations[index + 1 :])
    yield from ((smaller, operations) for smaller in smaller_geometries(geometry))
    for index, (first, second) in enumerate(pairwise(operations)):
        if first != second and isinstance(first, op.DemandOperation) and isinstance(second, op.Insert):
            yield geometry, (*operations[:index], second, first, *operations[index + 2 :])


def without_chunks(operations: Sequence[op.AnyOperation]) -> Iterator[tuple[op.AnyOperation, ...]]:
    """The history less a run of operations: half of it, a quarter, ... down to single ones."""
    size = len(operations) // 2
    while size:
        for start in range(0, len(operations), size):
            yield (*operations[:start], *operations[start + size :])
        size //= 2


def simpler_operations(operation: op.AnyOperation) -> Iterator[op.AnyOperation]:
    """Variants that ask for less, or say it more simply."""
    if isinstance(operation, op.DemandOperation) and not operation.may_wait:
        yield replace(operation, may_wait=True)
    match operation:
        case op.Alloc(tokens=tokens):
            yield from (replace(operation, tokens=fewer) for fewer in smaller_numbers(tokens, 1))
        case op.AllocStates(count=count):
            yield from (replace(operation, count=fewer) for fewer in smaller_numbers(count, 1))
        case op.Insert(key=key) | op.Match(key=key) | op.LockPrefix(key=key):
            yield from (replace(operation, key=key[:length]) for length in range(1, len(key)))
            yield from (replace(operation, key=tuple(1 for _ in key)),) if set(key) != {1} else ()
        case op.Decode(seq_lens=lengths):
            yield from (replace(operation, seq_lens=fewer) for fewer in without_one(lengths))
        case op.Extend(prefix_lens=prefixes, seq_lens=lengths):
            for fewer in without_one(tuple(zip(prefixes, lengths, strict=True))):
                yield replace(operation, prefix_lens=tuple(p for p, _ in fewer), seq_lens=tuple(s for _, s in fewer))
            yield op.Alloc(name=operation.name, tokens=sum(lengths) - sum(prefixes))  # type: ignore[arg-type]
        case op.ExtendTail(prefix_len=prefix, seq_len=length, tail=tail):
            yield from (replace(operation, seq_len=fewer) for fewer in smaller_numbers(length, prefix))
            yield from (replace(operation, tail=fewer) for fewer in smaller_numbers(tail, 0))
        case op.Launch(writes=writes) if writes:
            yield replace(operation, writes=())


def smaller_numbers(number: int, least: int) -> Iterator[int]:
    """From the least on, the half and the one below."""
    yield from dict.fromkeys(n for n in (least, number // 2, number - 1) if least <= n < number)


def without_one(items: tuple[Item, ...]) -> Iterator[tuple[Item, ...]]:
    """The tuple less one item, never empty."""
    if len(items) > 1:
        yield from (items[:index] + items[index + 1 :] for index in range(len(items)))


def smaller_geometries(geometry: Geometry) -> Iterator[Geometry]:
    """Arenas with smaller pages, a shorter window, one token a page, or fewer bytes."""
    sizes: dict[str, int] = {member.role: member.page_bytes for member in geometry.members}
    tokens = geometry.page_tokens
    one_token: dict[str, int] = {role: size if role == "state" else size // tokens for role, size in sizes.items()}
    if tokens > 1:
        yield from resized(geometry, one_token, page_tokens=1)
    for role in one_token:
        least = STATE_BYTES[0] if role == "state" else KV_BYTES * tokens
        if sizes[role] > least:
            yield from resized(geometry, {**sizes, role: least})
    if geometry.window_tokens > 1:
        yield replace(geometry, window_tokens=1)
    yield from resized(geometry, sizes)


def resized(geometry: Geometry, sizes: dict[str, int], page_tokens: int | None = None) -> Iterator[Geometry]:
    """Arenas of n token pages and k states with these page sizes, no larger than this one."""
    pair = sum(size for role, size in sizes.items() if role != "state")
    state = sizes.get("state", 0)
    largest = geometry.total_bytes if page_tokens is None else geometry.total_bytes // geometry.page_tokens
    totals = {pair * n + state * k for n in range(1, 13) for k in (range(1, 9) if state else (0,))}
    same_sizes = all(sizes[member.role] == member.page_bytes for member in geometry.members)
    for total in sorted(totals):
        if total < largest or (total <= largest and not same_sizes):
            smaller = derive(
                total,
                [(m.name, m.role, sizes[m.role], m.kind) for m in geometry.members],
                page_tokens=page_tokens or geometry.page_tokens,
                window_tokens=geometry.window_tokens,
            )
            if not geometry_problems(smaller):
                yield smaller
