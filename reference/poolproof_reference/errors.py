"""What the reference refuses, a class for each refusal; a refused call has changed nothing.

RefusedError
    UnknownNameError        no running request, lock or event of that name
    NameInUseError          a lock or an event of that name exists already
    UnknownIdError          an id that is not live (a sentinel such as -1 among them)
    DoubleFreeError         one id twice in one call
    SizeError               a negative or absurd size, lengths that do not pair up, a request that shrinks
    EmptyKeyError           a prefix of no pages
    NoStatesError           a cached state where the chain has none, or a page holds several tokens
    GroupError              a group opened twice, or closed while none is open
"""


class RefusedError(Exception):
    """A bad call; nothing was changed."""


class UnknownNameError(RefusedError):
    """No running request, lock or event of that name."""


class NameInUseError(RefusedError):
    """A lock or an event of that name exists already."""


class UnknownIdError(RefusedError):
    """An id that is not live."""


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
