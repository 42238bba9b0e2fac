"""What must hold: geometry, state, demand, fits, eviction steps, verdicts and the properties."""
