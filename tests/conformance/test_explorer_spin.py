"""SPIN, a third engine with a step of its own, stores as many states as the others find."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from poolproof_conformance.explorer.configurations import FAMILY, configuration_named
from poolproof_conformance.explorer.promela import promela

from .explorer_counts import COUNTS

HAS_SPIN = shutil.which("spin") is not None and shutil.which("gcc") is not None


@pytest.mark.skipif(not HAS_SPIN, reason="spin or gcc is missing: apt-get install spin gcc")
@pytest.mark.parametrize("name", ["swa2-event", "swa2-gate", "swa2-group", "mamba2-split", "tri-all", "four-floats"])
def test_spin_stores_the_same_states(name: str, tmp_path: Path) -> None:
    (tmp_path / "model.pml").write_text(promela(configuration_named(name)), encoding="utf-8")
    for command in (
        ["spin", "-a", "model.pml"],
        ["gcc", "-O1", "-w", "-DSAFETY", "-DNOREDUCE", "-o", "pan", "pan.c"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    told = subprocess.run(
        ["./pan", "-m1000000", "-w18"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    assert "errors: 0" in told
    distinct, transitions, _ = COUNTS[name]
    assert (_number(r"(\d+) states, stored", told), _number(r"(\d+) transitions", told)) == (distinct, transitions + 1)


@pytest.mark.parametrize("configuration", FAMILY, ids=[configuration.name for configuration in FAMILY])
def test_every_operation_is_a_choice(configuration: object) -> None:
    text = promela(configuration)  # type: ignore[arg-type]
    assert text.count(":: d_step") == len(configuration.operations)  # type: ignore[attr-defined]
    assert f"{{{', '.join(str(m.page_bytes) for m in configuration.geometry.members)}}}" in text  # type: ignore[attr-defined]


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found is not None, text
    return int(found[1])
