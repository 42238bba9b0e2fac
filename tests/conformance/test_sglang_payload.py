"""Page patterns: what was written reads back, anything else reads as torn."""

import numpy as np
import torch

from poolproof_conformance.sglang.payload import NEVER_WRITTEN, TORN, Arena

PAGE, COUNT = 48, 6


def arena() -> tuple[Arena, torch.Tensor]:
    raw = torch.zeros(PAGE * COUNT + 5, dtype=torch.uint8)
    return Arena(raw), raw


def test_reads_what_was_written() -> None:
    pages, _ = arena()
    for page, stamp in ((1, 1), (4, 2**40)):
        pages.fill(PAGE, COUNT, page, stamp)
    assert pages.stamps(PAGE, COUNT, np.array([1, 2, 4])) == [1, NEVER_WRITTEN, 2**40]


def test_a_page_copied_in_part_or_off_its_grid_is_torn() -> None:
    pages, raw = arena()
    pages.fill(PAGE, COUNT, 1, 7)
    pages.fill(PAGE, COUNT, 2, 8)
    raw[2 * PAGE : 2 * PAGE + 16] = raw[PAGE : PAGE + 16].clone()
    raw[4 * PAGE : 5 * PAGE - 8] = raw[PAGE + 8 : 2 * PAGE].clone()
    raw[5 * PAGE] = 1
    assert pages.stamps(PAGE, COUNT, np.array([1, 2, 4, 5])) == [7, TORN, TORN, TORN]
