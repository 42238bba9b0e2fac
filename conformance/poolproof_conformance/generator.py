"""Hypothesis strategies for geometries and histories; small, so that a counterexample can be read."""

from collections.abc import Sequence

from hypothesis import strategies as st

from poolproof_conformance.phrases import Shape, phrases
from poolproof_spec import operation as op
from poolproof_spec.geometry import LAYOUTS, Geometry, derive, geometry_problems

History = tuple[Geometry, tuple[op.AnyOperation, ...]]

KV_BYTES = 32
"""One layer's keys and values of one token: 16 bits, one head of 8, K and V."""
STATE_BYTES = (48, 176)
"""A state without and with a temporal part."""


@st.composite
def geometries(draw: st.DrawFn, layouts: Sequence[str] = tuple(LAYOUTS)) -> Geometry:
    """An arena in which each member has a few to a few dozen pages.

    total_bytes = n token pages of every token member + k states: what serving engines size their arenas by.
    """
    chain = LAYOUTS[draw(st.sampled_from(layouts))]
    page_tokens = draw(st.sampled_from((1, 1, 1, 2)))
    token_pages, states = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    sizes: dict[str, int] = {}
    total_bytes = 0
    for _, role, _ in chain:
        if role == "state":
            sizes[role] = draw(st.sampled_from(STATE_BYTES))
            total_bytes += states * sizes[role]
        else:
            sizes[role] = draw(st.integers(1, 3)) * KV_BYTES * page_tokens
            total_bytes += token_pages * sizes[role]
    geometry = derive(
        total_bytes,
        [(name, role, sizes[role], kind) for name, role, kind in chain],
        page_tokens=page_tokens,
        window_tokens=draw(st.sampled_from((1, 1, 2, 3))),
    )
    return geometry if not geometry_problems(geometry) else draw(geometries(layouts))


def shape_of(geometry: Geometry) -> Shape:
    """The shape of a geometry."""
    has_swa, has_states = geometry.has_role("swa"), geometry.has_role("state")
    return Shape(geometry.page_tokens, has_swa, has_states, len(geometry.id_range("full")))


@st.composite
def histories(
    draw: st.DrawFn, layouts: Sequence[str] = tuple(LAYOUTS), shortest: int = 4, longest: int = 10
) -> History:
    """A geometry and a history for it, long enough to come under pressure; shrink.py takes it below `shortest`."""
    geometry = draw(geometries(layouts))
    parts = draw(st.lists(phrases(shape_of(geometry)), min_size=shortest, max_size=longest))
    return geometry, tuple(operation for part in parts for operation in part)
