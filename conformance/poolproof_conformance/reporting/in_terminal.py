"""A counterexample in a terminal: the same frames as the page shows, in characters."""

import re
from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from poolproof_conformance.reporting.counterexamples import Counterexample
from poolproof_conformance.reporting.frames import Frame, Side, Stage
from poolproof_conformance.reporting.strip import Lane, PageRun, Strip
from poolproof_conformance.wording import plural

PIPE_WIDTH = 100
"""Columns where there is no terminal."""
WIDEST_STRIP = 96
"""Columns of a strip, however wide the terminal is."""
SIGNS = {"free": "·", "sink": "░", "pending": "▒"}
LEGEND = "A cached node, a request by its name, g open group, ! leaked, ▒ pending, ░ sink, · free; ^ pinned, ═ window"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What could steer a terminal, or turn its text around."""


def printed(text: str, style: str = "") -> Text:
    """Text as it is: no markup, nothing that steers the terminal."""
    return Text(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", text), style=style)


def show_counterexample(console: Console, example: Counterexample, step: int | None = None) -> None:
    """Print it, or one step of it."""
    console.print(printed(example.name, "bold"))
    for line in (example.note, example.arena, f"states of {example.shown_on}"):
        if line:
            console.print(printed(line, "dim"))
    if example.is_recorded:
        console.print(
            printed(f"{example.target} cannot be run here: the states are the reference's, its answers as recorded.")
        )
    for frame in example.frames:
        if step in (None, frame.index):
            console.print(_frame(frame, example, min(console.width - 10, WIDEST_STRIP)))
    if example.reason:
        console.print(printed(f"unknown: {example.reason}", "yellow"))


def _frame(frame: Frame, example: Counterexample, width: int) -> RenderableType:
    mark = "  ✗ first divergence" if frame.first_divergence else ""
    parts: list[RenderableType] = [
        Text(""),
        Rule(printed(f"{frame.index}. {frame.call}{mark}", "bold red" if frame.findings else "bold"), align="left"),
        printed(frame.request),
        _sides(frame, example.target),
    ]
    for finding in frame.findings:
        name = f"{finding.code} {finding.property}".strip()
        parts.append(printed(f"✗ {name} {finding.verdict}: {finding.message}", "red"))
        if finding.claim:
            parts.append(printed(f"    {finding.claim}", "dim"))
    parts += [_strip(frame.before, "before", width), _strip(frame.after, f"after, {example.shown_on}", width)]
    if frame.modelled_after is not None:
        parts.append(_strip(frame.modelled_after, "after, had the model been asked", width))
    parts.append(printed(LEGEND, "dim"))
    if frame.explanation:
        parts.append(_explanation(frame.explanation))
    if frame.nodes:
        parts.append(_tree(frame))
    parts += [printed(f"  {line}", "dim") for line in frame.besides]
    return Group(*parts)


def _sides(frame: Frame, target: str) -> RenderableType:
    table = Table.grid(padding=(0, 3))
    for title, answer in (("the model", frame.model), (target, frame.target)):
        table.add_row(printed(f"  {title}", "dim"), _side(answer))
    return Padding(table, (1, 0))


def _side(answer: Side | None) -> Text:
    if answer is None:
        return printed("no answer: this is no state of a correct pool")
    cost = plural(answer.lost_pages, "cached page") + " lost" if answer.lost_pages else "nothing lost"
    cost = "" if answer.lost_pages is None else cost
    victims = f"evicts {answer.victims}" if answer.victims else ""
    rest = "; ".join(part for part in (answer.words, victims, cost) if part)
    return Text.assemble(printed(answer.word, "bold"), printed(f": {rest}" if rest else ""))


def _strip(strip: Strip, caption: str, width: int) -> RenderableType:
    lines: list[RenderableType] = [Text(""), printed(caption, "underline")]
    for lane in reversed(strip.lanes):
        lines.append(Text.assemble(printed(f"{lane.member[:7]:>7} ", "bold"), _cells(lane, strip.total_bytes, width)))
        below = _below(lane, strip.total_bytes, width)
        if below.strip():
            lines.append(printed(f"{'':8}{below}".rstrip()))
    total = str(strip.total_bytes)
    lines.append(printed(f"{'':8}0{total:>{width - 7}} bytes", "dim"))
    return Group(*lines)


def _runs_at(lane: Lane, total: int, width: int) -> Iterator[PageRun | None]:
    """The run in the middle of each column's bytes; None past the last whole page."""
    for column in range(width):
        byte = (2 * column + 1) * total // (2 * width)
        yield next((run for run in lane.runs if run.start_byte <= byte < run.end_byte), None)


def _cells(lane: Lane, total: int, width: int) -> Text:
    styles = {"cached": "blue", "request": "magenta", "group": "yellow", "nobody": "red"}
    text = Text()
    for run in _runs_at(lane, total, width):
        if run is None:
            text.append(" ")
        elif run.kind == "live":
            text.append(printed(run.label[:1] or "?", styles.get(run.owner_kind or "", "")))
        else:
            text.append(SIGNS[run.kind], "dim")
    return text


def _below(lane: Lane, total: int, width: int) -> str:
    """Under a lane: its window as a line, and what is pinned."""
    window = lane.window
    signs = []
    for column, run in enumerate(_runs_at(lane, total, width)):
        byte = (2 * column + 1) * total // (2 * width)
        inside = window is not None and window.start_byte <= byte < window.end_byte
        signs.append("^" if run is not None and run.pinned else "═" if inside else " ")
    return "".join(signs)


def _explanation(stages: tuple[Stage, ...]) -> RenderableType:
    lines: list[RenderableType] = [Text("")]
    for stage in stages:
        lines.append(printed(stage.heading, "bold"))
        lines += [Padding(printed(line), (0, 0, 0, 2)) for line in stage.lines]
    return Group(*lines)


def _tree(frame: Frame) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("node", "FULL", "SWA", "state", "locks", "age", "target", "model"):
        table.add_column(heading)
    for node in frame.nodes:
        locks = f"{node.full_locks}/{node.swa_locks}/{node.state_locks}"
        model = "-" if node.model_fate is None else node.model_fate or "kept"
        table.add_row(
            printed(f"{node.branch}{node.letter} {node.key}"),
            str(node.full_pages),
            str(node.swa_pages),
            "yes" if node.has_state else "-",
            "-" if locks == "0/0/0" else locks,
            str(node.recency or "new"),
            printed(node.fate or "kept"),
            printed(model),
        )
    return Group(Text(""), table)
