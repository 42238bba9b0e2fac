"""[T7] Page counts of a demand are exact, and how far a conservative probe is off (docs/spec.md#t7)."""

import z3

from poolproof_spec.demand import decode_pages, extend_pages, tail_pages, token_pages
from poolproof_spec.smt.query import Query, Witness
from poolproof_spec.smt.terms import TERMS
from poolproof_spec.smt.theorem import Theorem


def counts_are_exact() -> tuple[Query, ...]:
    """A page is new iff the sequence has a token in it and the prefix has none; such pages are counted, page by page.

    Token i lies in page floor(i / t). Page p has a token of the first n iff p * t < n.
    """
    t, prefix, seq, tail, page = z3.Ints("page_tokens prefix_len seq_len tail page")
    sizes = (t >= 1, prefix >= 0, prefix <= seq, page >= 0)
    is_new = z3.And(page * t < seq, z3.Not(page * t < prefix))
    first, last = TERMS.ceil_div(prefix, t), TERMS.ceil_div(seq, t)
    touched = z3.And(is_new, (page + 1) * t > seq - tail)
    first_touched = TERMS.maximum(first, TERMS.floor_div(seq - tail, t))
    return (
        Query("extend-pages-are-new-ones", sizes, is_new == z3.And(first <= page, page < last)),
        Query("extend-counts-them", sizes, extend_pages(prefix, seq, t, TERMS) == last - first),
        Query(
            "alloc-is-extend-of-nothing", sizes, token_pages(seq, t, TERMS) == extend_pages(z3.IntVal(0), seq, t, TERMS)
        ),
        Query(
            "decode-is-extend-by-one",
            (t >= 1, seq >= 1),
            decode_pages(seq, t, TERMS) == extend_pages(seq - 1, seq, t, TERMS),
        ),
        Query(
            "tail-pages-are-touched-ones",
            (*sizes, tail >= 1, tail <= seq),
            touched == z3.And(first_touched <= page, page < last),
        ),
        Query(
            "tail-counts-them",
            (*sizes, tail >= 1, tail <= seq - prefix),
            tail_pages(prefix, seq, tail, t, TERMS) == last - first_touched,
        ),
        Query("no-tail-no-pages", sizes, tail_pages(prefix, seq, z3.IntVal(0), t, TERMS) == 0),
    )


def probes_are_off() -> tuple[Query, ...]:
    """Per request, in tokens: new tokens + t overstates an extend by 1 to 2t - 1; a page a request a
    decode by 0 or t.
    """
    t, prefix, seq = z3.Ints("page_tokens prefix_len seq_len")
    sizes = (t >= 1, prefix >= 0, prefix <= seq)
    extend_off = (seq - prefix) + t - extend_pages(prefix, seq, t, TERMS) * t
    decode_off = t - decode_pages(seq, t, TERMS) * t
    return (
        Query("extend-probe", sizes, z3.And(extend_off >= 1, extend_off <= 2 * t - 1)),
        Query("decode-probe", (t >= 1, seq >= 1), z3.Or(decode_off == 0, decode_off == t)),
    )


def probes_reach_their_bounds() -> tuple[Witness, ...]:
    """The bounds are reached: a decode probe asks for a page where none is needed."""
    t, prefix, seq = z3.Ints("page_tokens prefix_len seq_len")
    sizes = (t >= 2, prefix >= 0, prefix < seq)
    return (
        Witness("decode-page-for-nothing", (t >= 2, seq >= 1, decode_pages(seq, t, TERMS) == 0)),
        Witness(
            "extend-off-by-most",
            (*sizes, (seq - prefix) + t - extend_pages(prefix, seq, t, TERMS) * t == 2 * t - 1),
        ),
    )


THEOREMS = (
    Theorem(
        name="T7-rounding-is-exact",
        claim="alloc, extend, decode and the SWA tail count exactly the pages that are new, and of these that are "
        "touched.",
        bounds="any lengths, any page size",
        queries=counts_are_exact,
    ),
    Theorem(
        name="T7-probes-are-off",
        claim="Per request, new tokens + t overstates an extend by 1 to 2t - 1 tokens, and a page for each "
        "decoding request "
        "overstates it by a page wherever none is needed.",
        bounds="any lengths, any page size",
        queries=probes_are_off,
        witnesses=probes_reach_their_bounds,
    ),
)
