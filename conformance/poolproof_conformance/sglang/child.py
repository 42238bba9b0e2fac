"""`python -m poolproof_conformance.sglang.child --root DIR --core rust --mode lazy`: one release as a target."""

import argparse
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from poolproof_conformance.child_server import serve_standard_streams
from poolproof_conformance.sglang.adapter import SglangAdapter
from poolproof_conformance.sglang.engine import Engine, TreeCoreError
from poolproof_conformance.sglang.stand_in import ShimError


def main(arguments: list[str] | None = None) -> int:
    """Load the engine, then answer on stdin and stdout until stdin ends. Exit status 2 where it cannot be loaded."""
    parser = argparse.ArgumentParser(prog="python -m poolproof_conformance.sglang.child", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="folder that the release was installed into")
    parser.add_argument("--core", choices=("rust", "python"), default="rust", help="tree core that it must run")
    parser.add_argument("--mode", choices=("eager", "lazy"), default="lazy", help="when it compacts")
    options = parser.parse_args(arguments)
    logging.getLogger("sglang").setLevel(logging.CRITICAL)
    try:
        with _stdout_is_stderr():
            adapter = SglangAdapter(Engine(options.root.resolve(), options.core), options.mode)
            adapter.describe()
    except (ShimError, TreeCoreError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    serve_standard_streams(adapter)
    return 0


@contextmanager
def _stdout_is_stderr() -> Iterator[None]:
    """What the engine prints while it loads goes to stderr, below Python too."""
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


if __name__ == "__main__":
    sys.exit(main())
