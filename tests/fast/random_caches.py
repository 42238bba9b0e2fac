"""Fast pools with a large cache in a random state: locks, tombstones, states, splits, holes, pins; and demands."""

import numpy as np

from poolproof_fast.pool import FastPool
from poolproof_fast.question import Needed
from poolproof_spec.geometry import Geometry, layout


def tri(tokens: int, states: int, window_tokens: int = 2) -> Geometry:
    """Room for so many tokens and states at once; no page size divides another."""
    total_bytes = tokens * (40 + 24) + states * 56
    return layout("tri", total_bytes, STATE=56, SWA=40, FULL=24, window_tokens=window_tokens)


def swa2(tokens: int, window_tokens: int = 2) -> Geometry:
    return layout("swa2", tokens * 64, SWA=32, FULL=32, window_tokens=window_tokens)


def mamba2(tokens: int, states: int) -> Geometry:
    return layout("mamba2", tokens * 24 + states * 56, STATE=56, FULL=24)


def random_pool(geometry: Geometry, seed: int, entries: int) -> FastPool:
    """A pool whose cache has about so many entries, with some of everything in between."""
    pool, generator = FastPool(geometry), np.random.default_rng(seed)
    keys: list[list[int]] = []
    held: list[np.ndarray] = []
    while pool.cache.entry_count < entries:
        key = random_key(generator, keys, letters=entries)
        if pool.insert(key, with_state=pool.cache.caches_states and bool(generator.random() < 0.7)):
            keys.append(key)
        else:
            break
        if generator.random() < 0.05 and (grant := pool.alloc(int(generator.integers(1, 4)))):
            held.append(grant.ids)
        if generator.random() < 0.02 and held:
            pool.free(held.pop(int(generator.integers(len(held)))))
    for _ in range(len(keys) // 6):
        lock_one(pool, generator, keys)
    strip_some(pool, generator)
    return pool


def random_key(generator: np.random.Generator, keys: list[list[int]], letters: int) -> list[int]:
    """A new one, or one that parts from an old one somewhere."""
    more = generator.integers(1, 1 + letters, int(generator.integers(1, 5))).tolist()
    if keys and generator.random() < 0.6:
        old = keys[int(generator.integers(len(keys)))]
        return [*old[: int(generator.integers(1, len(old) + 1))], *more][:12]
    return more  # type: ignore[no-any-return]


def lock_one(pool: FastPool, generator: np.random.Generator, keys: list[list[int]]) -> None:
    handle = pool.lock(keys[int(generator.integers(len(keys)))])
    if handle is not None and generator.random() < 0.6:
        pool.unlock_window(handle)


def strip_some(pool: FastPool, generator: np.random.Generator) -> None:
    """Evict a few steps of the end of the order: tombstones and states."""
    steps = pool.cache.walk().take(2 * pool.cache.entry_count)
    stripping = np.flatnonzero(steps.kind != 0)
    chosen = stripping[: int(generator.integers(0, len(stripping) // 2 + 1))]
    if len(chosen):
        pool.reclaim.evict(steps.select(chosen))


def pin(pool: FastPool, generator: np.random.Generator, how: str) -> None:
    """Close the gate, launch forwards with pages left pending, or both; what comes after is not read."""
    if how in ("flight", "both"):
        pool.launch()
        if len(held := pool.store.tokens.ids_of(1)) > 2:
            pool.free(held[:: int(generator.integers(1, 4))])
        pool.compact()
        pool.alloc(int(generator.integers(1, 6)), may_wait=False)
        pool.launch()
    if how in ("gate", "both"):
        pool.gate(open=False)


def random_needed(pool: FastPool, generator: np.random.Generator, most: int) -> Needed:
    """Pages of each role: what is free and some more, of one role or several."""
    free = pool.available_pages()
    tokens = free + int(generator.integers(0, most)) if generator.random() < 0.7 else 0
    tail = int(generator.integers(0, tokens + 1)) if generator.random() < 0.3 else tokens
    states = int(generator.integers(0, most)) if generator.random() < 0.5 else 0
    has_swa, has_states = pool.geometry.has_role("swa"), pool.geometry.has_role("state")
    return tokens, tail * has_swa, states * has_states
