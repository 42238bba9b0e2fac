"""Cases of demand.json: every operation's page counts at the edges of pages, batches and tails."""

from collections.abc import Iterator
from itertools import product

from poolproof_conformance.vectors.answers import page_demand
from poolproof_conformance.vectors.vector_format import DemandCase, DemandGroup, PageDemand
from poolproof_conformance.wording import call_words
from poolproof_reference.joint_pool import JointPool
from poolproof_spec import operation as op
from poolproof_spec.geometry import Geometry, layout
from poolproof_spec.units import TokenCount

NAME = "a"
LARGE_TOKENS = 2**40 + 1
"""A length that no arena holds and that must still be counted exactly."""


def arenas() -> Iterator[Geometry]:
    """Arenas with room for every case but those with LARGE_TOKENS; pages of 1, 2, 4 and 16 tokens."""
    for tokens in (1, 2, 16):
        yield layout("swa2", 64 * 64 * tokens, page_tokens=tokens, window_tokens=2, FULL=32 * tokens, SWA=32 * tokens)
    for tokens in (1, 4):
        yield layout("mamba2", 4096 * tokens, page_tokens=tokens, FULL=64 * tokens, STATE=48)
    for tokens in (1, 2):
        yield layout("tri", 8192, page_tokens=tokens, FULL=32 * tokens, SWA=32 * tokens, STATE=48)


def demand_groups() -> Iterator[DemandGroup]:
    """One group for each arena; the ids are given later."""
    for geometry in arenas():
        yield DemandGroup(geometry=geometry, tests=tuple(_cases(geometry)))


def _cases(geometry: Geometry) -> Iterator[DemandCase]:
    calls = dict.fromkeys((setup, call) for setup, call in _calls(geometry))
    for setup, call in calls:
        pool = JointPool(geometry)
        for operation in setup:
            pool.apply(operation)
        pages = page_demand(pool.observe(), call)
        yield DemandCase(
            tcId=0,
            comment=call_words(call),
            flags=tuple(_flags(geometry, call, pages)),
            setup=setup,
            operation=call,
            result="refused" if pages is None else "counted",
            pages=pages,
        )


def _calls(geometry: Geometry) -> Iterator[tuple[tuple[op.AnyOperation, ...], op.AnyDemand]]:
    t, has_swa = geometry.page_tokens, geometry.has_role("swa")
    for tokens in _around(t, 0, 1, 2, 5):
        yield (), op.Alloc(name=NAME, tokens=TokenCount(tokens))
    yield (), op.Alloc(name=NAME, tokens=TokenCount(LARGE_TOKENS))
    for prefix, more in product(_around(t, 0, 1), (0, 1, t - 1, t, t + 1, 2 * t)):
        yield (), _extend((prefix, prefix + more))
    yield (), _extend((0, 1), (0, 1), (0, 1))
    yield (), _extend((1, t), (t, t + 1), (0, 2 * t))
    yield (), _extend()
    yield (), _extend((LARGE_TOKENS - 1, LARGE_TOKENS))
    for length in _around(t, 1, 2, 3):
        yield (), op.Decode(name=NAME, seq_lens=(TokenCount(length),))
    yield (), _decode(1, t, t + 1)
    yield (), _decode(t + 1, t + 1, 2 * t + 1, 3 * t)
    yield (), _decode()
    yield (), _decode(LARGE_TOKENS)
    for prefix, more, tail in product((0, t - 1, t), (1, t, 2 * t + 1), (0, 1, t, t + 1, 4 * t)):
        yield (), _tail(prefix, prefix + more, tail)
    for count in (0, 1, 3):
        yield (), op.AllocStates(name=NAME, count=count)
    for seq, tail in ((3 * t, 0), (3 * t, t), (3 * t + 1, 2), (2 * t, 2 * t)):
        yield (_tail(0, seq, tail if has_swa else 0),), op.Recover(name=NAME)
    yield from (((), call) for call in _bad_calls(t))


def _bad_calls(t: int) -> Iterator[op.AnyDemand]:
    yield op.Alloc(name=NAME, tokens=TokenCount(-1))
    yield op.Alloc(name=NAME, tokens=TokenCount(2**48 + 1))
    yield op.AllocStates(name=NAME, count=-1)
    yield _decode(0)
    yield _decode(t, -1)
    yield _extend((t, t - 1))
    yield op.Extend(name=NAME, prefix_lens=(TokenCount(0),), seq_lens=())
    yield _tail(t, t - 1, 0)
    yield _tail(0, t, -1)
    yield op.Recover(name="nobody")


def _around(t: int, *pages: int) -> list[int]:
    return sorted({n for page in pages for n in (page * t - 1, page * t, page * t + 1) if n >= 0})


def _extend(*growth: tuple[int, int]) -> op.Extend:
    return op.Extend(
        name=NAME,
        prefix_lens=tuple(TokenCount(prefix) for prefix, _ in growth),
        seq_lens=tuple(TokenCount(seq) for _, seq in growth),
    )


def _decode(*lengths: int) -> op.Decode:
    return op.Decode(name=NAME, seq_lens=tuple(TokenCount(length) for length in lengths))


def _tail(prefix: int, seq: int, tail: int) -> op.ExtendTail:
    return op.ExtendTail(name=NAME, prefix_len=TokenCount(prefix), seq_len=TokenCount(seq), tail=TokenCount(tail))


def _flags(geometry: Geometry, call: op.AnyDemand, pages: PageDemand | None) -> Iterator[str]:
    if pages is None:
        yield "BadCall"
        return
    if pages == PageDemand():
        yield "Nothing"
    t, has_swa = geometry.page_tokens, geometry.has_role("swa")
    lengths: tuple[int, ...] = ()
    match call:
        case op.Alloc(tokens=tokens):
            lengths = (tokens,)
        case op.Extend(prefix_lens=prefixes, seq_lens=seqs):
            lengths = (*prefixes, *seqs)
            if any(
                seq - prefix > 0 and -(-seq // t) == -(-prefix // t) for prefix, seq in zip(prefixes, seqs, strict=True)
            ):
                yield "GrowsInsidePage"
            if len(seqs) > 1:
                yield "Batch"
        case op.Decode(seq_lens=seqs):
            lengths = tuple(seq - 1 for seq in seqs)
            if any((seq - 1) % t for seq in seqs):
                yield "GrowsInsidePage"
            if len(seqs) > 1:
                yield "Batch"
        case op.ExtendTail(prefix_len=prefix, seq_len=seq, tail=tail):
            lengths = (prefix, seq)
            yield from _tail_flags(t, prefix, seq, tail) if has_swa else ()
        case op.Recover():
            yield from ("Recovered",) if pages.swa_pages else ()
        case op.AllocStates(count=count):
            yield from ("NoSuchMember" if not pages.state_pages else "States",) if count else ()
    if lengths:
        yield "OneTokenPages" if t == 1 else "PartlyFilled" if any(n % t for n in lengths) else "PageBoundary"


def _tail_flags(t: int, prefix: int, seq: int, tail: int) -> Iterator[str]:
    if tail == 0:
        yield "NoTail"
    elif tail > seq - prefix:
        yield "TailIntoPrefix"
    elif (seq - tail) % t:
        yield "TailCutsPage"
