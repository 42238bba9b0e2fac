"""What the fast pool refuses, a class for each refusal; a refused call has changed nothing.

RefusedError
    UnknownIdError          an id that the caller does not hold (free, cached, queued, or a sentinel such as -1)
    DoubleFreeError         one id twice in one call
    SizeError               a negative or absurd size, lengths that do not pair up, a request that shrinks
    EmptyKeyError           a prefix of no pages
    NoStatesError           a cached state where the chain has none, or a page holds several tokens
    GroupError              a group opened twice, or closed while none is open
    NotLockedError          a lock that was given back already
    NotInFlightError        a flight that was fired already
    AdoptError              pages to be cached below a prefix that is not cached (adoption.py)
"""


class RefusedError(Exception):
    """A bad call; nothing was changed."""


class UnknownIdError(RefusedError):
    """An id that the caller does not hold."""


class DoubleFreeError(RefusedError):
    """One id twice in one call."""


class SizeError(RefusedError):
    """A negative or absurd size, lengths that do not pair up, or a request that shrinks."""


class EmptyKeyError(RefusedError):
    """A prefix of no pages."""


class NoStatesError(RefusedError):
    """A cached state where the chain has no states, or where a page holds several tokens."""


class GroupError(RefusedError):
    """A group opened twice, or closed while none is open."""


class NotLockedError(RefusedError):
    """A lock that was given back already."""


class NotInFlightError(RefusedError):
    """A flight that was fired already."""
