"""The report as one self-contained HTML page: no network, and a policy under which the browser would not let it.

The page's own style and script are allowed by their hashes; whatever a name or a message smuggles in is escaped, and
would not run. The script only shows what is in the page.
"""

import base64
import hashlib
from collections.abc import Sequence
from importlib.metadata import version
from itertools import groupby
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from poolproof_conformance.reporting.counterexamples import Counterexample
from poolproof_conformance.reporting.expected import JudgedKind, Judgement, KnownFailure
from poolproof_conformance.reporting.matrix import columns_of, matrix_of
from poolproof_conformance.reporting.nodes import NodeRow
from poolproof_conformance.reporting.overview import headline_of, lede_of, seen_on, sources_words, suggested_entries
from poolproof_conformance.reporting.rows import Gathered, Kind, property_names
from poolproof_conformance.reporting.strip import Strip
from poolproof_conformance.wording import plural
from poolproof_spec.catalogue import PROPERTIES, Property, property_named

SAFE_SCHEMES = ("https://", "http://")
"""A link of the list of expected failures becomes one only if it begins so: it might be a script."""


class Assets(NamedTuple):
    """Style and script as they stand in the page."""

    style: str
    script: str


def html_page(
    gathered: Gathered, judgement: Judgement, examples: Sequence[Counterexample], docs_url: str | None = None
) -> str:
    """The whole page. `docs_url`: where docs/spec.md can be read, to link the rules to it."""
    environment = _environment(docs_url, examples)
    assets = _assets(environment)
    headline = headline_of(judgement)
    return environment.get_template("page.html.j2").render(
        title=f"{headline} – poolproof",
        headline=headline,
        lede=lede_of(gathered, judgement),
        policy=policy_for(assets),
        style=Markup(assets.style),
        script=Markup(assets.script),
        version=version("poolproof"),
        gathered=gathered,
        judgement=judgement,
        columns=columns_of(gathered),
        matrix=matrix_of(gathered, judgement),
        examples=examples,
        sources=sources_words(gathered.sources),
        groups=_by_property(judgement),
        held=[example for example in examples if not example.kinds],
        rules=PROPERTIES,
        suggested=suggested_entries(judgement),
    )


def policy_for(assets: Assets) -> str:
    """A content security policy that allows the page's own style and script, and nothing else."""
    style, script = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (assets.style, assets.script)
    )
    return (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _assets(environment: Environment) -> Assets:
    loader = environment.loader
    assert loader is not None, "the environment was made with one"
    style, script = (loader.get_source(environment, name)[0] for name in ("page.css", "page.js"))
    return Assets(style, script)


def _environment(docs_url: str | None, examples: Sequence[Counterexample]) -> Environment:
    environment = Environment(
        loader=PackageLoader("poolproof_conformance.reporting", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    address_of = {kind: _address(example) for example in examples for kind in example.kinds}

    def rule_link(rule: Property) -> str | Markup:
        if docs_url is None or not docs_url.startswith(SAFE_SCHEMES):
            return rule.name
        anchor = rule.source.partition("#")[2]
        return Markup('<a href="{}#{}">{}</a>').format(docs_url, anchor, rule.name)

    def address(kind: Kind) -> str:
        return address_of[kind.property, kind.signature]

    environment.filters.update(
        address=address,
        claim=claim_of,
        code=code_of,
        first_word=lambda call: call.partition("(")[0],
        in_words=strip_words,
        link=_link,
        locks=_locks,
        pages_lost=_pages_lost,
        rule_link=rule_link,
        seen_on=seen_on,
    )
    return environment


def _address(example: Counterexample) -> str:
    return f"#{example.slug}/{example.first_divergence or 0}"


def code_of(name: str) -> str:
    """P1 of first-sufficient; nothing of what is no rule."""
    try:
        return property_named(name).code
    except KeyError:
        return ""


def claim_of(name: str) -> str:
    """What the property asks for; nothing of what is no rule."""
    try:
        return property_named(name).claim
    except KeyError:
        return ""


def _by_property(judgement: Judgement) -> list[tuple[str, list[JudgedKind]]]:
    """The kinds by property, in the catalogue's order; of each, the new ones first."""
    names = property_names(judged.kind for judged in judgement.kinds)
    groups = [(name, [judged for judged in judgement.kinds if judged.kind.property == name]) for name in names]
    return [(name, group) for name, group in groups if group]


def strip_words(strip: Strip) -> str:
    """A strip for a reader that cannot see it: of each member what is not free."""
    lanes = []
    for lane in strip.lanes:
        used = [f"pages [{run.start}, {run.end}) {run.what}" for run in lane.runs if run.kind in ("live", "pending")]
        lanes.append(f"{lane.member}: {'; '.join(used) or 'empty'}")
    return ". ".join(lanes)


def _pages_lost(count: int | None) -> str:
    if count is None:
        return ""
    return f"{plural(count, 'cached page')} lost" if count else "nothing lost from the cache"


def _link(known: KnownFailure) -> str | Markup:
    note = f" ({known.note})" if known.note else ""
    if known.link.startswith(SAFE_SCHEMES):
        return Markup('<a href="{0}" rel="noopener noreferrer">{0}</a>{1}').format(known.link, note)
    return known.link + note


def _locks(node: NodeRow) -> str:
    counts = (("FULL", node.full_locks), ("SWA", node.swa_locks), ("state", node.state_locks))
    held = [(what, count) for what, count in counts if count]
    return (
        ", ".join(
            f"{'+'.join(what for what, _ in group)} ×{count}"
            for count, group in ((c, list(g)) for c, g in groupby(held, key=lambda item: item[1]))
        )
        or "–"
    )
