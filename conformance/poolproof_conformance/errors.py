"""What can be wrong with a command or its files: each names what was found and the next thing to do.

PoolproofError                  exit code 2, printed as two lines
├── TargetNameError             no such target, or not an adapter
├── TargetNotInstalledError     a release that is known, and not installed yet
├── TargetInstallError          (targets.py) a release that cannot be had: its name, its wheel, or pip itself
├── OutputFileError             a file that cannot be written
└── TraceError                  a trace that cannot be read
    ├── TraceFileError          missing, a folder, unreadable
    ├── TraceTooLargeError      more bytes than a trace may have
    ├── TraceTooDeepError       nested deeper than a trace can be
    ├── TraceTruncatedError     JSON that ends in the middle
    ├── TraceNotJsonError       no JSON at all
    ├── TraceShapeError         a field that is missing, unknown or of another type
    ├── TraceVersionError       another format
    ├── TraceOperationError     an operation that does not exist
    ├── TracePropertyError      an expected property that does not exist
    ├── TraceIndexError         an expected outcome of an operation that is not there
    └── TraceGeometryError      page counts that do not follow from the bytes, or too many pages

Failures of a running target are no errors of the command: TargetFailureError (child.py) ends in the verdict `unknown`.
"""


class PoolproofError(Exception):
    """Something to correct before the command can do its work."""

    def __init__(self, found: str, fix: str) -> None:
        super().__init__(found)
        self.found = found
        """One line: what is wrong, and what was expected."""
        self.fix = fix
        """One line: the next command to type or the thing to change."""


class TargetNameError(PoolproofError):
    """The name is none of the known targets and no path to an adapter."""


class TargetNotInstalledError(PoolproofError):
    """A release that poolproof can hold against the model, not installed on this machine."""


class OutputFileError(PoolproofError):
    """A report or trace could not be written."""


class TraceError(PoolproofError):
    """A trace file that cannot be replayed."""


class TraceFileError(TraceError):
    """Missing, a folder, or not readable."""


class TraceTooLargeError(TraceError):
    """More bytes than a trace may have."""


class TraceTooDeepError(TraceError):
    """Nested deeper than any trace is."""


class TraceTruncatedError(TraceError):
    """JSON that ends in the middle."""


class TraceNotJsonError(TraceError):
    """Not JSON."""


class TraceShapeError(TraceError):
    """A field is missing, unknown, or of another type."""


class TraceVersionError(TraceError):
    """Written in a format that this poolproof does not read."""


class TraceOperationError(TraceError):
    """An operation that does not exist."""


class TracePropertyError(TraceError):
    """An expected property that does not exist."""


class TraceIndexError(TraceError):
    """An expectation about an operation that the history does not have."""


class TraceGeometryError(TraceError):
    """A geometry that contradicts itself, or is too large to replay."""
