"""[T8, T9] What follows for capacity and for victims from the sweep being monotone (docs/spec.md#t8)."""

import z3
from msgspec.structs import replace

from poolproof_spec.smt.query import Query
from poolproof_spec.smt.symbols import any_member, at_most_one_anchor
from poolproof_spec.smt.terms import TERMS
from poolproof_spec.smt.theorem import Theorem
from poolproof_spec.sweep import sweep_member


def capacity_is_honest() -> tuple[Query, ...]:
    """T8. A count that fits while one more does not is the capacity: every smaller fits, no larger does.

    By T2's step for two demands that differ in token pages only, fits at a larger count implies fits at a smaller.
    """
    need, member = any_member()
    larger, smaller, per_token_page = z3.Ints("larger smaller pages_for_a_token_page")
    position, lower = z3.Ints("position position_at_smaller")
    more = replace(need, loose_count=need.loose_count + larger * per_token_page)
    less = replace(need, loose_count=need.loose_count + smaller * per_token_page)
    window, after = sweep_member(more, position, TERMS)
    window_less, after_less = sweep_member(less, lower, TERMS)
    premises = (
        *member,
        at_most_one_anchor(need),
        z3.Or(per_token_page == 0, per_token_page == 1),
        smaller >= 0,
        smaller <= larger,
        lower >= 0,
        lower <= position,
        window.fits,
    )
    fits = z3.Function("fits_with", z3.IntSort(), z3.BoolSort())
    available, other = z3.Ints("available other")
    monotone = (
        z3.Implies(z3.And(other <= available, fits(available)), fits(other)),
        z3.Implies(z3.And(available + 1 <= other, fits(other)), fits(available + 1)),
    )
    return (
        Query("fewer-fit-too", premises, z3.And(window_less.fits, after_less <= after)),
        Query(
            "scan-finds-the-largest",
            (*monotone, fits(available), z3.Not(fits(available + 1))),
            fits(other) == (other <= available),
        ),
    )


def irredundant_is_first_sufficient() -> tuple[Query, ...]:
    """T9. If a proper prefix of V sufficed, V without its last step would suffice too, and that step could be spared.

    Steps are numbered in order; a set of freed steps is a predicate. Nothing depends on the last step, so sparing it
    spares no other. Fits is monotone in what is freed (T2).
    """
    in_prefix = z3.Function("in_prefix", z3.IntSort(), z3.BoolSort())
    in_spared = z3.Function("in_spared", z3.IntSort(), z3.BoolSort())
    step, last, prefix_length = z3.Ints("step last_step prefix_length")
    prefix_fits, spared_fits = z3.Bools("prefix_fits spared_fits")
    definitions = (
        step >= 0,
        last >= 1,
        prefix_length >= 0,
        prefix_length < last,
        in_prefix(step) == (step < prefix_length),
        in_spared(step) == z3.And(step < last, step != last - 1),
    )
    subset = z3.Implies(in_prefix(step), in_spared(step))
    monotone = z3.Implies(z3.And(subset, prefix_fits), spared_fits)
    return (
        Query("prefix-is-within", definitions, subset),
        Query("spareable", (*definitions, subset, monotone, prefix_fits), spared_fits),
    )


THEOREMS = (
    Theorem(
        name="T8-capacity-honesty",
        claim="The number of token pages found by counting up to the first that does not fit is exactly what can "
        "be had.",
        bounds="any chain length by induction, any sizes",
        queries=capacity_is_honest,
    ),
    Theorem(
        name="T9-irredundant-is-first-sufficient",
        claim="Victims of which none can be spared have no proper prefix that suffices: P1+ implies P1.",
        bounds="any number of steps; fits monotone (T2)",
        queries=irredundant_is_first_sufficient,
    ),
)
