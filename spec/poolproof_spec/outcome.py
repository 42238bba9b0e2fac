"""What a target answered to an operation: one struct for each kind of answer, tagged; also their JSON format."""

from typing import Literal

import msgspec

from poolproof_spec.units import PageKey, VirtualId

StepKind = Literal["leaf", "tombstone", "state"]
BlockerKind = Literal["locks", "gates", "events"]


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One eviction step: all of a leaf; the SWA pages (and state) of a node; or the state of a node."""

    kind: StepKind
    key: tuple[PageKey, ...]
    """The node, by its page keys from the root."""


class Impossible(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="impossible"):
    """Would not fit even with every gate open, every event fired and every cached entry, locked or not, freed."""

    bound: Literal["bytes", "ids"]
    where: str
    """bytes: the member whose window does not fit. ids: the id space, `token` or `state`."""
    needed: int
    """bytes: end of the least window, in pages of that member. ids: ids demanded."""
    available: int
    """bytes: page_count of that member. ids: ids that could be had."""


class Blocked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="blocked"):
    """Would fit if all the named things were lifted, after freeing every entry that may then be freed."""

    by: tuple[BlockerKind, ...]


class Granted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="granted"):
    """The demand was met."""

    steps: tuple[Step, ...] = ()
    """Eviction steps in the order in which they were taken."""
    pages: tuple[tuple[str, VirtualId], ...] = ()
    """(member name, virtual id) of each new page; the harness writes to them next."""
    waited: tuple[str, ...] = ()
    """Events that were waited for; they count as fired afterwards."""
    compactions: tuple[tuple[str, int], ...] | None = None
    """(member name, batches of moves run in it); None where the target cannot tell."""
    walks: int | None = None
    """Eviction walks over the cache, the most for any one kind of step; None where the target cannot tell."""


class Rejected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="rejected"):
    """The demand was not met."""

    reason: Impossible | Blocked | None = None
    """None where the target gives no reason."""
    steps: tuple[Step, ...] = ()
    """Eviction steps taken all the same; a correct pool takes none."""
    waited: tuple[str, ...] = ()
    compactions: tuple[tuple[str, int], ...] | None = None
    walks: int | None = None


class Done(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="done"):
    """Carried out; `pages` are new ones (insert)."""

    pages: tuple[tuple[str, VirtualId], ...] = ()
    matched_pages: int | None = None
    """match, lock: pages of the prefix that were found; a lock that found none holds nothing."""
    waited: tuple[str, ...] = ()
    """Events that were waited for."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="answer"):
    """query, capacity: what the target says of its room."""

    token_pages: int
    """Token pages (FULL, with SWA where the chain has it) that could be had without evicting."""
    exact_granted: bool | None = None
    """capacity: an allocation of that many pages succeeded."""
    one_more_granted: bool | None = None
    """capacity: an allocation of one page more succeeded."""
    waited: tuple[str, ...] = ()
    """Events that were waited for."""


class Refused(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="refused"):
    """A bad call: nothing was changed."""

    error: str
    """Name of the error's class."""
    message: str


class Crashed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="crashed"):
    """The target failed in a way that is no answer: an exception, a time-out, garbage, a dead process."""

    reason: str


class Unsupported(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="unsupported"):
    """The target declares that it has no such operation; nothing is judged."""

    what: str


AnyOutcome = Granted | Rejected | Done | Answer | Refused | Crashed | Unsupported
