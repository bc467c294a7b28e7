"""How long rows are: methods have constants that suit rows of about unit length."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify.common.warn import warn_user
from ramify.data.remote_rows import RemoteRows

_ROWS_AT_ONCE = 1 << 16


def typical_length(X: sparse.csr_array | RemoteRows) -> float:
    """The root of the mean squared length of the rows; 1 if all are empty.

    >>> typical_length(sparse.csr_array(np.array([[3.0, 4.0], [5.0, 0.0]])))
    5.0
    """
    of_rows = X.squared_lengths() if isinstance(X, RemoteRows) else squared_lengths(X)
    squared = float(of_rows.sum()) / max(X.shape[0], 1)
    return squared**0.5 if squared > 0 else 1.0


def squared_lengths(X: sparse.csr_array) -> NDArray[np.float64]:
    """The squared length of each row: the same alone, in a part of X, and in X, which may be memory-mapped.

    >>> squared_lengths(sparse.csr_array(np.array([[3.0, 4.0], [0.0, 0.0], [5.0, 0.0]]))).tolist()
    [25.0, 0.0, 25.0]
    """
    found = np.zeros(X.shape[0])
    for first in range(0, X.shape[0], _ROWS_AT_ONCE):
        bounds = X.indptr[first : first + _ROWS_AT_ONCE + 1].astype(np.int64)
        squares = np.square(X.data[bounds[0] : bounds[-1]], dtype=np.float64)
        row = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        found[first : first + len(bounds) - 1] = np.bincount(row, squares, minlength=len(bounds) - 1)
    return found


def warn_of_length(X: sparse.csr_array, owner: str, shortest: float, longest: float) -> None:
    """Warn of rows that are not scaled to unit length, and whose typical length is outside these bounds."""
    length = typical_length(X)
    if not shortest <= length <= longest:
        warn_user(
            f"rows of X have a length of about {length:.2g}, and with normalize=False a {owner} takes them as they "
            "are: its learning rate and other constants suit rows of about unit length, and it may learn little from "
            f"these; divide X by {length:.2g}, or leave normalize=True"
        )
