"""Scans in chunks find what one look over the whole stretch finds."""

from random import Random

import numpy as np
import pytest

from poolproof_fast import scan


@pytest.mark.parametrize("chunk", [1, 3, 4096])
def test_scans_are_the_whole_look(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "FIRST_CHUNK_PAGES", chunk)
    rng = Random(chunk)
    for _ in range(400):
        length = rng.randint(0, 60)
        density = rng.random()
        pages = np.array([rng.random() < density for _ in range(length)], dtype=np.uint8)
        start, end = sorted((rng.randint(0, length), rng.randint(0, length)))
        count = rng.randint(-1, 12)
        found = [page for page in range(start, end) if pages[page]]
        assert scan.lowest(pages, count, start, end).tolist() == found[: max(count, 0)]
        assert scan.highest(pages, count, start, end).tolist() == (found[-count:] if count > 0 else [])
        assert scan.count_in(pages, start, end) == len(found)
        assert scan.lowest(pages, 5, end + 1, start).tolist() == []
        assert scan.extent_without(pages, end + 1, start) is None
        assert scan.count_in(pages, end + 1, start) == 0
        lacking = [page for page in range(start, end) if not pages[page]]
        assert scan.extent_without(pages, start, end) == ((lacking[0], lacking[-1] + 1) if lacking else None)
