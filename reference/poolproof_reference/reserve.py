"""Which entries to evict for a demand: the first sufficient ones in policy order, less those that can be spared."""

from collections.abc import Sequence

from poolproof_spec.demand import Demand
from poolproof_spec.fits import fits
from poolproof_spec.outcome import Step
from poolproof_spec.state import PoolState
from poolproof_spec.steps import after_steps, policy_order, spared, tree_of


def victims(state: PoolState, demand: Demand) -> list[Step] | None:
    """V, in policy order: empty where the demand fits as is, None where no set of legal steps suffices."""
    order = policy_order(tree_of(state))
    stage = state
    for count in range(len(order) + 1):
        if fits(stage, demand):
            return spare(state, demand, order[:count])
        stage = after_steps(stage, order[count : count + 1])
    return None


def spare(state: PoolState, demand: Demand, steps: Sequence[Step]) -> list[Step]:
    """[P1+] Give back, most recently used first, every step without which the demand still fits.

    One pass is enough: what could not be spared of a larger set cannot be spared of a smaller one (T2).
    """
    kept = list(steps)
    for step in reversed(steps):
        if step in kept:
            fewer = spared(kept, step)
            if fits(after_steps(state, fewer), demand):
                kept = fewer
    return kept
