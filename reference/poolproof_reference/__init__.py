"""The plain reference: one pool and one prefix cache, as small and obvious as can be."""
