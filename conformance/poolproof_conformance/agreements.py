"""What must agree on every TINY state: the sweep with the definition, and the move plan with its own execution."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from poolproof_spec.definition import windows_exist
from poolproof_spec.demand import Demand
from poolproof_spec.geometry import Geometry
from poolproof_spec.moves import byte_range, move_plan
from poolproof_spec.occupancy import Occupancy, occupancies, pinned_pages
from poolproof_spec.state import PoolState
from poolproof_spec.sweep import Window, sweep, widen
from poolproof_spec.tiny import tiny_geometries, tiny_states
from poolproof_spec.units import PageId
from poolproof_spec.verdict import Verdict

DEMANDS = (
    Demand(may_wait=False),
    Demand(full_pages=1, swa_pages=1, may_wait=False),
    Demand(full_pages=2, state_pages=1, may_wait=False),
)
"""Nothing, a token page, and a mixture: each is asked in every state."""

SWEEP = "sweep-is-definition"
MOVES = "moves-execute"


@dataclass(frozen=True)
class Agreement:
    """The result of one agreement over a family of states."""

    name: str
    states: int
    """Distinct states, each with every demand of DEMANDS."""
    verdict: Verdict
    detail: str = ""
    """The first disagreement."""


def agree(
    geometries: Sequence[Geometry] | None = None, on_state: Callable[[int], None] | None = None
) -> tuple[Agreement, ...]:
    """Check every state of the family; `on_state` is told how many are done, now and then. No state: unknown."""
    count = 0
    failures: dict[str, str] = {}
    for geometry in tiny_geometries() if geometries is None else geometries:
        for state in tiny_states(geometry):
            count += 1
            for demand in DEMANDS:
                for name, detail in disagreements(state, demand):
                    failures.setdefault(name, f"{detail} in {geometry} {state.members} under {demand}")
            if on_state is not None and count % 1000 == 0:
                on_state(count)
    return tuple(
        Agreement(name, count, _verdict(count, name in failures), failures.get(name, "")) for name in (SWEEP, MOVES)
    )


def _verdict(count: int, failed: bool) -> Verdict:
    return "violated" if failed else "holds" if count else "unknown"


@cache
def definition_holds(geometry: Geometry, pinned: tuple[frozenset[PageId], ...], loose: tuple[int, ...]) -> bool:
    """[D-fits] by brute force; it depends on nothing else, and many states share these."""
    return windows_exist(geometry, pinned, loose)


def disagreements(state: PoolState, demand: Demand) -> Iterator[tuple[str, str]]:
    """(agreement, what differs) for one state under one demand."""
    geometry = state.geometry
    pinned = tuple(pinned_pages(state, index, demand.may_wait) for index in range(len(geometry.members)))
    needs = occupancies(state, demand)
    found = sweep(needs)
    defined = definition_holds(geometry, pinned, tuple(need.loose_count for need in needs))
    if found.fits != defined:
        yield SWEEP, f"sweep says {found.fits}, the definition {defined}"
    elif found.fits:
        windows = widen(needs, found.windows)
        problem = window_problem(needs, windows) or execution_problem(state, windows, pinned, demand)
        if problem:
            yield MOVES, problem


def window_problem(needs: Sequence[Occupancy], windows: Sequence[Window | None]) -> str | None:
    """What keeps widened windows from being windows, with the next member's start as the limit."""
    end_byte = 0
    for need, window in zip(needs, windows, strict=True):
        if window is not None:
            if window.start * need.page_bytes < end_byte or window.end > need.page_count:
                return f"window {window} overlaps the one below, or leaves the arena"
            if window.end - window.start < need.pinned_count + need.loose_count:
                return f"window {window} is too small"
            end_byte = window.end * need.page_bytes
    return None


def execution_problem(
    state: PoolState, windows: Sequence[Window | None], pinned: Sequence[frozenset[PageId]], demand: Demand
) -> str | None:
    """Execute the plan copy by copy on a map of who owns each byte; what goes wrong, or None.

    [T3] No copy lands on a byte that is live or pending, no pinned page moves; afterwards everything lies in its
    window with room for the demand. [T4] As many moves as movable pages lay outside.
    """
    geometry = state.geometry
    owner = owned_bytes(state)
    live = [set(member.live_pages) for member in state.members]
    outside = sum(
        1 for i, w in enumerate(windows) if w is not None for page in live[i] - pinned[i] if not w.start <= page < w.end
    )
    plan = move_plan(state, windows, pinned)
    for batch in plan:
        index = batch.member_index
        for source, destination in batch.moves:
            target = range(*byte_range(geometry, index, destination))
            if source in pinned[index] or source not in live[index]:
                return f"moves page {source} of member {index}, which is pinned or not live"
            if any(byte in owner for byte in target):
                return f"copies page {source} of member {index} over bytes {list(target)}, which are in use"
            owner.update(dict.fromkeys(target, (index, destination)))
            for byte in range(*byte_range(geometry, index, source)):
                del owner[byte]
            live[index] = live[index] - {source} | {destination}
    if sum(len(batch.moves) for batch in plan) != outside:
        return f"{sum(len(batch.moves) for batch in plan)} moves for {outside} pages outside their windows"
    for index, window in enumerate(windows):
        taken = live[index] | state.members[index].pending_pages
        if window is None or not taken <= set(range(window.start, window.end)):
            if taken:
                return f"member {index} holds pages {sorted(taken)} outside its window {window}"
        elif window.end - window.start - len(taken) < demand.pages(geometry.members[index].role):
            return f"member {index} has no room for the demand in its window {window}"
    return None


def owned_bytes(state: PoolState) -> dict[int, tuple[int, PageId]]:
    """Owner (member, page) of each byte that is live or pending."""
    return {
        byte: (index, page)
        for index, member in enumerate(state.members)
        for page in member.live_pages | member.pending_pages
        for byte in range(*byte_range(state.geometry, index, page))
    }
