"""Run test files on a release behind the shim: `python run_exported.py ROOT CORE FILE...`; they know nothing of it.

In place of an installed engine's own environment it makes the memory cache importable and publishes a configuration.
"""

import logging
import sys
from pathlib import Path

import pytest

from poolproof_conformance.sglang.engine import Engine

if __name__ == "__main__":
    root, core, *files = sys.argv[1:]
    logging.getLogger("sglang").setLevel(logging.CRITICAL)
    engine = Engine(Path(root), core)
    engine.configure()
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-rA", "--tb=short", "--import-mode=importlib", *files]))
