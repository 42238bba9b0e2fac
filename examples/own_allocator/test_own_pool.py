"""The three stages of the pool, each held to the level that it reaches: `pytest examples/own_allocator`."""

from level0 import SplitPool
from level1 import JointPool
from level2 import ExactPool

from poolproof_conformance.kit import PoolConformance


class TestSplitPool(PoolConformance):
    """A half of the arena for each."""

    adapter = SplitPool
    level = 0
    layouts = ("mamba2",)


class TestJointPool(PoolConformance):
    """One arena for both."""

    adapter = JointPool
    level = 1
    layouts = ("mamba2",)


class TestExactPool(PoolConformance):
    """The fewest victims, in exact order."""

    adapter = ExactPool
    level = 2
    layouts = ("mamba2",)
