"""The report as JUnit XML: a test case for each target and property, for the test view of any CI."""

import re
from xml.etree import ElementTree as xml

from poolproof_conformance.reporting.expected import JudgedKind, Judgement
from poolproof_conformance.reporting.matrix import MatrixCell, cell_of
from poolproof_conformance.reporting.overview import headline_of
from poolproof_conformance.reporting.rows import TARGET_ANSWERS, Gathered, Variant, property_names

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write, not even escaped."""


def junit_xml(gathered: Gathered, judgement: Judgement) -> str:
    """New kinds are failures; known ones and what is not judged are skipped; what is unknown is an error."""
    root = xml.Element("testsuites", {"name": "poolproof"})
    for variant in gathered.variants:
        _add_suite(root, gathered, judgement, variant)
    titles = {variant.title for variant in gathered.variants}
    for who, reason in judgement.doubts:
        if who not in titles:  # about the whole run
            suite = _element(root, "testsuite", {"name": who, "tests": "1", "failures": "0", "errors": "1"})
            case = _element(suite, "testcase", {"classname": "poolproof", "name": TARGET_ANSWERS})
            _element(case, "error", {"message": reason, "type": "unknown"})
    for what in ("tests", "failures", "errors", "skipped"):
        root.set(what, str(sum(int(suite.get(what, "0")) for suite in root)))
    xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml.tostring(root, encoding="unicode")}\n'


def _add_suite(root: xml.Element, gathered: Gathered, judgement: Judgement, variant: Variant) -> None:
    suite = _element(root, "testsuite", {"name": variant.title})
    properties = _element(suite, "properties", {})
    for name in ("histories", "operations"):
        total = sum(getattr(cell, name) for cell in gathered.cells_of(variant))
        _element(properties, "property", {"name": name, "value": str(total)})
    _element(properties, "property", {"name": "headline", "value": headline_of(judgement)})
    doubts = gathered.doubts(variant)
    case = _element(suite, "testcase", {"classname": variant.title, "name": TARGET_ANSWERS})
    if doubts:
        _element(case, "error", {"message": "; ".join(doubts), "type": "unknown"})
    for name in property_names(gathered.kinds):
        case = _element(suite, "testcase", {"classname": variant.title, "name": name})
        _add_result(case, cell_of(gathered, judgement, variant, name), _kinds_of(judgement, variant, name))
    suite.set("tests", str(len(suite.findall("testcase"))))
    for what, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(what, str(len(suite.findall(f"testcase/{tag}"))))


def _add_result(case: xml.Element, cell: MatrixCell, kinds: list[JudgedKind]) -> None:
    text = "\n".join(_words(judged) for judged in kinds)
    match cell.css:
        case "new":
            first = next(judged for judged in kinds if judged.is_new).kind
            message = f"{cell.words}; {first.signature}: {first.message}"
            _element(case, "failure", {"message": message, "type": "violated"}, text)
        case "known":
            _element(case, "skipped", {"message": f"{cell.words}; on the list of expected failures"})
            _element(case, "system-out", {}, text)
        case "unknown" | "unjudged":
            # Of doubt the case `target-answers` is the one error.
            _element(case, "skipped", {"message": cell.words})


def _kinds_of(judgement: Judgement, variant: Variant, name: str) -> list[JudgedKind]:
    return [
        judged
        for judged in judgement.kinds
        if judged.kind.property == name and any(sighting.variant == variant for sighting in judged.kind.sightings)
    ]


def _words(judged: JudgedKind) -> str:
    kind = judged.kind
    where = f"\n  trace: {kind.trace_file}" if kind.trace_file else ""
    link = f"\n  known: {judged.known.link}" if judged.known else ""
    return f"{'new' if judged.is_new else 'known'}: {kind.signature}: {kind.message}{where}{link}"


def _element(parent: xml.Element, tag: str, attributes: dict[str, str], text: str = "") -> xml.Element:
    clean = {name: _clean(value) for name, value in attributes.items()}
    element = xml.SubElement(parent, tag, clean)
    if text:
        element.text = _clean(text)
    return element


def _clean(text: str) -> str:
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
