"""The report as SARIF 2.1.0: rules are the properties, results the kinds of failure, for code-scanning views."""

import hashlib
from importlib.metadata import version
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

import msgspec

from poolproof_conformance.reporting.expected import JudgedKind, Judgement, KnownFailure
from poolproof_conformance.reporting.overview import seen_on
from poolproof_conformance.reporting.rows import TARGET_ANSWERS, Gathered
from poolproof_spec.catalogue import PROPERTIES, Property

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
DOCS = "docs/spec.md"
"""Where the rules are written down, from the repository's root."""


def sarif_text(gathered: Gathered, judgement: Judgement, docs_url: str | None = None) -> str:
    """A log of one run. Known kinds are suppressed results, fixed ones absent, what is unknown a notification."""
    notifications = [
        {
            "level": "error",
            "descriptor": {"id": TARGET_ANSWERS},
            "message": {"text": f"{who}: unknown: {reason}"},
        }
        for who, reason in judgement.doubts
    ]
    run = {
        "tool": {
            "driver": {
                "name": "poolproof",
                "version": version("poolproof"),
                "rules": [_rule(rule, docs_url or DOCS) for rule in PROPERTIES],
            }
        },
        "invocations": [{"executionSuccessful": not judgement.doubts, "toolExecutionNotifications": notifications}],
        "automationDetails": {"id": "poolproof/"},
        "columnKind": "unicodeCodePoints",
        "results": [
            *(_result(judged) for judged in judgement.kinds),
            *(_absent(known) for known in judgement.fixed),
        ],
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(log), indent=2).decode() + "\n"


def _rule(rule: Property, docs_url: str) -> dict[str, Any]:
    address = f"{docs_url}#{rule.source.partition('#')[2]}"
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.claim},
        "helpUri": address,
        "help": {"text": f"{rule.claim} See {address}.", "markdown": f"{rule.claim} See [{rule.source}]({address})."},
        "defaultConfiguration": {"level": "error"},
        "properties": {"level": rule.level},
    }


def _rule_reference(name: str) -> dict[str, Any]:
    """Of a kind that no rule names, only its own name."""
    for index, rule in enumerate(PROPERTIES):
        if name in (rule.name, rule.code):
            return {"ruleId": rule.code, "ruleIndex": index}
    return {"ruleId": name}


def _result(judged: JudgedKind) -> dict[str, Any]:
    kind = judged.kind
    result: dict[str, Any] = {
        **_rule_reference(kind.property),
        "level": "error" if judged.is_new else "note",
        "kind": "fail",
        "message": {"text": f"{kind.property}: {kind.message} ({kind.signature}), on {seen_on(kind)}"},
        "locations": [_location(kind.trace_file)] if kind.trace_file else [],
        "partialFingerprints": {"kind/v1": _fingerprint(kind.property, kind.signature)},
        "baselineState": "new" if judged.is_new else "unchanged",
    }
    if not judged.is_new and judged.known is not None:
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": judged.known.link}]
    return result


def _absent(known: KnownFailure) -> dict[str, Any]:
    return {
        **_rule_reference(known.property),
        "level": "none",
        "kind": "pass",
        "message": {"text": f"{known.property}: {known.signature} was looked for and not seen any more: {known.link}"},
        "baselineState": "absent",
        "partialFingerprints": {"kind/v1": _fingerprint(known.property, known.signature)},
    }


def _location(file: str) -> dict[str, Any]:
    """A file relative to where the command ran, which in a CI is the repository's root; else its whole URI."""
    path = PurePath(file)
    address = path.as_uri() if path.is_absolute() else quote(path.as_posix())
    return {"physicalLocation": {"artifactLocation": {"uri": address}, "region": {"startLine": 1}}}


def _fingerprint(name: str, signature: str) -> str:
    return hashlib.sha256(f"{name} {signature}".encode()).hexdigest()
