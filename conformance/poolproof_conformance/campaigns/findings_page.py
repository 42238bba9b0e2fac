"""docs/findings.md: every kind of failure once, grouped by what is known of its cause."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from poolproof_conformance.campaigns.causes import Cause, cause_of, causes
from poolproof_conformance.campaigns.findings import Finding, Findings, read_findings
from poolproof_conformance.trace_format import Trace
from poolproof_conformance.traces import read_trace
from poolproof_conformance.wording import arena_words, call_words, plural
from poolproof_spec.catalogue import property_named

HEAD = """# Findings

What a campaign found on released engines, each kind of failure once with its smallest trace. These are gaps against
[this project's contract](spec.md), which asks more than the engine's own: its notes call the certificate by which it
decides when to stop evicting sufficient, not complete.

A kind is a rule and a signature of the cause: layout, what is asked, the answer, what the rule finds, kinds of victims,
and what else took part (a closed gate, an open group, a lock). It is counted with every tree core and compaction mode
that shows it. Where a cause is given, it was worked out from the engine's behaviour on small inputs.
Made by `poolproof campaign findings`; [traces](traces.md) tells how to read one.
"""


def findings_page(folder: Path, page: Path) -> str:
    """The page's text; links are relative to where the page will lie."""
    index = read_findings(folder)
    link = folder.name if folder.parent.absolute() == page.parent.absolute() else str(folder)
    return "\n".join(_lines(index, folder, link)) + "\n"


def _lines(index: Findings, folder: Path, link: str) -> Iterator[str]:
    found_on = {finding.target for finding in index.findings}
    newest = next(facts.target for facts in index.targets if facts.target in found_on)
    yield HEAD
    yield from _facts(index)
    grouped = _grouped([finding for finding in index.findings if finding.target == newest])
    yield f"\n## Kinds on {newest}"
    yield from _table(index, grouped, link)
    for cause, findings in grouped:
        yield f"\n## {_title(cause)}\n"
        yield cause.text if cause else "What is lost is told below; why, has not been worked out."
        if cause is not None and cause.see:
            yield f"\nWorked out on the known traces {cause.see}."
        for finding in findings:
            yield from _finding_lines(finding, index, folder, link)
    older = [finding for finding in index.findings if finding.target != newest]
    if older:
        yield f"\n## Kinds not found on {newest}\n"
        yield (
            "Found by the campaign on an older release only: mostly what has changed since. Where the newer one says "
            "yes, the same history violates the rule there too."
        )
        yield from _table(index, [(None, older)], link, with_causes=False)


SOUND = ("W1", "W2", "W3", "W4", "W5", "W6", "P7", "P9", "G1")
"""Rules whose violation would corrupt memory."""


def _soundness(index: Findings) -> str:
    broken = {property_named(finding.property).code for finding in index.findings}.intersection(SOUND)
    if broken:
        return f"Rules that keep memory sound are among them: {', '.join(sorted(broken))}."
    return (
        "No history broke byte accounting, ids, ownership or payloads (W1 to W6), moved a page that must not move "
        "(P7), took what is locked (P9), or had a grant that was not what was asked for (G1)."
    )


def _facts(index: Findings) -> Iterator[str]:
    yield "| target | cells | histories | operations | without an answer | kinds |"
    yield "|---|---|---|---|---|---|"
    for facts in index.targets:
        kinds = sum(
            finding.target == facts.target or finding.shown_by.get(facts.target, False) for finding in index.findings
        )
        numbers = (facts.cells, f"{facts.histories:,}", f"{facts.operations:,}", facts.doubts, kinds)
        yield f"| {facts.target} | {' | '.join(map(str, numbers))} |"
    yield ""
    yield f"{_soundness(index)} Seed {index.seed}; {plural(round(index.seconds / 60), 'minute')} of one worker in all."


def _grouped(findings: Sequence[Finding]) -> list[tuple[Cause | None, list[Finding]]]:
    """By cause in the order of causes.json; those without one last."""
    groups: dict[Cause | None, list[Finding]] = {cause: [] for cause in (*causes(), None)}
    for finding in findings:
        groups[cause_of(finding.property, finding.signature)].append(finding)
    return [(cause, found) for cause, found in groups.items() if found]


def _title(cause: Cause | None) -> str:
    return cause.title if cause else "Not traced to a cause yet"


def _table(
    index: Findings, grouped: Sequence[tuple[Cause | None, list[Finding]]], link: str, with_causes: bool = True
) -> Iterator[str]:
    """A row for each kind; with causes, below a row for each of them and with a link to the text further down."""
    names = [facts.target for facts in index.targets]
    yield "\n| rule | kind | operations | modes | " + " | ".join(names) + " |"
    yield "|---" * (4 + len(names)) + "|"
    for cause, findings in grouped:
        if with_causes:
            yield f"| | **{_title(cause)}** |" + " |" * (2 + len(names))
        for finding in findings:
            code = property_named(finding.property).code
            where = f"#{_anchor(finding)}" if with_causes else f"{link}/{finding.trace}"
            shown = [_shows(finding, name) for name in names]
            cells = (code, f"[{_plain(finding)}]({where})", finding.operations, ", ".join(finding.modes))
            yield f"| {' | '.join(map(str, (*cells, *shown)))} |"


def _shows(finding: Finding, name: str) -> str:
    return "yes" if finding.target == name or finding.shown_by.get(name) else "no"


def _plain(finding: Finding) -> str:
    """The signature without the sign that ends a table's cell."""
    return finding.signature.replace(" | ", ", ")


def _anchor(finding: Finding) -> str:
    return finding.trace.removesuffix(".json")


def _finding_lines(finding: Finding, index: Findings, folder: Path, link: str) -> Iterator[str]:
    trace = read_trace(folder / finding.trace)
    rule = property_named(finding.property)
    yield f'\n### <a id="{_anchor(finding)}"></a>{rule.code} {finding.property}: {_plain(finding)}\n'
    yield f"Arena of {arena_words(trace.geometry)}.\n"
    yield from (f"{number}. `{call_words(call)}`" for number, call in enumerate(trace.operations, start=1))
    yield f"\n{_sentence(finding, trace)}"
    if trace.explanation:
        yield f"The model, in the state that the target is in:\n\n```text\n{trace.explanation}\n```"
    yield f"\n{_seen(finding, index)} [Trace]({link}/{finding.trace})."


def _sentence(finding: Finding, trace: Trace) -> str:
    """What the target does, and what the rule finds."""
    outcome = next(iter(trace.expected.of(finding.target, finding.core, finding.mode).outcomes.values()), None)
    if outcome is None or outcome.result not in ("granted", "rejected"):
        return f"The target: {trace.note}."
    lost = f", {plural(outcome.evicted_pages, 'cached page')} lost" if outcome.evicted_pages else ""
    return f"The target: {outcome.result}{lost}. The rule finds: {trace.note}."


def _seen(finding: Finding, index: Findings) -> str:
    """Where it shows: modes and cores, and the other targets."""
    cores = f", {' and '.join(finding.cores)} core" if finding.cores else ""
    count = plural(finding.histories, "history").replace("historys", "histories")
    others = "".join(
        f" {facts.target} {'shows it too' if finding.shown_by[facts.target] else 'does not show it'}."
        for facts in index.targets
        if facts.target in finding.shown_by
    )
    return f"Seen on {finding.target}, {' and '.join(finding.modes) or 'one mode'}{cores}, in {count}.{others}"
