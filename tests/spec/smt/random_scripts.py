"""Random small histories in numbers, of those that the encoding covers."""

import random
from collections.abc import Iterator

from poolproof_spec.arithmetic import INTEGERS
from poolproof_spec.policies_known import Policy
from poolproof_spec.smt.histories import (
    FIRE,
    FREE,
    FREE_WINDOW,
    HOLD,
    INSERT,
    LAUNCH,
    LOCK,
    NAMING,
    STATES,
    TAKING,
    UNLOCK_WINDOW,
    Script,
    Shape,
    shapes,
)
from poolproof_spec.smt.transitions import Situation, situation

TRIES = 400
"""Draws for one shape and length before another is drawn; many histories do not fit their arena."""
MAKERS = {FREE: (HOLD, STATES), FREE_WINDOW: (HOLD,), LOCK: (INSERT,), UNLOCK_WINDOW: (LOCK,), FIRE: (LAUNCH,)}
"""What each operation needs one of before it."""


def random_script(shape: Shape, length: int, draw: random.Random) -> Script:
    """Any numbers that mean something; not all of them are a history that fits."""
    kinds: list[int] = []
    for _ in range(length):
        kinds.append(draw.choice([k for k in shape.operations if k not in MAKERS or {*MAKERS[k]} & {*kinds}]))
    return Script(
        kinds=kinds,
        sizes=[draw.randint(1, 5) if kind in TAKING else 0 for kind in kinds],
        refs=[draw.choice(_named(kinds, index)) if kind in NAMING else 0 for index, kind in enumerate(kinds)],
        token_pages=draw.randint(2, 12),
        states=draw.randint(1, 6) if shape.has("state") else 0,
        window=draw.randint(1, 3) if shape.has("swa") else 1,
        size=draw.randint(0 if shape.demand == "decode" else 1, 8),
        extra=draw.randint(0, 3) if shape.demand in ("decode", "tail") else 0,
    )


def _named(kinds: list[int], index: int) -> list[int]:
    return [i for i in range(index) if kinds[i] in MAKERS[kinds[index]]]


def covered(policy: Policy, count: int, seed: int, longest: int = 4) -> Iterator[tuple[Shape, Script, Situation]]:
    """Histories that the encoding covers, with what it makes of them on ints."""
    draw, known = random.Random(seed), shapes(policy)
    while count:
        shape, length = draw.choice(known), draw.randint(1, longest)
        for _ in range(TRIES):
            script = random_script(shape, length, draw)
            now = situation(shape, script, INTEGERS)
            if now.possible:
                yield shape, script, now
                count -= 1
                break
