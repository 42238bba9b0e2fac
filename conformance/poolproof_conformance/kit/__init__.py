"""The kit: hold a pool of your own to the contract in your own test run (docs/kit.md)."""

from poolproof_conformance.kit.pool_adapter import PoolAdapter, RefusedCallError
from poolproof_conformance.kit.pool_conformance import PoolConformance

__all__ = ["PoolAdapter", "PoolConformance", "RefusedCallError"]
