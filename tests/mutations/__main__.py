"""Change the specification in small ways, one at a time, and see that something turns red: `python -m tests.mutations`.

Each change is made in a copy in a temporary folder. Exit 0: all are caught, and the unchanged copy is green; 1: one is
not; 2: a change no longer applies to its file.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutations.mutants import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
PACKAGES = ("spec", "reference", "fast", "conformance")
AT_A_TIME = 2
TIMEOUT_S = 300
UNCHANGED = Mutant("unchanged", "spec/poolproof_spec/sweep.py", "", "")


def judged(mutant: Mutant) -> tuple[int, str]:
    """(exit code of the judge, what it said) for one changed copy; 2 where the change does not apply."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        for package in PACKAGES:
            shutil.copytree(ROOT / package, Path(folder) / package, ignore=shutil.ignore_patterns("__pycache__"))
        path = Path(folder) / mutant.file
        text = path.read_text()
        if mutant.found and text.count(mutant.found) != 1:
            return 2, f"{mutant.file} has {text.count(mutant.found)} occurrences of {mutant.found!r}, one was expected"
        path.write_text(text.replace(mutant.found, mutant.instead, 1) if mutant.found else text)
        paths = os.pathsep.join(str(Path(folder) / package) for package in PACKAGES)
        command = [sys.executable, str(Path(__file__).with_name("judge.py"))]
        run = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=TIMEOUT_S
        )
        return run.returncode, run.stdout.strip() or run.stderr.strip()[-300:]


def main(names: list[str]) -> int:
    """Judge the unchanged copy and the named mutants, or all of them."""
    chosen = [mutant for mutant in (UNCHANGED, *MUTANTS) if not names or mutant.name in names]
    worst = 0
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for mutant, (code, said) in zip(chosen, pool.map(judged, chosen), strict=True):
            right = code == (0 if mutant is UNCHANGED else 1)
            worst = max(worst, 2 if code == 2 else 0 if right else 1)
            sys.stdout.write(f"{'ok ' if right else 'BAD'} {mutant.name}: {said}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(chosen)} judged; {'all as they should be' if not worst else 'not all as they should be'}\n")
    return worst if chosen else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
