"""The histories that a search is over, in numbers: what a question fixes, what a solver chooses, and what is covered.

Covered, exactly: insert of prefixes that share no page (each one node, or two where it is longer than the window),
alloc and alloc_states as running requests, free, free_window, lock, unlock_window, a closed gate, launch and fire, in
chains of two ENDs or with one float between; then one demand, under pressure.

Left out, and not generated: prefixes that part (no branching; match is then only another order of the inserts), unlock,
a second lock, taking pages after pages were freed (no hole is refilled), setup that does not fit as it lies (nothing
moves and nothing is evicted before the demand), groups, compact and pending pages, recover, extend with a prefix (to a
pool an alloc), queries, other chains. For policies of released engines also: closed gates, launch, unlock_window (their
rules here are those of eager compaction, which has no gates), tails, and states of pages with several tokens.
"""

from collections.abc import Sequence
from typing import NamedTuple

from poolproof_spec.arithmetic import Arithmetic, Quantity, Truth
from poolproof_spec.geometry import LAYOUTS, Kind, Role
from poolproof_spec.policies import Ask
from poolproof_spec.policies_known import DEMAND_KINDS, DemandKind, Policy
from poolproof_spec.units import ceil_div

INSERT, HOLD, STATES, FREE, FREE_WINDOW, LOCK, UNLOCK_WINDOW, CLOSE_GATE, LAUNCH, FIRE = range(10)
"""Codes of the operations before the demand."""
TAKING, FREEING, NAMING = (INSERT, HOLD, STATES), (FREE, FREE_WINDOW), (FREE, FREE_WINDOW, LOCK, UNLOCK_WINDOW)


class Shape(NamedTuple):
    """What is fixed in one question to the solver."""

    layout: str
    page_bytes: tuple[int, ...]
    """Of each member, low bytes to high."""
    page_tokens: int
    demand: DemandKind
    one_sided: bool
    """How a float takes new pages; see Policy."""
    anchored: tuple[str, ...]
    pins: bool
    """Gates and launches are generated, and the demand may not wait."""
    any_arena: bool
    """Also arenas that hold no request: a page of SWA, three states and the sink."""

    @property
    def chain(self) -> tuple[tuple[str, Role, Kind], ...]:
        """(name, role, kind) of each member."""
        return LAYOUTS[self.layout]

    def has(self, role: Role) -> bool:
        """Whether some member holds `role`."""
        return any(role == known for _, known, _ in self.chain)

    @property
    def caches_states(self) -> bool:
        """Whether a cached prefix has a state."""
        return self.has("state") and self.page_tokens == 1

    @property
    def first_pages(self) -> tuple[int, ...]:
        """The sink of each member, in pages."""
        return tuple(ceil_div(max(self.page_bytes), size) for size in self.page_bytes)

    @property
    def least_bytes(self) -> int:
        """Of the arena. Released engines refuse one with states that cannot hold one request."""
        if self.any_arena or not self.has("state"):
            return 0
        of = {role: size for (_, role, _), size in zip(self.chain, self.page_bytes, strict=True)}
        return 3 * of["state"] + of.get("swa", 0) + max(self.page_bytes)

    @property
    def operations(self) -> tuple[int, ...]:
        """Codes that are generated before the demand."""
        codes = [INSERT, HOLD, FREE, LOCK]
        codes += [STATES] if self.has("state") else []
        codes += [FREE_WINDOW] if self.has("swa") else []
        codes += [UNLOCK_WINDOW, CLOSE_GATE, LAUNCH, FIRE] if self.pins else []
        return tuple(sorted(codes))


class Script(NamedTuple):
    """One history in numbers; on terms, all histories of a length."""

    kinds: Sequence[Quantity]
    """Code of each operation before the demand."""
    sizes: Sequence[Quantity]
    """Pages of an insert or alloc, states of an alloc_states; else 0."""
    refs: Sequence[Quantity]
    """Which operation made what is freed, locked or released, from 0; else 0."""
    token_pages: Quantity
    """total_bytes = this many token pages of every token member ..."""
    states: Quantity
    """... and this many states."""
    window: Quantity
    """Pages of the sliding window."""
    size: Quantity
    """Pages, states, or decoding requests that need a page."""
    extra: Quantity
    """SWA pages of a tail, or decoding requests that need no page."""


STATE_BYTES = (48, 176)
"""Of a state page: without and with a temporal part."""
LAYER_BYTES = 32
"""Of a token in one layer; token pages are those of one and of two layers."""


def shapes(
    policy: Policy, layouts: Sequence[str] = tuple(LAYOUTS), demands: Sequence[DemandKind] = DEMAND_KINDS
) -> list[Shape]:
    """The questions for a policy: each layout with each of the page sizes and each kind of demand."""
    found = []
    for layout in layouts:
        roles = [role for _, role, _ in LAYOUTS[layout]]
        for page_tokens in _page_tokens(policy, layout):
            sizes: list[tuple[int, ...]] = [()]
            for role in roles:
                layers = (LAYER_BYTES * page_tokens, 2 * LAYER_BYTES * page_tokens)
                choices = STATE_BYTES if role == "state" else layers
                sizes = [(*rest, size) for rest in sizes for size in choices]
            for demand in (kind for kind in _demands(policy, roles, page_tokens) if kind in demands):
                rest_of_shape = (policy.one_sided, policy.anchored, policy.pins, policy.any_arena)
                found += [Shape(layout, size, page_tokens, demand, *rest_of_shape) for size in sizes]
    return found


def _page_tokens(policy: Policy, layout: str) -> tuple[int, ...]:
    """Two-token pages change demands of decode, and keep states out of the cache."""
    if policy.release is None:
        return (1,) if layout == "swa2" else (1, 2)
    return (1,) if layout == "tri" else (1, 2)


def _demands(policy: Policy, roles: Sequence[Role], page_tokens: int) -> list[DemandKind]:
    """Those that differ to the policy: a tail of all pages is an alloc, a decode without idle requests too."""
    kinds: list[DemandKind] = ["tail" if "tail" in policy.demands and "swa" in roles else "tokens"]
    if policy.release and page_tokens > 1 and "decode" in policy.demands:
        kinds.append("decode")
    if "state" in roles and (policy.release is None or page_tokens == 1):
        kinds.append("states")
    return kinds


def ask_of_script(shape: Shape, script: Script) -> Ask:
    """The demand in pages."""
    if shape.demand == "states":
        return Ask(0, 0, script.size, 0)
    probe = script.size + script.extra if shape.demand == "decode" else script.size
    swa = script.extra if shape.demand == "tail" else script.size
    return Ask(script.size, swa if shape.has("swa") else 0, 0, probe)


def well_formed(shape: Shape, script: Script, a: Arithmetic) -> list[Truth]:
    """Every operation means something, one way to say it, and is covered."""
    kinds, sizes, refs = script.kinds, script.sizes, script.refs
    conditions: list[Truth] = [script.token_pages >= 1, script.window >= 1, script.size >= 0, script.extra >= 0]
    conditions.append(script.states >= 1 if shape.has("state") else script.states == 0)
    if not shape.has("swa"):
        conditions.append(script.window == 1)
    conditions += _demand_well_formed(shape, script)
    for i, kind in enumerate(kinds):
        taking = a.any_of(*(kind == code for code in TAKING))
        naming = a.any_of(*(kind == code for code in NAMING))
        conditions += [
            a.any_of(*(kind == code for code in shape.operations)),
            a.where(taking, 1, 0) <= sizes[i],
            a.any_of(taking, sizes[i] == 0),
            a.any_of(naming, refs[i] == 0),
        ]
        conditions += [_names(script, i, a)]
        for j in range(i + 1, len(kinds)):
            conditions += _pair_well_formed(script, i, j, a)
    return conditions


def _demand_well_formed(shape: Shape, script: Script) -> list[Truth]:
    if shape.demand == "decode":
        return [script.size + script.extra >= 1]
    if shape.demand == "tail":
        return [script.size >= 1, script.extra <= script.size]
    return [script.size >= 1, script.extra == 0]


def _names(script: Script, i: int, a: Arithmetic) -> Truth:
    """An operation that names another names one of the right kind before it."""
    wanted = {FREE: (HOLD, STATES), FREE_WINDOW: (HOLD,), LOCK: (INSERT,), UNLOCK_WINDOW: (LOCK,), FIRE: ()}
    conditions = []
    for code, makers in wanted.items():
        named = [
            a.all_of(script.refs[i] == j, a.any_of(*(script.kinds[j] == maker for maker in makers))) for j in range(i)
        ]
        if code == FIRE:
            named = [script.kinds[j] == LAUNCH for j in range(i)]
        conditions.append(a.any_of(script.kinds[i] != code, *named))
    return a.all_of(*conditions)


def _pair_well_formed(script: Script, i: int, j: int, a: Arithmetic) -> list[Truth]:
    """Of two operations, i before j: nothing is freed or closed twice, nothing is taken after something was freed."""
    kinds, refs = script.kinds, script.refs
    freeing = a.any_of(*(kinds[i] == code for code in FREEING))
    once = [a.all_of(kinds[i] == code, kinds[j] == code) for code in (LOCK, UNLOCK_WINDOW, CLOSE_GATE, LAUNCH, FIRE)]
    return [
        a.negate(a.all_of(freeing, a.any_of(*(kinds[j] == code for code in TAKING)))),
        a.negate(a.all_of(freeing, a.any_of(*(kinds[j] == code for code in FREEING)), refs[i] == refs[j])),
        a.negate(a.any_of(*once)),
    ]
