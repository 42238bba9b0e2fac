"""The work on a Ray cluster: the same as on local processes; a clear error where Ray is missing."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from poolproof_conformance.campaigns.store import Store
from poolproof_conformance.cli.main import run

SLACK = str(Path(__file__).parent / "children" / "slack.py")
ARGUMENTS = ["campaign", SLACK, "--layout", "swa2", "--jobs", "3"]


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed (pip install 'poolproof[ray]')")
def test_a_local_cluster_finds_the_same(tmp_path: Path) -> None:
    found = []
    for name, how in (("ray", ["--ray", "local", "--workers", "2"]), ("processes", [])):
        path = tmp_path / f"{name}.sqlite"
        assert run([*ARGUMENTS, "--db", str(path), *how]) == 1
        with Store.read(path) as store:
            totals = [(cell.cell, cell.histories, cell.operations, cell.violating) for cell in store.cells()]
            found.append((totals, [(kind.property, kind.signature, kind.trace) for kind in store.kinds()]))
    assert found[0] == found[1]


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed")
def test_without_ray_the_error_says_what_to_install(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*ARGUMENTS, "--db", str(tmp_path / "c.sqlite"), "--ray", "auto"]) == 2
    assert "fix: pip install 'poolproof[ray]'" in capsys.readouterr().err
