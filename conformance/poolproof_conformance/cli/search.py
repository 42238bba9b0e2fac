"""`poolproof search`: the smallest history on which a policy breaks a property, found by z3 and replayed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from poolproof_conformance.cli.options import layout_option, out_option
from poolproof_conformance.cli.terminal import (
    EXIT_CODES,
    EXIT_INTERRUPTED,
    coloured,
    json_option,
    note,
    say,
    write_json,
)
from poolproof_conformance.errors import PoolproofError, TargetNotInstalledError
from poolproof_conformance.target_names import resolve_target
from poolproof_conformance.wording import arena_words, call_words, plural
from poolproof_spec.catalogue import property_named
from poolproof_spec.geometry import LAYOUTS
from poolproof_spec.policies_known import DEMAND_KINDS, POLICIES, DemandKind, Policy
from poolproof_spec.verdict import Verdict

if TYPE_CHECKING:
    from poolproof_conformance.adapter import Adapter
    from poolproof_conformance.policy_search import PolicySearch

LONGEST_BOUND = 8
"""Operations; each one more costs several times the time of the one before."""
LARGEST_BUDGET = 2**32 - 1
"""z3 counts resource units in 32 bits."""


@click.command(
    epilog="Exit codes: 0 no counterexample up to the bound; 1 one was found, and replayed; 2 unknown, or an error. "
    f"Policies: {', '.join(POLICIES)}."
)
@click.argument("name", metavar="POLICY", type=click.Choice(list(POLICIES)))
@click.option(
    "--property", "code", type=click.Choice(["P1", "P2", "P3"]), required=True, help="The property to look for."
)
@click.option(
    "--operations",
    "bound",
    type=click.IntRange(1, LONGEST_BOUND),
    default=3,
    show_default=True,
    help="Longest history, the demand included.",
)
@layout_option
@click.option(
    "--demand",
    "demands",
    type=click.Choice(DEMAND_KINDS),
    multiple=True,
    help="Kind of demand; may be given several times. All that the policy has rules for if not given.",
)
@click.option(
    "--no-target", is_flag=True, help="Replay on the reference alone, not on the release that has the policy."
)
@click.option(
    "--budget",
    "units",
    type=click.IntRange(1, LARGEST_BUDGET),
    help="z3's resource units for one attempt at a question.",
)
@out_option
@json_option
def search(
    name: str,
    code: str,
    bound: int,
    layouts: tuple[str, ...],
    demands: tuple[DemandKind, ...],
    no_target: bool,
    units: int | None,
    folder: Path,
    json_path: Path | None,
) -> int:
    """Let z3 find the smallest history on which POLICY breaks a property: fewest operations, then smallest arena.

    Sizes are unbounded, page sizes are those of one and two layers. A model is shown only after it was replayed: in
    the reference with the policy in it, and on the installed release that has the policy.

    \b
    Examples:
      poolproof search component-shortfall --property P2
      poolproof search quota --property P1 --layout tri --demand tokens
      poolproof search tight --property P1 --operations 4
    """
    policy = POLICIES[name]
    with _errors_told(), ExitStack() as stack:
        from poolproof_spec.smt.solver import budget_of, require_installed

        # Here the search's own files import z3: say what is missing rather than fail there.
        require_installed(("z3",))
        from poolproof_conformance.policy_search import search_policy

        target = None if no_target else _release(policy, stack)
        try:
            done = search_policy(
                policy,
                code,
                bound=bound,
                layouts=layouts or tuple(LAYOUTS),
                demands=demands or DEMAND_KINDS,
                target=target,
                folder=folder,
                budget=budget_of(units) if units else None,
            )
        except KeyboardInterrupt:
            note("interrupted: nothing was decided; no JSON written.")
            return EXIT_INTERRUPTED
    _tell(policy, code, bound, done)
    write_json(json_path, done.row)
    return EXIT_CODES[_as_verdict(done)]


@contextmanager
def _errors_told() -> Iterator[None]:
    """What the specification's side says is wrong, as an error of this command."""
    from poolproof_spec.smt.solver import SmtError

    try:
        yield
    except SmtError as error:
        raise PoolproofError(error.found, error.fix) from None


def _release(policy: Policy, stack: ExitStack) -> Adapter | None:
    """The installed release that has the policy, opened; None, and a word about it, where there is none."""
    if policy.release is None:
        return None
    try:
        return stack.enter_context(resolve_target(policy.release).opened())
    except TargetNotInstalledError as error:
        note(f"{error.found}: replayed on the reference alone; {error.fix}")
        return None


def _as_verdict(done: PolicySearch) -> Verdict:
    if done.row.verdict == "REFUTED":
        return "violated"
    return "holds" if done.row.verdict.startswith("BOUNDED") else "unknown"


def _tell(policy: Policy, code: str, bound: int, done: PolicySearch) -> None:
    row = done.row
    say(f"{policy.name}: {policy.claim}")
    say(f"{code} {row.property}: {property_named(code).claim}")
    if done.trace is None:
        say(f"{coloured(_as_verdict(done))}: {row.verdict}; {_bound_words(bound)}")
    else:
        size = f"{plural(row.operations, 'operation')}, {plural(row.entries or 0, 'cached node')}"
        say(f"{coloured('violated')}: {size}: {done.message}")
        say(f"  {arena_words(done.trace.geometry)}")
        for operation in done.trace.operations:
            say(f"  {call_words(operation)}")
        where = "the reference with this policy" + (f" and {policy.release}" if row.replayed.target else "")
        say(f"  replayed on {where}; {row.trace_file}")
    if done.trace is not None and done.open:
        say(f"  perhaps not the smallest: {plural(done.open, 'question')} left open")
    errors = f"{plural(done.errors, 'model')} that did not reproduce"
    say(f"{plural(done.questions, 'question')}, {errors}; {row.seconds:.1f} s")


def _bound_words(bound: int) -> str:
    prefixes = plural(bound - 1, "cached prefix").replace("prefixs", "prefixes")
    return f"at most {plural(bound, 'operation')}, so {prefixes} of one or two nodes; any arena, any sizes"
