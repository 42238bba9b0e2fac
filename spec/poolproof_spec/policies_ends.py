"""Pairs of ENDs in released SGLang, eager compaction: FULL with SWA, FULL with states; restated as arithmetic.

Sources below sglang/srt/mem_cache: allocator/unified_hybrid_swa.py 904-982 and 1181 of 0.5.22, 1222-1264 of 0.5.23;
allocator/base.py 144 and unified_radix_cache.py 731-776 of both. With eager compaction an END has no holes, so counts
give its frontier.
"""

from collections.abc import Sequence
from typing import NamedTuple

from poolproof_spec.arithmetic import Arithmetic, Quantity, Truth
from poolproof_spec.policies import Ask, Choice, View, at, first, ids_of


class Frontiers(NamedTuple):
    """Where the two ENDs of a stage end, in bytes, and what their index spaces still have, in pages."""

    full_low: Quantity
    """Lowest byte of FULL."""
    full_room: Quantity
    """FULL pages, and ids, left."""
    base_high: Quantity
    """One past the highest byte of the END at the bottom: states, or SWA where there are none."""
    base_room: Quantity
    """Its pages left."""


def frontiers(view: View, stage: int) -> Frontiers:
    """Of the lowest and the highest member."""
    (base, *_, full), (below, *_, above) = view.members, view.stages[stage]
    return Frontiers(
        full_low=(full.page_count - above.live) * full.page_bytes,
        full_room=full.page_count - full.first_page - above.live,
        base_high=(base.first_page + below.live) * base.page_bytes,
        base_room=base.page_count - base.first_page - below.live,
    )


def ends_fit(view: View, stage: int, full: Quantity, base: Quantity, a: Arithmetic) -> Truth:
    """Whether two ENDs that face each other have room for new pages: bytes between them, pages and ids."""
    ends, below = frontiers(view, stage), view.members[0]
    swa_ids = view.stages[stage][0].live + base <= ids_of(view, "full") if below.role == "swa" else True
    return a.all_of(
        full * view.members[-1].page_bytes + base * below.page_bytes <= ends.full_low - ends.base_high,
        full <= ends.full_room,
        base <= ends.base_room,
        swa_ids,
    )


class Quotas(NamedTuple):
    """How many pages of each side a plan wants to see freed."""

    full: Quantity
    swa: Quantity
    feasible: Truth
    """Whether there are that many that may be freed."""


def swa_pair_quotas(view: View, pages: Quantity, a: Arithmetic) -> Quotas:
    """The fewest SWA pages with every FULL page gone that may go, then the fewest FULL pages: each side by itself."""
    swa, full = view.members
    (held_swa, held_full), last, ends = view.stages[0], len(view.victims), frontiers(view, 0)
    all_full, all_swa = view.freed("full", last), view.freed("swa", last)
    missing = pages * (full.page_bytes + swa.page_bytes) - (ends.full_low - ends.base_high)
    swa_index = held_swa.live + pages - a.minimum(ids_of(view, "full"), swa.page_count - swa.first_page)
    full_index = held_full.live + pages - ids_of(view, "full")
    by_bytes = a.ceil_div(missing - all_full * full.page_bytes, swa.page_bytes)
    least_swa = a.maximum(0, a.maximum(swa_index, by_bytes))
    rest = a.ceil_div(missing - least_swa * swa.page_bytes, full.page_bytes)
    least_full = a.maximum(0, a.maximum(full_index, rest))
    return Quotas(least_full, least_swa, a.all_of(least_swa <= all_swa, least_full <= all_full))


def swa_pair_tokens(view: View, ask: Ask, a: Arithmetic, looks: bool) -> Choice:
    """FULL and SWA: walk to the plan's quotas. `looks`: stop as soon as it fits, as 0.5.23 does and 0.5.22 did not."""
    last, leaves = len(view.victims), view.leaves
    fitting = [ends_fit(view, stage, ask.probe, ask.probe, a) for stage in range(last + 1)]
    quotas = swa_pair_quotas(view, ask.probe, a)
    full_done = [a.any_of(view.freed("full", k) >= quotas.full, k >= leaves) for k in range(last + 1)]
    if looks:
        full_done = [a.any_of(*pair) for pair in zip(full_done, fitting, strict=True)]
    swa_done = [view.freed("swa", k) >= quotas.swa for k in range(last + 1)]
    if looks:
        swa_done = [a.any_of(*pair) for pair in zip(swa_done, fitting, strict=True)]
    walked = first([a.all_of(*pair) for pair in zip(full_done, swa_done, strict=True)], last, a)
    untouched = a.any_of(fitting[0], a.negate(quotas.feasible))
    victims = a.where(untouched, 0, walked)
    granted = at([ends_fit(view, k, ask.full, ask.swa, a) for k in range(last + 1)], victims, a)
    # What the SWA walk takes after the FULL walk has its quota comes in another order where a prefix is several nodes.
    by_full = first(full_done, leaves, a)
    return Choice(victims, granted, a.any_of(untouched, walked <= by_full, by_full >= leaves, a.negate(view.split)))


def state_pair_tokens(view: View, ask: Ask, a: Arithmetic) -> Choice:
    """States and FULL: leaves until FULL has the room; nothing is checked before, and no state is taken for tokens."""
    leaves = view.leaves
    walked = first([ends_fit(view, k, ask.probe, 0, a) for k in range(leaves)], leaves, a)
    return Choice(walked, at([ends_fit(view, k, ask.full, 0, a) for k in range(leaves + 1)], walked, a))


def state_pair_states(view: View, ask: Ask, a: Arithmetic) -> Choice:
    """States and FULL: leaves until the states have the room, then states."""
    leaves, last = view.leaves, len(view.victims)
    fitting = [ends_fit(view, k, 0, ask.state, a) for k in range(last + 1)]
    walked = first(fitting, last, a)
    enough_ids = ask.state <= frontiers(view, 0).base_room
    return Choice(walked, at(fitting, walked, a), a.all_of(enough_ids, no_states_beyond(view, leaves, a)))


def no_states_beyond(view: View, stage: int, a: Arithmetic) -> Truth:
    """Whether no victim after that many would free a state: the engine's own walk over states then has none."""
    freed: Sequence[Quantity] = [view.freed("state", k) for k in (stage, len(view.victims))]
    return a.all_of(freed[0] == freed[1])
