"""Receipts: what was decided about which formula, by what; and checking one again."""

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

import msgspec

from poolproof_spec.smt.prove import Decided, Ladder, Proof, prove, questions_of
from poolproof_spec.smt.query import Expected, Question
from poolproof_spec.smt.solver import Budget, Name, Rung, Settled, SmtError
from poolproof_spec.smt.theorem import Theorem
from poolproof_spec.smt.worker import Result
from poolproof_spec.verdict import Verdict

FORMAT = 1


class ReceiptError(SmtError):
    """A receipt that cannot be read."""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One solver's answer to one question."""

    name: str
    sha256: str
    """Of the question's text."""
    expected: Expected
    solver: Name
    version: str
    rung: str
    """The configuration that decided, or was tried last."""
    seed: int
    resources: int
    """Used by that attempt, in the solver's own units."""
    answer: Result


class Receipt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One theorem's proof, as a file. Holds no times: the same run writes the same bytes."""

    theorem: str
    queries: tuple[Entry, ...]
    verdict: str
    budget: Budget
    poolproof: str
    """Version that wrote it."""
    format: int = FORMAT

    def ladder(self, question: Question, name: Name) -> tuple[Rung, ...] | None:
        """The attempt that decided then: it should do so again."""
        for entry in self.queries:
            if (entry.sha256, entry.solver) == (question.sha256, name):
                return (Rung(entry.rung, entry.seed),)
        return None


class Verification(msgspec.Struct, frozen=True):
    """What became of a receipt when it was checked."""

    theorem: str
    verdict: Verdict
    """holds: green then, and every question decided the same again. violated: an answer or a verdict is not so."""
    reasons: tuple[str, ...] = ()


def receipt_of(proof: Proof, budget: Budget) -> Receipt:
    """What to write down about a proof."""
    return Receipt(
        theorem=proof.theorem.name,
        queries=tuple(
            _entry(decided, settled)
            for decided in proof.decided
            for settled in (decided.z3, decided.cvc5)
            if settled is not None
        ),
        verdict=str(proof.verdict),
        budget=budget,
        poolproof=_own_version(),
    )


def _entry(decided: Decided, settled: Settled) -> Entry:
    question, (rung, answer) = decided.asked.question, settled.last
    return Entry(
        name=question.name,
        sha256=question.sha256,
        expected=question.expected,
        solver=settled.solver,
        version=settled.version,
        rung=rung.name,
        seed=rung.seed,
        resources=answer.resource,
        answer=answer.result,
    )


def _own_version() -> str:
    try:
        return version("poolproof")
    except PackageNotFoundError:
        return "not installed"


def read_receipt(text: bytes, where: str) -> Receipt:
    """A receipt from a file's content. Raises ReceiptError."""
    again = "write it again: poolproof prove NAME --receipt DIR"
    try:
        receipt = msgspec.json.decode(text, type=Receipt)
    except msgspec.MsgspecError as error:
        raise ReceiptError(f"{where}: not a receipt: {error}", again) from None
    if receipt.format != FORMAT:
        raise ReceiptError(f"{where}: format {receipt.format}, this poolproof reads format {FORMAT}", again)
    return receipt


def verify(receipt: Receipt, theorems: Mapping[str, Theorem], budget: Budget | None = None) -> Verification:
    """Make the theorem's questions anew, compare the formulas, and decide them again by the attempts that did."""
    theorem = theorems.get(receipt.theorem)
    if theorem is None:
        return Verification(receipt.theorem, "unknown", ("there is no such theorem now",))
    changed = _changes(receipt, theorem)
    if changed:
        return Verification(receipt.theorem, "unknown", changed)
    second = any(entry.solver == "cvc5" for entry in receipt.queries)
    ladder: Ladder = receipt.ladder
    (proof,) = prove([theorem], budget or receipt.budget, second_opinion=second, ladder=ladder)
    return _compared(receipt, proof)


def _changes(receipt: Receipt, theorem: Theorem) -> tuple[str, ...]:
    """What tells the receipt's formulas from the theorem's own of today."""
    then = {entry.name: entry.sha256 for entry in receipt.queries}
    now = {asked.question.name: asked.question.sha256 for asked in questions_of(theorem)}
    return (
        *(f"{name}: the receipt does not speak of it" for name in sorted(now.keys() - then.keys())),
        *(f"{name}: no longer part of the theorem" for name in sorted(then.keys() - now.keys())),
        *(f"{name}: the formula has changed" for name in sorted(now.keys() & then.keys()) if now[name] != then[name]),
    )


def _compared(receipt: Receipt, proof: Proof) -> Verification:
    again = {(entry.name, entry.solver): entry.answer for entry in receipt_of(proof, receipt.budget).queries}
    differing = [(entry, again[entry.name, entry.solver]) for entry in receipt.queries]
    differing = [(entry, found) for entry, found in differing if found != entry.answer]
    verdict: Verdict = "unknown"
    if differing:
        if any({found, entry.answer} == {"sat", "unsat"} for entry, found in differing):
            verdict = "violated"
        told = (f"{entry.name}: {entry.solver} said {entry.answer}, now {found}" for entry, found in differing)
        return Verification(receipt.theorem, verdict, tuple(told))
    if str(proof.verdict) != receipt.verdict:
        claims = f"the receipt says {receipt.verdict}, its answers {proof.verdict}"
        return Verification(receipt.theorem, "violated", (claims,))
    if proof.verdict.green:
        return Verification(receipt.theorem, "holds")
    verdict = "violated" if proof.verdict.kind == "REFUTED" else "unknown"
    return Verification(receipt.theorem, verdict, (str(proof.verdict),))
