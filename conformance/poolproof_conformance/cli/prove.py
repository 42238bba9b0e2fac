"""`poolproof prove`: the theorems, decided by z3 and again by cvc5."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from poolproof_conformance.atomic_file import write_atomically
from poolproof_conformance.cli.terminal import (
    EXIT_CODES,
    EXIT_INTERRUPTED,
    coloured,
    json_option,
    note,
    progress,
    say,
    write_json,
)
from poolproof_conformance.errors import PoolproofError
from poolproof_spec import verdict as whole

if TYPE_CHECKING:
    from poolproof_spec.smt.prove import Decided, Proof
    from poolproof_spec.smt.solver import Budget
    from poolproof_spec.smt.theorem import Verdict

LARGEST_BUDGET = 2**32 - 1
"""z3 counts resource units in 32 bits."""
COLOURS = {"PROVED": "green", "BOUNDED": "green", "REFUTED": "red"}


@click.command(
    epilog="Exit codes: 0 all proved, or bounded; 1 one is refuted; 2 unknown, timed out, vacuous or in error. "
    "T1 names all theorems whose names begin with T1-."
)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@json_option
@click.option(
    "--smt2", "smt2_folder", type=click.Path(file_okay=False, path_type=Path), help="Write every question as SMT-LIB 2."
)
@click.option(
    "--receipt",
    "receipt_folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write a receipt for each theorem.",
)
@click.option(
    "--verify",
    "receipts",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="RECEIPT",
    help="Check a receipt instead; may be given several times.",
)
@click.option("--no-cvc5", is_flag=True, help="Ask for no second opinion.")
@click.option(
    "--budget",
    "units",
    type=click.IntRange(1, LARGEST_BUDGET),
    help="z3's resource units for one attempt at a question; cvc5's in proportion.  [default: 40000000]",
)
@click.option("--witness", "witnesses", is_flag=True, help="Print values that satisfy the premises of each query.")
def prove(
    names: tuple[str, ...],
    json_path: Path | None,
    smt2_folder: Path | None,
    receipt_folder: Path | None,
    receipts: tuple[Path, ...],
    no_cvc5: bool,
    units: int | None,
    witnesses: bool,
) -> int:
    """Prove the theorems of the specification, all of them if none is named.

    Each is a set of questions to z3, which must answer that no counterexample exists, and that the premises can
    hold. cvc5 then decides the same texts; where the two contradict each other, the verdict is ERROR.

    \b
    Examples:
      poolproof prove
      poolproof prove T1 T7 --witness
      poolproof prove --json proofs.json --smt2 questions --receipt receipts
      poolproof prove --verify receipts/T1-sweep-step.json
    """
    if receipts and (names or json_path or smt2_folder or receipt_folder or no_cvc5 or witnesses):
        raise click.UsageError("--verify checks receipts alone: give no NAME and no other option but --budget")
    with _errors_told():
        from poolproof_spec.smt.solver import Budget, budget_of, require_installed

        # Here the theorems' own files import z3: say what is missing rather than fail there.
        require_installed(("z3",) if no_cvc5 else ("z3", "cvc5"))
        if receipts:
            return _verify(receipts, budget_of(units) if units else None)
        budget = budget_of(units) if units else Budget()
        try:
            proofs = _prove(names, budget, no_cvc5, witnesses, smt2_folder, receipt_folder)
        except KeyboardInterrupt:
            note("interrupted: what is printed above is complete, the rest is unknown; no JSON written.")
            return EXIT_INTERRUPTED
    write_json(json_path, [proof.row() for proof in proofs])
    verdict = whole.worst(_as_whole(proof.verdict) for proof in proofs)
    say(f"prove: {coloured(verdict)}")
    return EXIT_CODES[verdict]


@contextmanager
def _errors_told() -> Iterator[None]:
    """What the specification's side says is wrong, as an error of this command."""
    from poolproof_spec.smt.solver import SmtError

    try:
        yield
    except SmtError as error:
        raise PoolproofError(error.found, error.fix) from None


def _prove(
    names: Sequence[str],
    budget: Budget,
    no_cvc5: bool,
    witnesses: bool,
    smt2_folder: Path | None,
    receipt_folder: Path | None,
) -> list[Proof]:
    from poolproof_spec.smt.prove import prove as prove_all
    from poolproof_spec.smt.receipt import receipt_of
    from poolproof_spec.smt.registry import select

    theorems, proofs, started = select(names), [], time.monotonic()
    width = max(len(theorem.name) for theorem in theorems)
    with progress("theorems", len(theorems)) as told:
        for proof in prove_all(theorems, budget, second_opinion=not no_cvc5):
            proofs.append(proof)
            _tell(proof, width, witnesses)
            if smt2_folder is not None:
                for each in proof.decided:
                    name = f"{proof.theorem.name}.{each.asked.question.name}.smt2"
                    write_atomically(smt2_folder / name, each.asked.question.text)
            if receipt_folder is not None:
                text = msgspec.json.format(msgspec.json.encode(receipt_of(proof, budget)), indent=2).decode()
                write_atomically(receipt_folder / f"{proof.theorem.name}.json", text + "\n")
            told(len(proofs))
    say()
    say(_summary(proofs, time.monotonic() - started))
    return proofs


def _tell(proof: Proof, width: int, witnesses: bool) -> None:
    row, verdict = proof.row(), proof.verdict
    kind = f"{verdict.kind}({verdict.detail})" if verdict.kind == "BOUNDED" else verdict.kind
    shown = click.style(f"{kind:12}", fg=COLOURS.get(verdict.kind, "yellow"))
    say(f"{shown}{row.name:{width}}  {row.seconds:6.2f} s  cvc5: {row.cvc5:9}  {row.bounds}")
    if not verdict.green:
        say(f"    claim: {row.claim}")
    for each in proof.decided:
        if not each.verdict.green:
            say(f"    {each.verdict.kind}: {each.verdict.detail}")
        if each.cvc5 and each.asked.role != "premises" and each.agreement == "unknown" and each.verdict.green:
            say(f"    cvc5 does not decide {each.asked.question.name}: {each.cvc5.answer.reason}")
        _tell_instance(each, witnesses)
    if proof.failure:
        say(f"    {proof.failure}")


def _tell_instance(decided: Decided, witnesses: bool) -> None:
    """A counterexample always, a witness when asked for."""
    refuted = decided.asked.role == "refutation"
    if decided.instance and (refuted or witnesses):
        say(f"    {decided.asked.question.name}: {'counterexample' if refuted else 'witness'}")
        for name, value in decided.instance.items():
            say(f"      {name} = {value}")


def _summary(proofs: Sequence[Proof], seconds: float) -> str:
    counts: dict[str, int] = {}
    for proof in proofs:
        counts[proof.verdict.kind] = counts.get(proof.verdict.kind, 0) + 1
    told = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    agreeing = sum(proof.agreement == "agrees" for proof in proofs)
    return f"{len(proofs)} theorems: {told}; cvc5 agrees on {agreeing}; {seconds:.1f} s"


def _as_whole(verdict: Verdict) -> whole.Verdict:
    """Only a refutation is a violation; what is neither proved nor refuted is unknown."""
    return "holds" if verdict.green else "violated" if verdict.kind == "REFUTED" else "unknown"


def _verify(paths: Sequence[Path], budget: Budget | None) -> int:
    from poolproof_spec.smt import registry
    from poolproof_spec.smt.receipt import read_receipt, verify

    read = []
    for path in paths:
        try:
            read.append(read_receipt(path.read_bytes(), str(path)))
        except OSError as error:
            raise PoolproofError(f"{path}: cannot be read: {error.strerror}", "give the path of a receipt") from None
    verdicts = []
    with progress("receipts", len(read)) as told:
        for path, receipt in zip(paths, read, strict=True):
            found = verify(receipt, registry.THEOREMS, budget)
            verdicts.append(found.verdict)
            say(f"{coloured(found.verdict)}: {path}: {receipt.theorem} {receipt.verdict}")
            for reason in found.reasons:
                say(f"    {reason}")
            told(len(verdicts))
    return EXIT_CODES[whole.worst(verdicts)]
