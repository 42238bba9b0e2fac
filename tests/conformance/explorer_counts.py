"""Exact counts of the small configurations, on which three engines agree: (states, transitions, depth)."""

COUNTS: dict[str, tuple[int, int, int]] = {
    "swa2-nested": (111, 716, 7),
    "swa2-window": (33, 152, 7),
    "swa2-chain": (16099, 116957, 33),
    "swa2-locks": (3283, 27333, 30),
    "swa2-handles": (792, 5859, 16),
    "swa2-gate": (568, 5884, 14),
    "swa2-event": (621, 4061, 12),
    "swa2-group": (385, 4235, 7),
    "swa2-pages": (129, 997, 11),
    "mamba2-pending": (6353, 41139, 19),
    "mamba2-split": (17111, 131956, 26),
    "mamba2-spare": (107, 629, 9),
    "tri-states": (693, 5382, 15),
    "tri-all": (2512, 23622, 19),
    "tri-pages": (8707, 59817, 24),
    "four-floats": (153, 770, 13),
}
"""Every name tells states apart."""

UP_TO_NAMES: dict[str, tuple[int, int, int]] = {
    "swa2-nested": (111, 716, 7),
    "swa2-window": (33, 152, 7),
    "swa2-chain": (5136, 37360, 22),
    "swa2-locks": (1240, 10212, 16),
    "swa2-handles": (492, 3645, 16),
    "swa2-gate": (186, 1966, 11),
    "swa2-event": (328, 2140, 11),
    "swa2-group": (256, 2816, 7),
    "swa2-pages": (78, 606, 11),
    "mamba2-pending": (1601, 10379, 14),
    "mamba2-split": (1368, 10643, 15),
    "mamba2-spare": (65, 381, 5),
    "tri-states": (209, 1644, 10),
    "tri-all": (1264, 11874, 14),
    "tri-pages": (1582, 10861, 14),
    "four-floats": (99, 497, 9),
}
"""States that differ in names alone are one."""

OUTSIDE = ("swa2-gate", "swa2-group", "tri-pages")
"""Configurations that the packed engine does not take."""
