"""Print the table of files in ARCHITECTURE.md from the files' own first sentences: `python docs/file_table.py`.

With `--write` it replaces the table in ARCHITECTURE.md; a test holds the two together.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "spec/poolproof_spec",
    "reference/poolproof_reference",
    "fast/poolproof_fast",
    "conformance/poolproof_conformance",
)
BEGIN, END = "<!-- files -->\n", "<!-- end of files -->\n"


def first_paragraph(path: Path) -> str:
    """The first paragraph of a file's docstring, on one line."""
    return " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0].split())


def table() -> str:
    """A heading for each folder, a line for each file."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    for package in PACKAGES:
        for folder in sorted({path.parent for path in (ROOT / package).rglob("*.py")}):
            yield f"\n### {folder.relative_to(ROOT)}\n\n{first_paragraph(folder / '__init__.py')}\n"
            for path in sorted(folder.glob("*.py")):
                if path.name != "__init__.py":
                    yield f"- [{path.name}]({path.relative_to(ROOT)}): {first_paragraph(path)}"


def with_table(text: str) -> str:
    """ARCHITECTURE.md with the table as it should be."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return head + BEGIN + table() + "\n" + END + tail


if __name__ == "__main__":
    if "--write" in sys.argv:
        path = ROOT / "ARCHITECTURE.md"
        path.write_text(with_table(path.read_text()))
    else:
        sys.stdout.write(table())
