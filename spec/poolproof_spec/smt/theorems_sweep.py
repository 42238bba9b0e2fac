"""[T1], the induction step: what one member of the sweep guarantees, and that nothing ends lower (docs/spec.md#t1)."""

import z3

from poolproof_spec.smt.query import Query
from poolproof_spec.smt.symbols import any_member, is_window_of
from poolproof_spec.smt.terms import TERMS, QuotientTerms, times_keeps_order
from poolproof_spec.smt.theorem import Theorem
from poolproof_spec.sweep import sweep_member


def sweep_step() -> tuple[Query, ...]:
    """The two halves of the step."""
    need, member = any_member()
    position, arithmetic = z3.Int("position"), QuotientTerms()
    window, after = sweep_member(need, position, arithmetic)
    not_empty = need.pinned_count + need.loose_count > 0
    premises = (*member, position >= 0, not_empty, *arithmetic.definitions)
    shown = {"window start": window.start, "window end": window.end, "position after": after}
    sound = z3.And(
        is_window_of(need, window.start, window.end),
        window.start * need.page_bytes >= position,
        after == window.end * need.page_bytes,
    )
    start, end, higher = z3.Ints("other_start other_end other_position")
    other = (is_window_of(need, start, end), higher >= position, start * need.page_bytes >= higher)
    starts = arithmetic.ceil_at_most(position, need.page_bytes, start)
    ends = times_keeps_order(window.end, end, need.page_bytes)
    return (
        Query("sound", (*premises, window.fits), sound, shown),
        Query("fits", (*premises, *other, starts), window.fits, shown),
        Query("least", (*premises, *other, starts, ends), after <= end * need.page_bytes, shown),
    )


def division_lemmas() -> tuple[Query, ...]:
    """What terms.py says of quotients and products is true of the solver's own, and of nothing else."""
    dividend, divisor, bound, more, factor = z3.Ints("dividend divisor bound more factor")
    named = QuotientTerms()
    up, down = named.ceil_div(dividend, divisor), named.floor_div(dividend, divisor)
    own_up, own_down = TERMS.ceil_div(dividend, divisor), TERMS.floor_div(dividend, divisor)
    positive, no_premise = divisor >= 1, ()
    defined = (positive, *named.definitions)
    by_own = (positive, up == own_up, down == own_down)
    return (
        Query("own-is-a-quotient", by_own, z3.And(*named.definitions)),
        Query("the-only-one-up", defined, up == own_up),
        Query("the-only-one-down", defined, down == own_down),
        Query("ceil-at-most", named.definitions, named.ceil_at_most(dividend, divisor, bound)),
        Query("floor-at-least", named.definitions, named.floor_at_least(dividend, divisor, bound)),
        Query("times-keeps-order", no_premise, times_keeps_order(bound, more, factor)),
    )


THEOREMS = (
    Theorem(
        name="T0-division",
        claim="A quotient that a theorem names is the solver's own division, rounded up or down, and no other number: "
        "naming it assumes nothing. The three helping premises of terms.py hold always.",
        bounds="any dividend, any positive divisor",
        queries=division_lemmas,
    ),
    Theorem(
        name="T1-sweep-step",
        claim="Where the sweep's step fits, its window is one of the member above the position; and where any window "
        "of the member lies above that position or a higher one, the step fits and ends no higher.",
        bounds="any sizes, any pins, any position",
        queries=sweep_step,
    ),
)
