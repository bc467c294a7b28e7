"""How long rows are: methods have constants that suit rows of about unit length."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import sparse


def typical_length(X: sparse.csr_array) -> float:
    """The root of the mean squared length of the rows; 1 if all are empty.

    >>> typical_length(sparse.csr_array(np.array([[3.0, 4.0], [5.0, 0.0]])))
    5.0
    """
    squared = float(np.square(X.data, dtype=np.float64).sum()) / max(X.shape[0], 1)
    return squared**0.5 if squared > 0 else 1.0


def warn_of_length(X: sparse.csr_array, owner: str, shortest: float, longest: float) -> None:
    """Warn of rows that are not scaled to unit length, and whose typical length is outside these bounds."""
    length = typical_length(X)
    if not shortest <= length <= longest:
        warnings.warn(
            f"rows of X have a length of about {length:.2g}, and with normalize=False a {owner} takes them as they "
            "are: its learning rate and other constants suit rows of about unit length, and it may learn little from "
            f"these; divide X by {length:.2g}, or leave normalize=True",
            stacklevel=4,
        )
