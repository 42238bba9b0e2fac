"""Where to look in a column: an unbroken run of positions as a slice, anything else as indices.

Pages and ids that were handed out together mostly lie side by side, and a slice costs a tenth of indexing by an array.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Where: TypeAlias = slice | NDArray[np.intp]


def where(positions: NDArray[np.int32]) -> Where:
    """How to index with these positions (at least one, each at least 1, in any order), in their order.

    Indexing with a slice gives a view: copy what is to outlive a change.
    """
    first, last = int(positions[0]), int(positions[-1])
    count = len(positions)
    if last - first == count - 1 and (positions[1:] > positions[:-1]).all():
        return slice(first, last + 1)
    if first - last == count - 1 and (positions[1:] < positions[:-1]).all():
        return slice(first, last - 1, -1) if last else positions.astype(np.intp)
    return positions.astype(np.intp)
