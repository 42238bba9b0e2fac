import numpy as np
import pytest

from poolproof_fast.hygiene import MIXED, POISON, Hygiene
from poolproof_spec.geometry import Geometry, derive


class NaiveOwners:
    """Who last owned each byte: 0 nobody, else 1 + index of the member."""

    def __init__(self, geometry: Geometry) -> None:
        self.sizes = [member.page_bytes for member in geometry.members]
        self.owners = [0] * geometry.total_bytes

    def dirty(self, index: int, pages: list[int]) -> list[int]:
        size, dirty = self.sizes[index], []
        for page in pages:
            if any(owner not in (0, 1 + index) for owner in self.owners[page * size : (page + 1) * size]):
                dirty.append(page)
            self.owners[page * size : (page + 1) * size] = [1 + index] * size
        return dirty


def chain(page_bytes: tuple[int, ...], total_bytes: int) -> Geometry:
    members = [("STATE", "state", page_bytes[0], "up"), ("FULL", "full", page_bytes[-1], "down")]
    if len(page_bytes) == 3:
        members.insert(1, ("SWA", "swa", page_bytes[1], "float"))
    return derive(total_bytes, members)  # type: ignore[arg-type]


def reported(hygiene: Hygiene, index: int, pages: np.ndarray) -> list[int]:
    """By the batch or page by page, as chance has it."""
    if len(pages) % 2:
        return hygiene.dirty(index, pages).tolist()
    return [page for page in pages.tolist() if hygiene.dirty_one(index, page)]


EXACT = [(4, 4), (4, 4, 4), (6, 4), (24, 8, 12), (40, 8, 8)]
ASTRIDE = [(7, 5), (11, 9, 7), (64, 13)]


@pytest.mark.parametrize("page_bytes", EXACT + ASTRIDE)
def test_no_page_with_bytes_of_another_member_is_missed(page_bytes: tuple[int, ...]) -> None:
    geometry = chain(page_bytes, 600)
    generator = np.random.default_rng(4)
    missed = needless = seen = 0
    for _ in range(10):
        hygiene, naive = Hygiene(geometry), NaiveOwners(geometry)
        for _ in range(40):
            index = int(generator.integers(len(geometry.members)))
            usable = np.array(geometry.members[index].usable_pages, np.int32)
            pages = generator.choice(usable, min(len(usable), int(generator.integers(1, 6))), replace=False)
            expected, found = naive.dirty(index, pages.tolist()), reported(hygiene, index, pages)
            seen += len(expected)
            missed += len(set(expected) - set(found))
            needless += len(set(found) - set(expected))
    assert seen > 100
    assert missed == 0
    assert needless == 0 or page_bytes in ASTRIDE


def test_a_page_is_dirty_once_and_its_own_old_bytes_are_not_dirt() -> None:
    hygiene = Hygiene(chain((4, 4), 100))
    assert not hygiene.dirty_one(0, 9)
    assert hygiene.dirty_one(1, 9)
    assert not hygiene.dirty_one(1, 9)


def test_a_moved_page_owns_where_it_went() -> None:
    hygiene = Hygiene(chain((4, 4), 100))
    hygiene.own(0, np.array([5, 6], np.int32))
    hygiene.own(0, 7)
    assert hygiene.dirty(1, np.array([4, 5, 6, 7, 8], np.int32)).tolist() == [5, 6, 7]


@pytest.mark.parametrize("page_bytes", [(4, 4), (7, 5)])
def test_a_role_that_is_not_filled_still_leaves_dirt_to_others(page_bytes: tuple[int, ...]) -> None:
    hygiene = Hygiene(chain(page_bytes, 100), {"state": "none", "full": "poison"})
    pages = np.array([3, 4, 5, 6], np.int32)
    assert len(hygiene.dirty(0, pages)) == 0
    assert hygiene.dirty(1, pages[1:]).tolist() == [4, 5, 6]
    assert len(hygiene.dirty(0, pages)) == 0
    assert not hygiene.dirty_one(0, 5)
    assert (hygiene.value(0), hygiene.value(1)) == (0, POISON)


def test_one_mode_may_go_for_all_roles() -> None:
    hygiene = Hygiene(chain((4, 4), 100), "poison")
    hygiene.own(0, 3)
    assert hygiene.dirty_one(1, 3)
    assert (hygiene.value(0), hygiene.value(1)) == (POISON, POISON)


def test_a_granule_that_two_members_share_belongs_to_both() -> None:
    hygiene = Hygiene(chain((7, 5), 100))
    assert hygiene.granule_bytes == 5
    hygiene.own(0, 2)
    assert list(hygiene.owners[2:5]) == [1, 1, 1]
    hygiene.own(0, 1)
    hygiene.own(1, 2)
    assert hygiene.dirty_one(0, 1)
    assert list(hygiene.owners[1:3]) == [1, MIXED]


@pytest.mark.parametrize("page_bytes", EXACT + ASTRIDE)
def test_the_map_is_small(page_bytes: tuple[int, ...]) -> None:
    hygiene = Hygiene(chain(page_bytes, 600))
    assert len(hygiene.owners) <= 4 * (600 // min(page_bytes) + 1)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="hygiene mode 'clean'; expected 'zero'"):
        Hygiene(chain((4, 4), 100), {"full": "clean"})  # type: ignore[dict-item]
