"""Who owns each live page, under a short label that stays the same through a whole history."""

from collections.abc import Iterable, Sequence
from string import ascii_uppercase
from typing import Literal, NamedTuple

from poolproof_spec.geometry import Role
from poolproof_spec.state import PoolState
from poolproof_spec.steps import Key
from poolproof_spec.units import VirtualId

OwnerKind = Literal["cached", "request", "group", "nobody"]
LONGEST_KEY = 6
"""Page keys of a prefix that are shown before the middle is left out."""


class Owner(NamedTuple):
    """One owner of pages."""

    kind: OwnerKind
    label: str
    """Short enough for a page's box: the node's letter, the request's name."""
    words: str
    """cached node A (1·2·3), request a, the open group, nobody: a leak."""


NOBODY = Owner("nobody", "!", "nobody: leaked")
GROUP = Owner("group", "g", "the open group")


def node_letters(states: Iterable[PoolState]) -> dict[Key, str]:
    """A letter for each node that some state has, in the order in which they first appear: A, B, ..., Z, AA, ..."""
    letters: dict[Key, str] = {}
    for state in states:
        for entry in sorted(state.entries, key=lambda entry: (len(entry.key), entry.key)):
            letters.setdefault(entry.key, _letter(len(letters)))
    return letters


def owners_of(state: PoolState, letters: dict[Key, str]) -> dict[tuple[Role, VirtualId], Owner]:
    """Owner of each owned (role, id)."""
    found: dict[tuple[Role, VirtualId], Owner] = {}
    for entry in state.entries:
        letter = letters.get(entry.key, "?")
        owner = Owner("cached", letter, f"cached node {letter} ({key_words(entry.key)})")
        state_ids = () if entry.state_id is None else (entry.state_id,)
        _own(found, owner, entry.ids, entry.swa_ids, state_ids)
    for hold in state.holds:
        _own(found, Owner("request", hold.name, f"request {hold.name}"), hold.ids, hold.swa_ids, hold.state_ids)
    _own(found, GROUP, state.queued.ids, state.queued.swa_ids, state.queued.state_ids)
    return found


def key_words(key: Key) -> str:
    """A prefix by its page keys: 1·2·3."""
    shown = [str(page) for page in key]
    if len(shown) > LONGEST_KEY:
        shown = [*shown[: LONGEST_KEY - 2], "…", shown[-1]]
        return f"{'·'.join(shown)}, {len(key)} pages"
    return "·".join(shown)


def _own(
    found: dict[tuple[Role, VirtualId], Owner],
    owner: Owner,
    ids: Sequence[VirtualId],
    swa_ids: Sequence[VirtualId],
    state_ids: Sequence[VirtualId],
) -> None:
    roles: tuple[tuple[Role, Sequence[VirtualId]], ...] = (("full", ids), ("swa", swa_ids), ("state", state_ids))
    for role, owned in roles:
        for identifier in owned:
            found.setdefault((role, identifier), owner)


def _letter(number: int) -> str:
    letters = ""
    while number >= 0:
        number, rest = divmod(number, len(ascii_uppercase))
        letters = ascii_uppercase[rest] + letters
        number -= 1
    return letters
