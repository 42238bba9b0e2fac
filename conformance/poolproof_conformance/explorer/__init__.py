"""Every state of small configurations: breadth-first over all operations, judged at each transition."""
