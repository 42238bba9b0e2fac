"""The policies by name: what each stands for, which released engine has it, what its search may do."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Literal, NamedTuple, get_args

from poolproof_spec.arithmetic import Arithmetic
from poolproof_spec.policies import Ask, Choice, Choose, View, tight, whole_cache
from poolproof_spec.policies_ends import state_pair_states, state_pair_tokens, swa_pair_tokens
from poolproof_spec.policies_triple import states_with_slack, tokens_by_quota, tokens_by_shortfall

DemandKind = Literal["tokens", "decode", "tail", "states"]
"""Demands that a search asks: alloc, decode, extend_tail (an alloc among them), alloc_states."""
DEMAND_KINDS: tuple[DemandKind, ...] = get_args(DemandKind)


class Policy(NamedTuple):
    """One way to choose victims."""

    name: str
    claim: str
    """What it does, in a sentence."""
    choose: Choose
    demands: tuple[DemandKind, ...]
    """Those that it has a rule of its own for."""
    release: str | None = None
    """The target that has it, with eager compaction."""
    any_arena: bool = False
    """Also held against arenas too small for one request, which released engines refuse to build."""

    @property
    def one_sided(self) -> bool:
        """A float takes new pages on one side, the roomier one, as released engines do; else nearest to its own."""
        return self.release is not None

    @property
    def anchored(self) -> tuple[str, ...]:
        """Members that bound their neighbours also when empty, as released engines declare them."""
        return ("SWA", "STATE", "FULL") if self.release else ()

    @property
    def pins(self) -> bool:
        """Whether it knows pages that cannot move: gates, and forwards in flight that it may not wait for."""
        return self.release is None


def component_shortfall(view: View, ask: Ask, a: Arithmetic) -> Choice:
    """As 0.5.22: each side by itself, then stop."""
    return _by_layout(view, ask, a, before=True)


def quota(view: View, ask: Ask, a: Arithmetic) -> Choice:
    """As 0.5.23: certificates and quotas."""
    return _by_layout(view, ask, a, before=False)


def _by_layout(view: View, ask: Ask, a: Arithmetic, before: bool) -> Choice:
    states = isinstance(ask.state, int) and ask.state == 0
    if len(view.members) == 3:
        if not states:
            return states_with_slack(view, ask, a)
        return tokens_by_shortfall(view, ask, a) if before else tokens_by_quota(view, ask, a)
    if view.members[0].role == "swa":
        return swa_pair_tokens(view, ask, a, looks=not before)
    return state_pair_tokens(view, ask, a) if states else state_pair_states(view, ask, a)


POLICIES: Mapping[str, Policy] = {
    policy.name: policy
    for policy in (
        Policy(
            "component-shortfall",
            "Each side frees what it lacks by itself, and stops; the joint allocation after it may fail.",
            component_shortfall,
            ("tokens", "states"),
            "sglang==0.5.22",
        ),
        Policy(
            "whole-cache",
            "Frees until the demand fits, with the whole cache as its quota and no check before.",
            whole_cache,
            ("tokens", "decode", "tail", "states"),
        ),
        Policy(
            "quota",
            "Frees up to fixed quotas, first tokens, then states, and stops at a certificate that is sufficient.",
            quota,
            ("tokens", "decode", "states"),
            "sglang==0.5.23",
        ),
        Policy(
            "tight",
            "Refuses by the totals, else frees the first so many with which the exact sweep finds windows.",
            tight,
            ("tokens", "decode", "tail", "states"),
            any_arena=True,
        ),
    )
}
"""All of them."""


class UnknownPolicyError(Exception):
    """No policy of that name; `found` and `fix` are what a command prints."""

    def __init__(self, name: str) -> None:
        near = get_close_matches(name, POLICIES, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        self.found = f"unknown policy {name!r}{hint}"
        self.fix = f"known: {', '.join(POLICIES)}"
        super().__init__(self.found)


def policy_named(name: str) -> Policy:
    """The policy of that name. Raises UnknownPolicyError."""
    if name not in POLICIES:
        raise UnknownPolicyError(name)
    return POLICIES[name]
