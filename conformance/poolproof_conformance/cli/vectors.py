"""`poolproof vectors`: cases with their answers as JSON, for any language; exported, and held against a target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from poolproof_conformance.cli.options import mode_option, tree_core_option
from poolproof_conformance.cli.terminal import (
    EXIT_CODES,
    EXIT_INTERRUPTED,
    coloured,
    json_option,
    note,
    progress,
    say,
    write_json,
)
from poolproof_conformance.target_names import Target, resolve_target
from poolproof_conformance.trace_format import Mode, TreeCore
from poolproof_conformance.wording import plural
from poolproof_spec.verdict import Verdict

if TYPE_CHECKING:
    from poolproof_conformance.vectors.on_target import Judged
    from poolproof_conformance.vectors.vector_format import AnyVectorFile
    from poolproof_conformance.vectors.verify import Difference

MOST_SHOWN = 10
"""Differences that are shown; all of them are in the JSON."""


@click.group(epilog="The format, the flags and how to write a consumer: docs/vectors.md.")
def vectors() -> None:
    """Test vectors: what each demand takes, what fits, which victims are the least, what known targets get wrong."""


@vectors.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
def export(folder: Path) -> int:
    """Write the vectors and their JSON Schema into DIR; each file is replaced as a whole.

    \b
    Examples:
      poolproof vectors export vectors
    """
    from poolproof_conformance.vectors.export import export as export_to

    try:
        counts = export_to(folder)
    except KeyboardInterrupt:
        note("interrupted; no file is half written, some may be old ones.")
        return EXIT_INTERRUPTED
    for name, count in counts.items():
        say(f"{folder / name}.json: {plural(count, 'case')}")
    return 0


@vectors.command(epilog="Exit codes: 0 all as they say; 1 something differs; 2 nothing, or not all, could be judged.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--target", "name", metavar="TARGET", help="Put the cases to a target too, not to the specification alone."
)
@click.option("--ignore-checksum", is_flag=True, help="Judge the cases of a file that was changed after its export.")
@mode_option
@tree_core_option
@json_option
def verify(
    folder: Path,
    name: str | None,
    ignore_checksum: bool,
    mode: Mode | None,
    tree_core: TreeCore,
    json_path: Path | None,
) -> int:
    """Derive every answer in DIR again from the specification; with --target ask a target too.

    Cases that a target cannot be asked, or where its pages came to lie elsewhere, are counted apart.

    \b
    Examples:
      poolproof vectors verify vectors
      poolproof vectors verify vectors --target fast
      poolproof vectors verify vectors --target sglang==0.5.23 --mode lazy --json vectors.json
    """
    target = None if name is None else resolve_target(name, tree_core, mode or "eager")
    try:
        verdict, rows = _verified(folder, target, not ignore_checksum)
    except KeyboardInterrupt:
        note("interrupted; no JSON written.")
        return EXIT_INTERRUPTED
    write_json(json_path, {"verdict": verdict, "files": rows})
    say(coloured(verdict))
    return EXIT_CODES[verdict]


def _verified(folder: Path, target: Target | None, check_sum: bool) -> tuple[Verdict, list[dict[str, object]]]:
    from poolproof_conformance.vectors.vector_files import read_vectors, vector_paths
    from poolproof_conformance.vectors.verify import differences

    files = {path.stem: read_vectors(path, check_sum=check_sum) for path in vector_paths(folder)}
    rows: list[dict[str, object]] = []
    found = unjudged = passed = 0
    for name, file in files.items():
        wrong = list(differences(name, file))
        _tell(f"{name}: {plural(file.numberOfTests, 'case')} as the specification says", wrong, f"{name}, of the file")
        found += len(wrong)
        passed += target is None and not wrong
        rows.append({"file": name, "target": None, "cases": file.numberOfTests, "differences": wrong})
    if target is not None and not found:
        for judged in _on_target(files, target):
            of_target = f"{judged.file}: {plural(judged.passed, 'case')} as expected on {target.title}"
            _tell(of_target, judged.differences, f"{judged.file}, of {target.title}")
            for reason, skipped in judged.skipped.items():
                say(f"  not judged, {plural(len(skipped), 'case')}: {reason}")
            for doubt in judged.doubts[:MOST_SHOWN]:
                say(f"  unknown: {doubt}")
            found, unjudged, passed = (
                found + len(judged.differences),
                unjudged + len(judged.doubts),
                passed + judged.passed,
            )
            told = {"passed": judged.passed, "differences": judged.differences, "skipped": judged.skipped}
            rows.append({"file": judged.file, "target": target.name, **told, "doubts": judged.doubts})
    return "violated" if found else "holds" if passed and not unjudged else "unknown", rows


def _on_target(files: Mapping[str, AnyVectorFile], target: Target) -> Iterator[Judged]:
    from poolproof_conformance.vectors.on_target import judge_file

    total = sum(file.numberOfTests for file in files.values())
    done = 0
    with target.opened() as adapter, progress(f"vectors on {target.title}", total) as told:

        def count() -> None:
            nonlocal done
            done += 1
            told(done)

        for name, file in files.items():
            yield judge_file(name, file, adapter, count)


def _tell(right: str, wrong: Sequence[Difference], where: str) -> None:
    """The first few of what differs, or that nothing does."""
    if not wrong:
        say(right)
        return
    say(f"{where}: {plural(len(wrong), 'difference')}")
    for difference in wrong[:MOST_SHOWN]:
        place = f"case {difference.tcId}" if difference.tcId else "the file"
        say(f"  {place}: {difference.message}")
    if len(wrong) > MOST_SHOWN:
        say(f"  ... and {len(wrong) - MOST_SHOWN} more; --json FILE has them all")
