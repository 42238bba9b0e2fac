"""The signature of a failure's cause: what of its last step tells it from other failures of the same rule.

It is read off the last transition of a history. Of a shrunk history every operation was needed for the failure, so
what its last state shows (a closed gate, an open group, a lock) took part in it. A signature is one line:

    tri | states | granted | none needed | evicts leaf | gate closed
    layout, what is asked, the answer, what the rule finds (without its numbers), victims, circumstances

Two failures of one rule with the same line are one kind. The tree core and the mode are not part of it: the same kind
is counted in each cell that shows it. Sizes are not part of it either, but for pages of several tokens.
"""

import re
from collections.abc import Iterator

from poolproof_conformance.run import HistoryRun, StepRecord
from poolproof_spec.geometry import layout_name
from poolproof_spec.operation import AnyOperation, operation_name
from poolproof_spec.state import PoolState

SEPARATOR = " | "
ASKED = {"alloc": "tokens", "extend": "tokens", "decode": "decode", "alloc_states": "states"}
"""Demands in the words of a signature: an extend that asks for n tokens is cut down to an alloc of n."""
CORE_LENGTH = 4
"""Parts of a signature that shrinking must keep."""
_LISTS = re.compile(r" ?\[[^\]]*\]")
_SUFFICIENT = re.compile(r"\d+ evicted, (\d+) suffice")
_NUMBERS = re.compile(r"\d+")


def failing_step(run: HistoryRun, property_name: str, like: str = "") -> tuple[StepRecord, str] | None:
    """The first step that violates the rule, and what is found; only one with the core of `like`, if given."""
    core = tuple(like.split(SEPARATOR)[:CORE_LENGTH])
    for step in run.steps:
        for finding in step.findings:
            if finding.property != property_name or finding.verdict != "violated":
                continue
            if not like or core_of(step, finding.message) == core:
                return step, finding.message
    return None


def signature_of(step: StepRecord, message: str) -> str:
    """The signature of a step in which a rule finds `message`."""
    return SEPARATOR.join((*core_of(step, message), *circumstances(step)))


def core_of(step: StepRecord, message: str) -> tuple[str, ...]:
    """What a smaller history must share to be taken for the same failure: layout, demand, answer, what is found."""
    return layout_name(step.before.geometry), asked(step.operation), answered(step), wording(message)


def asked(operation: AnyOperation) -> str:
    """What kind of thing is asked for."""
    name = operation_name(operation)
    return ASKED.get(name, name)


def answered(step: StepRecord) -> str:
    """The kind of answer."""
    return "skipped" if step.outcome is None else str(step.outcome.__struct_config__.tag)


def wording(message: str) -> str:
    """What a rule finds, without its numbers; of too many victims, whether any were needed."""
    if (sufficient := _SUFFICIENT.fullmatch(message)) is not None:
        return "none needed" if sufficient[1] == "0" else "fewer suffice"
    found = message.removeprefix("rejected, and ").removeprefix("evicted, and ")
    return _NUMBERS.sub("#", _LISTS.sub("", found))


def circumstances(step: StepRecord) -> Iterator[str]:
    """What else the state before shows that a cause may hang on, and the kinds of victims."""
    transition = step.transition
    victims = sorted({victim.kind for victim in transition.steps}) if transition is not None else []
    if victims:
        yield f"evicts {' and '.join(victims)}"
    yield from _circumstances_of(step.before)


def _circumstances_of(state: PoolState) -> Iterator[str]:
    if any(not member.gate_open for member in state.members):
        yield "gate closed"
    if state.group_open:
        yield "group open"
    if state.flights:
        yield "writer in flight" if any(flight.writes for flight in state.flights) else "reader in flight"
    if any(member.pending for member in state.members):
        yield "page pending"
    if any(entry.full_locks or entry.swa_locks or entry.state_locks for entry in state.entries):
        yield "prefix locked"
    if state.geometry.has_role("swa") and _is_hollow(state):
        yield "FULL without SWA"
    if state.geometry.page_tokens > 1:
        yield "several tokens a page"


def _is_hollow(state: PoolState) -> bool:
    """Whether some cached node or request has FULL pages whose SWA pages are gone."""
    cached = any(len(entry.swa_ids) < len(entry.ids) for entry in state.entries)
    return cached or any(len(hold.swa_ids) < len(hold.ids) for hold in state.holds)
