"""Write docs/traceability.md: each rule with its code, theorems, wrong pools and counterexamples; and every theorem.

`python docs/traceability.py --write`; a test holds the page to what this prints.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from poolproof_conformance.faulty.registry import FAULTY
from poolproof_conformance.traces import read_trace
from poolproof_spec.catalogue import PROPERTIES, Property
from poolproof_spec.smt.registry import THEOREMS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "traceability.md"
TRACES = ROOT / "conformance" / "poolproof_conformance" / "known_traces"
THEOREMS_OF = {
    "W1": ("W",),
    "W2": ("W",),
    "W3": ("W",),
    "W4": ("W",),
    "W5": ("W",),
    "P1": ("T1", "T2", "T9"),
    "P1+": ("T2", "T9"),
    "P2": ("T1", "T3", "T7"),
    "P4": ("T10",),
    "P5": ("T5", "T6"),
    "P7": ("T3",),
    "P10": ("T4",),
    "P11": ("T8",),
    "G1": ("T7",),
}
"""Tags of the theorems that bear on a rule."""
HEAD = """# Traceability

Which theorem, which code, which wrong pools and which counterexamples stand behind each rule of
[spec.md](spec.md). Made by `python docs/traceability.py --write`; what the verdicts mean: [verified.md](verified.md).
"""


def functions() -> dict[str, str]:
    """Name of each function that judges, to a link to it."""
    links = {}
    for name in ("invariants", "properties", "effects", "prefixes"):
        path = ROOT / "spec" / "poolproof_spec" / f"{name}.py"
        for node in ast.parse(path.read_text()).body if path.exists() else ():
            if isinstance(node, ast.FunctionDef):
                links[node.name] = f"[{name}.{node.name}](../spec/poolproof_spec/{name}.py)"
    return links


def function_of(rule: Property) -> str:
    """Name of the function that judges: an invariant's is the rule's, as its check only hands the state on."""
    name = rule.check.__name__
    return rule.name.replace("-", "_") if name == "<lambda>" else name


def counterexamples(rule: Property) -> list[str]:
    """Committed traces on which some target violates the rule."""
    found = []
    for path in sorted(TRACES.glob("*.json")):
        expected = read_trace(path).expected.targets
        if any(rule.name in target.violates or rule.code in target.violates for target in expected):
            found.append(f"[{path.stem}](../{path.relative_to(ROOT)})")
    return found


def rule_rows() -> Iterator[str]:
    """A row for each rule."""
    links = functions()
    for rule in PROPERTIES:
        code = links[function_of(rule)]
        tags = THEOREMS_OF.get(rule.code, ())
        proofs = [name for name in THEOREMS if name.split("-")[0] in tags]
        pools = [pool.name for pool in FAULTY if rule.name in pool.caught_by]
        cells = [", ".join(f"`{name}`" for name in names) or "-" for names in (proofs, pools)]
        cells.append(", ".join(counterexamples(rule)) or "-")
        name = f"[{rule.code} {rule.name}]({rule.source.removeprefix('docs/')})"
        yield f"| {' | '.join((name, code, *cells))} |"


def theorem_rows() -> Iterator[str]:
    """A row for each theorem."""
    for theorem in THEOREMS.values():
        queries = ", ".join(f"`{query.name}`" for query in theorem.queries())
        yield f"| `{theorem.name}` | {theorem.claim} | {theorem.bounds} | {queries} |"


def page() -> str:
    """The whole page."""
    return "\n".join(
        (
            HEAD,
            "## Rules\n",
            "| rule | code | theorems | wrong pools that it catches | counterexamples |",
            "|---|---|---|---|---|",
            *rule_rows(),
            "\n## Theorems\n",
            "| theorem | claim | bounds | queries |",
            "|---|---|---|---|",
            *theorem_rows(),
            "",
        )
    )


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page())
    else:
        sys.stdout.write(page())
