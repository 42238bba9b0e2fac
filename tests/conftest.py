"""One Hypothesis profile for all tests: no deadline (two shared cores), the same examples each time."""

from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize=True, database=None, print_blob=False)
settings.load_profile("repeatable")
