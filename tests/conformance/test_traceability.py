"""docs/traceability.md says what the code says, and every rule has what stands behind it."""

from pathlib import Path
from runpy import run_path

from poolproof_conformance.faulty.registry import FAULTY
from poolproof_spec.catalogue import PROPERTIES

ROOT = Path(__file__).parents[2]
MODULE = run_path(str(ROOT / "docs" / "traceability.py"))


def test_page_is_current() -> None:
    text = (ROOT / "docs" / "traceability.md").read_text()
    assert text == MODULE["page"](), "run: python docs/traceability.py --write"


def test_every_tag_names_a_theorem_and_every_rule() -> None:
    tags = {name.split("-")[0] for name in MODULE["THEOREMS"]}
    assert {tag for named in MODULE["THEOREMS_OF"].values() for tag in named} <= tags
    assert set(MODULE["THEOREMS_OF"]) <= {rule.code for rule in PROPERTIES}


def test_every_rule_has_a_wrong_pool_and_its_function_is_found() -> None:
    caught = {name for pool in FAULTY for name in pool.caught_by}
    assert {rule.name for rule in PROPERTIES} <= caught
    links = MODULE["functions"]()
    assert [rule.name for rule in PROPERTIES if MODULE["function_of"](rule) not in links] == []


def test_links_lead_to_files() -> None:
    text = (ROOT / "docs" / "traceability.md").read_text()
    targets = {part.split(")")[0].split("#")[0] for part in text.split("](")[1:]}
    assert [target for target in targets if not (ROOT / "docs" / target).exists()] == []
