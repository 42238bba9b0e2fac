"""Random histories for vectors: a function of a seeded `Random` alone, so that every export gives the same cases."""

from collections.abc import Iterator
from random import Random

from poolproof_spec import operation as op
from poolproof_spec.geometry import LAYOUTS, Geometry, derive, geometry_problems
from poolproof_spec.units import PageKey, TokenCount

PAIR_PAGES, STATES = (3, 8), (2, 5)
"""Token pages and states that an arena is sized by: [least, most]."""


def small_arena(rng: Random, layout_name: str) -> Geometry:
    """An arena of a few pages a member, of one of the layouts that serving engines use."""
    chain = LAYOUTS[layout_name]
    page_tokens = rng.choice((1, 1, 2))
    sizes = {
        role: rng.choice((48, 176)) if role == "state" else 32 * page_tokens * rng.choice((1, 1, 2, 3))
        for _, role, _ in chain
    }
    pages, states = rng.randint(*PAIR_PAGES), rng.randint(*STATES)
    total = sum(size * (states if role == "state" else pages) for role, size in sizes.items())
    geometry = derive(
        total,
        [(name, role, sizes[role], kind) for name, role, kind in chain],
        page_tokens=page_tokens,
        window_tokens=rng.choice((1, 2, 3)),
    )
    return geometry if not geometry_problems(geometry) else small_arena(rng, layout_name)


def script(rng: Random, geometry: Geometry) -> Iterator[op.AnyOperation]:
    """Three to ten calls that fill, lock, free and pin."""
    for _ in range(rng.randint(3, 10)):
        yield from rng.choices((_insert, _hold, _lock, _release, _tidy, _pin), (8, 3, 3, 2, 1, 2))[0](rng, geometry)


def demands(rng: Random, geometry: Geometry, may_wait: bool) -> Iterator[op.AnyDemand]:
    """A demand of each kind but alloc, which is asked for at its edge."""
    t = geometry.page_tokens
    start, grown = rng.randint(0, 2 * t), rng.randint(1, 4 * t)
    tail = rng.randint(0, grown)
    lengths = tuple(TokenCount(rng.randint(1, 3 * t)) for _ in range(rng.randint(1, 3)))
    name, first, last = "demand", TokenCount(start), TokenCount(start + grown)
    yield op.Extend(name=name, prefix_lens=(first,), seq_lens=(last,), may_wait=may_wait)
    yield op.Decode(name=name, seq_lens=lengths, may_wait=may_wait)
    if geometry.has_role("swa"):
        yield op.ExtendTail(name=name, prefix_len=first, seq_len=last, tail=TokenCount(tail), may_wait=may_wait)
        yield op.Recover(name=rng.choice("abc"), may_wait=may_wait)
    if geometry.has_role("state"):
        yield op.AllocStates(name=name, count=rng.randint(1, 4), may_wait=may_wait)


def _key(rng: Random) -> tuple[PageKey, ...]:
    return tuple(PageKey(rng.randint(1, 3)) for _ in range(rng.randint(1, 3)))


def _insert(rng: Random, geometry: Geometry) -> Iterator[op.AnyOperation]:
    caches_states = geometry.has_role("state") and geometry.page_tokens == 1
    yield op.Insert(key=_key(rng), state=caches_states and rng.random() < 0.8)


def _hold(rng: Random, geometry: Geometry) -> Iterator[op.AnyOperation]:
    name, t = rng.choice("abc"), geometry.page_tokens
    if geometry.has_role("state") and rng.random() < 0.3:
        yield op.AllocStates(name=name, count=rng.randint(1, 2))
    elif geometry.has_role("swa") and rng.random() < 0.4:
        length = rng.randint(1, 3 * t)
        yield op.ExtendTail(name=name, prefix_len=TokenCount(0), seq_len=TokenCount(length), tail=TokenCount(0))
    else:
        yield op.Alloc(name=name, tokens=TokenCount(rng.randint(1, 3 * t)))


def _lock(rng: Random, geometry: Geometry) -> Iterator[op.AnyOperation]:
    key, name = _key(rng), rng.choice("xy")
    yield op.Insert(key=key, state=geometry.has_role("state") and geometry.page_tokens == 1)
    yield op.LockPrefix(name=name, key=key)
    if rng.random() < 0.4:
        yield op.UnlockWindow(name=name)


def _release(rng: Random, geometry: Geometry) -> Iterator[op.AnyOperation]:
    name = rng.choice("abc")
    yield rng.choice((op.Free(name=name), op.FreeWindow(name=name), op.Unlock(name=rng.choice("xy"))))


def _tidy(rng: Random, geometry: Geometry) -> Iterator[op.AnyOperation]:
    yield rng.choice((op.Compact(), op.Match(key=_key(rng))))


def _pin(rng: Random, geometry: Geometry) -> Iterator[op.AnyOperation]:
    what = rng.randrange(4)
    if what == 0:
        yield op.Gate(open=False)
    elif what == 1:
        one, page = rng.choice("ab"), TokenCount(geometry.page_tokens)
        yield from (op.Alloc(name=one, tokens=page), op.Alloc(name="c", tokens=page), op.Launch(event="e"))
        yield from (op.Free(name=one), op.Compact())
    elif what == 2:
        yield op.GroupBegin()
        yield op.Free(name=rng.choice("abc"))
    else:
        yield op.Launch(event="f", writes=(rng.choice("abc"),))
