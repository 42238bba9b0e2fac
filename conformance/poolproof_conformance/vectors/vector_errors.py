"""What can be wrong with files of vectors.

PoolproofError
└── VectorError
    ├── VectorFolderError       no folder, or none of the files in it
    ├── VectorShapeError        not JSON, or a field that is missing, unknown or of another type
    ├── VectorVersionError      another format
    └── VectorChecksumError     something in the file was changed after it was exported
"""

from poolproof_conformance.errors import PoolproofError


class VectorError(PoolproofError):
    """Files of vectors that cannot be used."""


class VectorFolderError(VectorError):
    """No folder, or no vectors in it."""


class VectorShapeError(VectorError):
    """Not JSON, or a field is missing, unknown or of another type."""


class VectorVersionError(VectorError):
    """Written in a format that this poolproof does not read."""


class VectorChecksumError(VectorError):
    """Changed after the export."""
