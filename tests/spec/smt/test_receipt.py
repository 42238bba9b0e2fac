"""Receipts: the same bytes each time, checked again, and found out when they do not say what is so."""

import msgspec
import pytest
import z3

from poolproof_spec.smt.prove import prove
from poolproof_spec.smt.query import Query
from poolproof_spec.smt.receipt import Receipt, ReceiptError, Verification, read_receipt, receipt_of, verify
from poolproof_spec.smt.solver import Budget
from poolproof_spec.smt.theorem import Theorem

SMALL = Budget(z3_units=2_000_000, cvc5_units=200_000, cpu_s=20)
A, B = z3.Ints("a b")


def theorem(factor: int = 2, name: str = "X-grows", premise: object = True) -> Theorem:
    return Theorem(name, "It grows.", "any", lambda: (Query("grows", (A >= 1, premise), factor * A > A),))


def receipt(of: Theorem, budget: Budget = SMALL) -> Receipt:
    (proof,) = prove([of], budget)
    return receipt_of(proof, budget)


def verified(written: Receipt, now: Theorem) -> Verification:
    return verify(written, {now.name: now})


@pytest.fixture(scope="module")
def good() -> Receipt:
    return receipt(theorem())


def test_a_receipt_says_what_decided_what(good: Receipt) -> None:
    assert good.verdict == "PROVED"
    assert [(e.name, e.solver, e.answer) for e in good.queries] == [
        ("grows", "z3", "unsat"),
        ("grows", "cvc5", "unsat"),
        ("grows.premises", "z3", "sat"),
        ("grows.premises", "cvc5", "sat"),
    ]
    assert all(len(entry.sha256) == 64 and entry.version and entry.rung for entry in good.queries)


def test_the_same_run_writes_the_same_bytes(good: Receipt) -> None:
    assert msgspec.json.encode(receipt(theorem())) == msgspec.json.encode(good)


def test_a_receipt_read_back_holds(good: Receipt) -> None:
    again = read_receipt(msgspec.json.encode(good), "r.json")
    assert again == good
    assert verified(again, theorem()) == Verification("X-grows", "holds")


def test_a_theorem_that_has_changed_is_unknown(good: Receipt) -> None:
    assert verified(good, theorem(factor=3)).reasons == ("grows: the formula has changed",)
    assert verified(good, theorem(factor=3)).verdict == "unknown"
    assert verified(good, theorem(premise=B > A)).verdict == "unknown"


def test_a_question_that_is_new_or_gone_is_unknown(good: Receipt) -> None:
    fewer = msgspec.structs.replace(good, queries=good.queries[:2])
    assert verified(fewer, theorem()).reasons == ("grows.premises: the receipt does not speak of it",)
    more = msgspec.structs.replace(good.queries[0], name="shrinks")
    wider = msgspec.structs.replace(good, queries=(*good.queries, more))
    assert verified(wider, theorem()).reasons == ("shrinks: no longer part of the theorem",)


def test_a_theorem_that_is_gone_is_unknown(good: Receipt) -> None:
    assert verified(good, theorem(name="X-other")) == Verification(
        "X-grows", "unknown", ("there is no such theorem now",)
    )


def test_a_receipt_that_claims_another_answer_is_violated(good: Receipt) -> None:
    wrong = receipt(theorem(factor=1))
    assert wrong.verdict == "REFUTED(grows)"
    forged = msgspec.structs.replace(
        wrong, verdict="PROVED", queries=tuple(msgspec.structs.replace(e, answer=e.expected) for e in wrong.queries)
    )
    found = verified(forged, theorem(factor=1))
    assert found.verdict == "violated"
    assert "grows: z3 said unsat, now sat" in found.reasons


def test_a_receipt_that_claims_another_verdict_is_violated() -> None:
    forged = msgspec.structs.replace(receipt(theorem(factor=1)), verdict="PROVED")
    found = verified(forged, theorem(factor=1))
    assert found == Verification("X-grows", "violated", ("the receipt says PROVED, its answers REFUTED(grows)",))


def test_a_true_receipt_of_what_is_not_proved_does_not_hold() -> None:
    assert verified(receipt(theorem(factor=1)), theorem(factor=1)).verdict == "violated"
    assert verified(receipt(theorem(), Budget(z3_units=1, cvc5_units=1)), theorem()).verdict == "unknown"


def test_a_limit_too_small_to_check_again_is_unknown(good: Receipt) -> None:
    known = theorem()
    found = verify(good, {known.name: known}, Budget(z3_units=1, cvc5_units=1))
    assert found.verdict == "unknown"
    assert "grows: z3 said unsat, now unknown" in found.reasons


def test_without_a_second_opinion_none_is_asked_for_again() -> None:
    (proof,) = prove([theorem()], SMALL, second_opinion=False)
    written = receipt_of(proof, SMALL)
    assert {entry.solver for entry in written.queries} == {"z3"}
    assert verified(written, theorem()).verdict == "holds"


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"theorem": "T1"}', b'{"theorem": 1}'])
def test_what_is_no_receipt_says_so(text: bytes) -> None:
    with pytest.raises(ReceiptError, match="r.json: not a receipt") as raised:
        read_receipt(text, "r.json")
    assert "poolproof prove" in raised.value.fix


def test_another_format_says_so(good: Receipt) -> None:
    with pytest.raises(ReceiptError, match="format 2, this poolproof reads format 1"):
        read_receipt(msgspec.json.encode(msgspec.structs.replace(good, format=2)), "r.json")
