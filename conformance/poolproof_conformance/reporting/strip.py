"""The arena of one state as runs of pages, a lane for each member: what a byte strip shows, in any medium."""

from collections.abc import Iterator
from itertools import groupby
from typing import Literal

import msgspec

from poolproof_conformance.reporting.owners import NOBODY, OwnerKind, owners_of
from poolproof_spec.geometry import Member
from poolproof_spec.occupancy import pinned_pages
from poolproof_spec.state import PoolState
from poolproof_spec.steps import Key

MOST_RUNS = 48
"""Runs of a lane that are told apart by their owners; of more, neighbours of one kind are shown as one."""

PageKind = Literal["sink", "live", "pending", "free"]


class PageRun(msgspec.Struct, frozen=True, kw_only=True):
    """Neighbouring pages of one member of which the same is true."""

    start: int
    """First page."""
    end: int
    """One past the last page."""
    start_byte: int
    end_byte: int
    kind: PageKind
    """sink: never handed out. pending: vacated, a reader in flight may still read it."""
    owner_kind: OwnerKind | None = None
    """Of live pages."""
    label: str = ""
    """The owner's letter or name; the event of pending pages."""
    owner: str = ""
    """The owner in words."""
    pinned: bool = False
    """Cannot move now."""

    @property
    def words(self) -> str:
        """Pages, bytes, and what they are."""
        count = self.end - self.start
        pages = f"page {self.start}" if count == 1 else f"pages {self.start} to {self.end - 1}"
        return f"{pages}, bytes {self.start_byte} to {self.end_byte}: {self.what}"

    @property
    def what(self) -> str:
        """What the pages are, in words."""
        match self.kind:
            case "live":
                text = f"live, {self.owner}"
            case "pending":
                text = f"pending until {self.label} fires"
            case "sink":
                text = "padding sink, never handed out"
            case _:
                text = "free"
        return f"{text}, pinned" if self.pinned else text


class LaneWindow(msgspec.Struct, frozen=True, kw_only=True):
    """The least window that the sweep gives a member."""

    start: int
    end: int
    """[start, end) in pages."""
    start_byte: int
    end_byte: int
    fits: bool


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """One member on its own page grid."""

    member: str
    role: str
    page_bytes: int
    first_page: int
    page_count: int
    kind: str
    """up, float or down."""
    anchored: bool
    gate_open: bool
    runs: tuple[PageRun, ...]
    """Low bytes to high, from page 0 to page_count."""
    window: LaneWindow | None = None
    """Of the deciding pass of the sweep, where a demand is looked at."""


class Strip(msgspec.Struct, frozen=True, kw_only=True):
    """The whole arena in one state."""

    total_bytes: int
    lanes: tuple[Lane, ...]
    """Low bytes to high."""


def strip_of(
    state: PoolState, letters: dict[Key, str], may_wait: bool = False, windows: dict[str, LaneWindow] | None = None
) -> Strip:
    """The arena of a state; pinned is what a caller that may (not) wait could not move."""
    return Strip(
        total_bytes=state.geometry.total_bytes,
        lanes=tuple(
            Lane(
                member=member.name,
                role=member.role,
                page_bytes=member.page_bytes,
                first_page=member.first_page,
                page_count=member.page_count,
                kind=member.kind,
                anchored=member.anchored,
                gate_open=state.members[index].gate_open,
                runs=_few(tuple(_runs(state, index, letters, may_wait))),
                window=(windows or {}).get(member.name),
            )
            for index, member in enumerate(state.geometry.members)
        ),
    )


def _runs(state: PoolState, index: int, letters: dict[Key, str], may_wait: bool) -> Iterator[PageRun]:
    member, now = state.geometry.members[index], state.members[index]
    owners = owners_of(state, letters)
    owner_at = {page: owners.get((member.role, identifier), NOBODY) for identifier, page in now.bindings}
    pending = dict(now.pending)
    pinned = pinned_pages(state, index, may_wait)

    def about(page: int) -> tuple[PageKind, OwnerKind | None, str, str, bool]:
        if page in owner_at:
            owner = owner_at[page]  # type: ignore[index]
            return "live", owner.kind, owner.label, owner.words, page in pinned
        if page in pending:
            return "pending", None, pending[page], "", page in pinned  # type: ignore[index]
        return ("sink" if page < member.first_page else "free"), None, "", "", False

    # A broken target may bind pages that do not exist; they are shown where they would be.
    last = max([member.page_count, *(page + 1 for page in (*owner_at, *pending))])
    for what, group in groupby(range(last), key=about):
        pages = list(group)
        yield _run(member, pages[0], pages[-1] + 1, what)


def _run(member: Member, start: int, end: int, what: tuple[PageKind, OwnerKind | None, str, str, bool]) -> PageRun:
    kind, owner_kind, label, owner, pinned = what
    return PageRun(
        start=start,
        end=end,
        start_byte=start * member.page_bytes,
        end_byte=end * member.page_bytes,
        kind=kind,
        owner_kind=owner_kind,
        label=label,
        owner=owner,
        pinned=pinned,
    )


def _few(runs: tuple[PageRun, ...]) -> tuple[PageRun, ...]:
    """The runs themselves, or where they are many, neighbours of the same kind as one."""
    if len(runs) <= MOST_RUNS:
        return runs
    together = groupby(runs, key=lambda run: (run.kind, run.owner_kind, run.pinned))
    return tuple(_together(list(group)) for _, group in together)


def _together(runs: list[PageRun]) -> PageRun:
    first, last = runs[0], runs[-1]
    if len(runs) == 1:
        return first
    owners = {"cached": "cached nodes", "request": "requests"}.get(first.owner_kind or "", "owners")
    labels = {run.label for run in runs}
    return msgspec.structs.replace(
        first,
        end=last.end,
        end_byte=last.end_byte,
        label=f"{first.label}…{last.label}",
        owner=f"{len(labels)} {owners} ({first.label} to {last.label})",
    )
