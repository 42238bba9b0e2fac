"""The three stages of the pool, each held to the level that it reaches: `pytest examples/own_allocator`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from level0 import SplitPool
from level1 import JointPool
from level2 import ExactPool

from poolproof_conformance.kit import PoolConformance


class TestSplitPool(PoolConformance):
    adapter = SplitPool
    level = 0
    layouts = ("mamba2",)


class TestJointPool(PoolConformance):
    adapter = JointPool
    level = 1
    layouts = ("mamba2",)


class TestExactPool(PoolConformance):
    adapter = ExactPool
    level = 2
    layouts = ("mamba2",)
