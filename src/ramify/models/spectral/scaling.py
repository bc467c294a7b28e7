"""Scaling of rows before they are split: examples should have similar lengths."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from ramify.data.csr import csr_rows

# True: unit length (given in the core), "hellinger", or False: rows stay as they are.
Normalization: TypeAlias = bool | str


def check_normalization(value: Any) -> Normalization:
    """One of True, False and "hellinger"."""
    if value == "hellinger" and isinstance(value, str):
        return value
    if not isinstance(value, bool):
        raise ValueError(f"normalize must be True, False or 'hellinger', got {value!r}")
    return value


def hellinger(X: sparse.csr_array) -> sparse.csr_array:
    """Rows as roots of shares: each row divided by its sum, then the square root; its length is then one.

    A primal form of the Hellinger kernel. Paper: Mineiro and Karampatziakis, section 5.1.

    >>> hellinger(sparse.csr_array(np.array([[1, 3], [0, 0]], dtype=np.float32))).toarray().round(3).tolist()
    [[0.5, 0.8659999966621399], [0.0, 0.0]]
    """
    if X.nnz and X.data.min() < 0:
        raise ValueError(
            f"normalize='hellinger' takes the root of shares, so values must not be negative, got {X.data.min()}"
        )
    row_of = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    total = np.bincount(row_of, X.data.astype(np.float64), minlength=X.shape[0])
    share = X.data / np.where(total > 0, total, 1.0)[row_of]
    return csr_rows(np.sqrt(share).astype(np.float32), X.indices, X.indptr, X.shape)


def scaled_rows(X: sparse.csr_array, normalize: Normalization) -> sparse.csr_array:
    """Rows as the core takes them, which scales to unit length itself.

    >>> scaled_rows(sparse.csr_array(np.array([[1.0, 3.0]], dtype=np.float32)), "hellinger").toarray().round(3)
    array([[0.5  , 0.866]], dtype=float32)
    """
    return hellinger(X) if normalize == "hellinger" else X
