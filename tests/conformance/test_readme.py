"""README.md says what the code says: the table of properties, and the seed's table."""

from pathlib import Path
from runpy import run_path

from poolproof_conformance.seed_cases import EXPECTED, expected_of
from poolproof_spec.catalogue import PROPERTIES

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_property_table_is_the_catalogue() -> None:
    rows = [f"| {rule.code} | [{rule.name}]({rule.source}) | {rule.claim} |" for rule in PROPERTIES]
    assert [line for line in README.splitlines() if line.startswith(("| W", "| P", "| G"))] == rows


def test_seed_table_is_what_check_demands_of_each_target() -> None:
    rows = [line for line in README.splitlines() if line.startswith(("  reference ", "  fast ", "  sglang=="))]
    assert len(rows) == 10
    for row in rows:
        target, _, _, *cells = row.split(maxsplit=3)
        words = cells[0].replace(",", "").split()
        found = [(words[2 * i] == "granted", int(words[2 * i + 1])) for i in range(3)]
        assert found == [expected_of(target, case) for case in EXPECTED["since"]], row


def test_every_link_leads_to_a_file() -> None:
    targets = [part.split(")")[0].split("#")[0] for part in README.split("](")[1:]]
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_architecture_lists_every_file() -> None:
    path = ROOT / "docs" / "file_table.py"
    module = run_path(str(path))
    text = (ROOT / "ARCHITECTURE.md").read_text()
    assert text == module["with_table"](text), "run: python docs/file_table.py --write"
