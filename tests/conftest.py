"""One Hypothesis profile for all tests: no deadline (two shared cores), the same examples each time."""

import signal

from hypothesis import settings

# A run that was started in the background inherits SIGINT ignored, and so would the commands that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("repeatable", deadline=None, derandomize=True, database=None, print_blob=False)
settings.load_profile("repeatable")
