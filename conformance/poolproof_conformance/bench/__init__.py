"""`poolproof bench`: the same workload on the fast pool and on released engines, interleaved run by run."""
