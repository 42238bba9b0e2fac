"""States, a float of SWA and FULL: what released SGLang does with demands, eager compaction; restated as arithmetic.

Sources below sglang/srt/mem_cache: allocator/unified_hybrid_swa.py 1613 and allocator/swa.py 203 of 0.5.22;
allocator/unified_hybrid_swa.py 1866-1947, allocator/unified_sub_pool.py 233-251 and unified_radix_cache.py 731-776 of
0.5.23. `Choice.exact` is false where a walk takes other nodes than the next in policy order, or goes another round.
"""

from collections.abc import Sequence

from poolproof_spec.arithmetic import Arithmetic, Quantity, Truth
from poolproof_spec.policies import Ask, Choice, View, at, first, ids_of
from poolproof_spec.policies_ends import frontiers, no_states_beyond
from poolproof_spec.policies_float import (
    Ready,
    byte_shortfall,
    certified,
    edges_given_back,
    enough_ids,
    float_at,
    high_target,
    pair_ready,
    slide,
)


def tokens_by_quota(view: View, ask: Ask, a: Arithmetic) -> Choice:
    """0.5.23: free as many tokens as demanded, until a certificate or a target says enough; then states for bytes."""
    pages, last = ask.probe, len(view.victims)
    satisfied = [a.any_of(certified(view, k, pages, a), high_target(view, k, pages, a)) for k in range(last + 1)]
    ready = [pair_ready(view, k, pages, a, targets=True) for k in range(last + 1)]
    done, sure = [now.done for now in ready], [now.exact for now in ready]
    untouched = a.any_of(done[0], _out_of_reach(view, pages, a))
    tokens = _token_phase(view, pages, satisfied, a)
    states = _state_phase(view, pages, satisfied, tokens, a)
    by_tokens = a.any_of(untouched, at(done, tokens, a))
    victims = a.where(untouched, 0, a.where(by_tokens, tokens, states))
    # The state walk skips nodes without a state, and the SWA walk has another order, where prefixes are several nodes.
    whole_nodes = a.any_of(by_tokens, states == tokens, a.all_of(a.negate(view.split), states <= view.leaves))
    in_order = a.any_of(untouched, _in_order(view, pages, tokens, a))
    known = (sure[0], at(sure, a.where(untouched, 0, tokens), a), at(sure, victims, a))
    # The allocation itself asks once more, now that the float's edges are given back.
    again = [a.any_of(done[k], high_target(view, k, pages, a, absorbed=True)) for k in range(last + 1)]
    same_span = a.all_of(
        a.any_of(untouched, byte_shortfall(view, pages, 0, a), edges_given_back(view, 0, a)),
        a.any_of(by_tokens, at([edges_given_back(view, k, a) for k in range(last + 1)], tokens, a)),
    )
    return Choice(victims, at(again, victims, a), a.all_of(*known, whole_nodes, in_order, same_span))


def _out_of_reach(view: View, pages: Quantity, a: Arithmetic) -> Truth:
    """The check before the walk: ids, SWA pages and the optimistic bound with all gone that may go."""
    last = len(view.victims)
    return a.any_of(a.negate(enough_ids(view, last, pages, a)), byte_shortfall(view, pages, last, a))


def _without_states(view: View) -> int:
    """Victims of the walks for tokens: leaves and tombstones."""
    return sum(kind != "state" for kind in view.victims)


def _token_phase(view: View, pages: Quantity, satisfied: Sequence[Truth], a: Arithmetic) -> Quantity:
    """Leaves up to the FULL quota, tombstones up to the SWA quota."""
    last, leaves = _without_states(view), view.leaves
    ends = []
    for k in range(last + 1):
        full = a.any_of(view.freed("full", k) >= pages, k >= leaves)
        swa = a.any_of(view.freed("swa", k) >= pages, k >= last)
        ends.append(a.any_of(satisfied[k], a.all_of(full, swa)))
    return first(ends, last, a)


def _state_phase(view: View, pages: Quantity, satisfied: Sequence[Truth], begin: Quantity, a: Arithmetic) -> Quantity:
    """On from `begin` up to the state quota, less the states that are gone already."""
    last, (states, swa, full) = _without_states(view), view.members
    quota = a.ceil_div(pages * (full.page_bytes + swa.page_bytes), states.page_bytes)
    end: Quantity = begin
    for k in range(last + 1):
        spent = view.freed("state", k)
        ends = [a.any_of(satisfied[m], view.freed("state", m) >= quota) for m in range(k, last + 1)]
        wanted = a.all_of(quota > spent, view.freed("state", len(view.victims)) > spent)
        end = a.where(begin == k, a.where(wanted, first(ends, last, a, offset=k), k), end)
    return end


def _in_order(view: View, pages: Quantity, walked: Quantity, a: Arithmetic) -> Truth:
    """Whether all that was walked are leaves of the FULL walk, or all of them went before it ended."""
    leaves = view.leaves
    by_full = first([view.freed("full", k) >= pages for k in range(leaves)], leaves, a)
    return a.any_of(walked <= by_full, by_full >= leaves, a.negate(view.split))


def tokens_by_shortfall(view: View, ask: Ask, a: Arithmetic) -> Choice:
    """0.5.22: each side's shortfall against its own room, then a pair that may fail.

    One round: further ones, up to four, come only where a walk had its count and not its target; there `exact` is
    false.
    """
    pages, leaves, last = ask.probe, view.leaves, _without_states(view)
    sides = [_room_of_sides(view, k, a) for k in range(last + 1)]
    enough = [(full >= pages, swa >= pages) for full, swa in sides]
    by_full = first([enough[k][0] for k in range(leaves)], leaves, a)
    victims: Quantity = by_full
    for k in range(last + 1):
        ends = [a.any_of(enough[m][1], view.freed("swa", m) >= pages - sides[0][1]) for m in range(k, last + 1)]
        victims = a.where(by_full == k, first(ends, last, a, offset=k), victims)
    joint = [certified(view, k, pages, a) for k in range(last + 1)]
    ready = [pair_ready(view, k, pages, a, targets=False) for k in range(last + 1)]
    in_order = a.any_of(joint[0], victims <= by_full, by_full >= leaves, a.negate(view.split))
    victims = a.where(joint[0], 0, victims)
    settled = [a.any_of(now, a.all_of(*both)) for now, both in zip(joint, enough, strict=True)]
    one_round = a.any_of(at(settled, victims, a), victims >= last)
    sure = at([now.exact for now in ready], victims, a)
    return Choice(victims, at([now.done for now in ready], victims, a), a.all_of(in_order, one_round, sure))


def _room_of_sides(view: View, stage: int, a: Arithmetic) -> tuple[Quantity, Quantity]:
    """(FULL pages, SWA pages) that each side could take were it alone."""
    flt, ends = float_at(view, stage, False, a), frontiers(view, stage)
    band, full, empty = view.members[1], view.members[-1], flt.live == 0
    below = a.where(empty, ends.base_high, flt.high * band.page_bytes)
    full_room = a.minimum(a.floor_div(a.maximum(0, ends.full_low - below), full.page_bytes), ends.full_room)
    sides = a.maximum(0, a.maximum(flt.low - flt.room_low, flt.room_high - flt.high))
    whole = a.maximum(0, flt.room_high - flt.room_low)
    extension = a.minimum(a.where(empty, whole, sides), band.page_count - band.first_page - flt.live)
    holes = a.where(empty, 0, flt.high - flt.low - flt.live)
    return full_room, a.minimum(extension + holes, ids_of(view, "full") - flt.live)


def states_with_slack(view: View, ask: Ask, a: Arithmetic) -> Choice:
    """Both releases: leaves until the float has slid far enough for the states and one more; then states."""
    leaves, count = view.leaves, ask.state
    plain = [_state_room(view, k, 0, a) >= count for k in range(leaves + 1)]
    eased = [_eased(view, k, count, a) for k in range(leaves + 1)]
    asked = _asked(view, count, a)
    enough = [a.any_of(plain[k], a.all_of(asked[k], eased[k].done)) for k in range(leaves + 1)]
    walked = first(enough, leaves, a)
    sure = (a.any_of(walked < k, plain[k], eased[k].exact) for k in range(leaves + 1))
    granted = at([a.any_of(room, now.done) for room, now in zip(plain, eased, strict=True)], walked, a)
    ids = count <= frontiers(view, 0).base_room
    return Choice(walked, granted, a.all_of(ids, no_states_beyond(view, leaves, a), *sure))


def _asked(view: View, count: Quantity, a: Arithmetic) -> list[Truth]:
    """Whether the float is asked to move: before the walk, then only once FULL freed the least that may be missing."""
    state_bytes, full_bytes = view.members[0].page_bytes, view.members[-1].page_bytes
    asked: list[Truth] = [True]
    since: Truth = False
    for k in range(1, view.leaves + 1):
        missing = a.maximum(0, count - _state_room(view, k, 0, a))
        due = view.freed("full", k) >= a.ceil_div((missing - 1) * state_bytes + 1, full_bytes)
        since = a.any_of(since, due)
        asked.append(since)
    return asked


def _state_room(view: View, stage: int, edge_stage: int, a: Arithmetic) -> Quantity:
    """States that fit below the float, or below FULL where it is empty; its low edge is that of another stage."""
    ends, held, band, base = frontiers(view, stage), view.stages[stage][1], view.members[1], view.members[0]
    edge = view.stages[edge_stage][1].low * band.page_bytes
    above = a.where(held.live == 0, ends.full_low, edge)
    return a.minimum(a.floor_div(a.maximum(0, above - ends.base_high), base.page_bytes), ends.base_room)


def _eased(view: View, stage: int, count: Quantity, a: Arithmetic) -> Ready:
    """The float's edges given back, and if that is not enough, the float moved by the need and one state more."""
    enough, size = _state_room(view, stage, stage, a) >= count, view.members[0].page_bytes
    moved = slide(view, stage, False, count * size + size, a)
    done = a.all_of(count <= frontiers(view, stage).base_room, moved.done)
    return Ready(a.any_of(enough, done), a.any_of(enough, moved.exact))
