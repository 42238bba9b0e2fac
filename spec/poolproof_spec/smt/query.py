"""What is asked of solvers: each question is one SMT-LIB 2 text, which every solver decides and anybody can check."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import z3

Expected = Literal["sat", "unsat"]
Value = int | bool | str
"""A value in a model; text where it is neither an integer nor a truth."""
Replayed = Literal["confirmed", "contradicted", "undecided"]


@dataclass(frozen=True)
class Question:
    """One text for the solvers, and the answer that the theorem needs."""

    name: str
    text: str
    """SMT-LIB 2, ending in (check-sat); the same text whenever and in whatever order it is made."""
    expected: Expected

    @property
    def sha256(self) -> str:
        """Names the formula in receipts."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class Query:
    """For all values: the premises imply the conclusion."""

    name: str
    """Unique in its theorem; letters, digits and dashes."""
    premises: Sequence[Any]
    """z3 terms of sort Bool. Together they must be satisfiable, else the query says nothing."""
    conclusion: Any
    """A z3 term of sort Bool."""
    shown: Mapping[str, Any] = field(default_factory=dict)
    """Further quantities to print with a counterexample, beside the constants."""

    @property
    def refuting(self) -> tuple[Any, ...]:
        """The facts of a counterexample: the premises, and the conclusion denied."""
        return (*self.premises, z3.Not(_truth(self.conclusion)))


@dataclass(frozen=True, eq=False)
class Witness:
    """There are values for which all facts hold: "this does happen", or "that formula is too small"."""

    name: str
    """Unique in its theorem, queries included."""
    facts: Sequence[Any]
    """z3 terms of sort Bool."""
    shown: Mapping[str, Any] = field(default_factory=dict)
    """Further quantities to print with the witness."""


def script(assertions: Sequence[Any]) -> str:
    """The text that asks whether all assertions hold at once."""
    terms = [_truth(assertion) for assertion in assertions]
    declared = sorted(declaration.sexpr() for declaration in _symbols(terms))
    asserted = [f"(assert {term.sexpr()})" for term in terms]
    return "\n".join([f"(set-logic {_logic(terms)})", *declared, *asserted, "(check-sat)", ""])


def holds_in(facts: Sequence[Any], model: Mapping[str, Value]) -> Replayed:
    """Whether all facts become true when the model's values are put in; undecided where simplifying does not tell."""
    results = [_put_in(_truth(fact), model) for fact in facts]
    if any(z3.is_false(result) for result in results):
        return "contradicted"
    return "confirmed" if all(z3.is_true(result) for result in results) else "undecided"


def quantities(subject: Query | Witness, model: Mapping[str, Value]) -> dict[str, str]:
    """A model as named values to print: the constants, then what the query wants shown."""
    values = {name: str(value) for name, value in sorted(model.items())}
    return values | {name: str(_put_in(term, model)) for name, term in subject.shown.items()}


def _truth(value: Any) -> Any:
    return value if z3.is_expr(value) else z3.BoolVal(value)


def _put_in(term: Any, model: Mapping[str, Value]) -> Any:
    """The term with values for its constants: the model's, and where it gives none (any will do) 0 or false."""
    if not z3.is_expr(term):
        return term
    pairs = []
    for declaration in _symbols([term]):
        if declaration.arity() == 0 and declaration.range() == z3.IntSort():
            pairs.append((declaration(), z3.IntVal(model.get(declaration.name(), 0))))
        elif declaration.arity() == 0 and declaration.range() == z3.BoolSort():
            pairs.append((declaration(), z3.BoolVal(bool(model.get(declaration.name(), False)))))
    return z3.simplify(z3.substitute(term, *pairs))


def _subterms(terms: Sequence[Any]) -> Iterator[Any]:
    seen: set[int] = set()
    waiting = list(terms)
    while waiting:
        term = waiting.pop()
        if term.get_id() not in seen:
            seen.add(term.get_id())
            yield term
            waiting += [term.body()] if z3.is_quantifier(term) else term.children()


def _symbols(terms: Sequence[Any]) -> list[Any]:
    """Declarations of all constants and functions that are not the solver's own."""
    found = {
        term.decl().get_id(): term.decl()
        for term in _subterms(terms)
        if z3.is_app(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED
    }
    return list(found.values())


def _logic(terms: Sequence[Any]) -> str:
    """The smallest logic that we tell apart: integers, with functions or quantifiers where the terms have them."""
    quantified = functions = other = False
    for term in _subterms(terms):
        quantified |= z3.is_quantifier(term)
        functions |= z3.is_app(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED and term.num_args() > 0
        other |= not z3.is_quantifier(term) and term.sort() not in (z3.IntSort(), z3.BoolSort())
    if other:
        return "ALL"
    return ("" if quantified else "QF_") + ("UF" if functions else "") + "NIA"
