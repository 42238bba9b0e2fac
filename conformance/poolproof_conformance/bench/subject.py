"""What a measured pool must offer, and the geometries that subjects are compared in."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolproof_conformance.bench.works import HOLE_SHARE
from poolproof_spec.geometry import Geometry, layout


class CannotError(Exception):
    """This subject has no such work, or none of this size that ends in reasonable time; the message says why."""


class WrongAnswerError(Exception):
    """The subject did something other than what was to be measured, so there is no figure."""


class Subject(ABC):
    """One pool with its prefix cache. Works are composed of the methods below, each in the subject's own fast way."""

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """What really runs: release, tree core and the like."""

    @abstractmethod
    def build(self, pages: int) -> None:
        """An empty pool that can hold `pages` pages of each role at once, replacing the one before."""

    @abstractmethod
    def fill(self, entries: int) -> None:
        """Cache that many more one-page prefixes, all different, none of them asked for before."""

    @abstractmethod
    def request(self, pages: int, keep: bool = True) -> Any:
        """The argument of `take` and `reserve` for so many pages; whatever is no part of the pool's work is done here.

        `keep` is False where the pages must not enter the prefix cache when they are given back.
        """

    @abstractmethod
    def take(self, request: Any) -> Any:
        """Allocate where there is room for sure. What it returns goes to `give`."""

    @abstractmethod
    def reserve(self, request: Any) -> Any:
        """Allocate, evicting as needed; None where the demand is refused."""

    @abstractmethod
    def give(self, taken: Any) -> None:
        """Free what `take` or `reserve` returned."""

    @abstractmethod
    def restore(self, entries: int) -> None:
        """After `entries` evictions and `give`: as many entries cached as before."""

    @abstractmethod
    def cached_entries(self) -> int:
        """How many one-page entries are cached, by the subject's own count."""

    def settle(self) -> None:  # noqa: B027 (most have nothing to do)
        """What its scheduler does when idle; called before each run, not timed."""

    @abstractmethod
    def build_float(self, pages: int) -> None:
        """A full arena whose float holds `pages` pages, one in HOLE_SHARE of them then freed. May raise CannotError."""

    @abstractmethod
    def move_float(self) -> None:
        """Make the float give way by one in MOVED_SHARE of its pages."""

    @abstractmethod
    def moved_pages(self) -> int:
        """Pages of the float that `move_float` moved, found by looking where they lie now."""

    def check_size(self, work: str, size: int) -> None:  # noqa: B027 (most have nothing to say)
        """CannotError where this subject is not measured at this size."""


PAGE_BYTES = 32
"""One token in one layer: K and V of one head of 8 in 16-bit; of FULL and of SWA."""
STATE_BYTES = 48
WINDOW_TOKENS = 128


def pair_geometry(pages: int) -> Geometry:
    """SWA and FULL in one arena that `pages` tokens fill to the last byte."""
    total = PAGE_BYTES * (2 * pages + 1)
    return layout("swa2", total, FULL=PAGE_BYTES, SWA=PAGE_BYTES, window_tokens=WINDOW_TOKENS)


def float_geometry(pages: int) -> Geometry:
    """STATE, the float SWA, FULL: `pages` tokens fill the arena to the last byte, so that the float cannot choose."""
    total = PAGE_BYTES * 2 * (pages + 1)
    return layout("tri", total, FULL=PAGE_BYTES, SWA=PAGE_BYTES, STATE=STATE_BYTES, window_tokens=WINDOW_TOKENS)


def hole_indices(pages: int) -> NDArray[np.int64]:
    """Which of `pages` pages of the float are freed before it moves: one in HOLE_SHARE, always the same."""
    return np.sort(np.random.default_rng(1).permutation(pages)[: pages // HOLE_SHARE])
