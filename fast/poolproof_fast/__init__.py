"""Room for the optimised pool. It is not there yet: the target `fast` ends in an error that says so."""
