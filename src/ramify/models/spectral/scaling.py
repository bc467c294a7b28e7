"""What rows look like before they are split: examples should have similar lengths."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ramify.data.csr import csr_rows

SCALINGS = ("unit", "hellinger")


def hellinger(X: sparse.csr_array) -> sparse.csr_array:
    """Rows as roots of shares: each row divided by its sum, then the square root; its length is then one.

    A primal form of the Hellinger kernel. Paper: hierarchical-spectral, section 5.1.

    >>> hellinger(sparse.csr_array(np.array([[1, 3], [0, 0]], dtype=np.float32))).toarray().round(3).tolist()
    [[0.5, 0.8659999966621399], [0.0, 0.0]]
    """
    if X.nnz and X.data.min() < 0:
        raise ValueError(
            f"scaling='hellinger' takes the root of shares, so values must not be negative, got {X.data.min()}"
        )
    row_of = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    total = np.bincount(row_of, X.data.astype(np.float64), minlength=X.shape[0])
    share = X.data / np.where(total > 0, total, 1.0)[row_of]
    return csr_rows(np.sqrt(share).astype(np.float32), X.indices, X.indptr, X.shape)


def scaled_rows(X: sparse.csr_array, scaling: str | None) -> sparse.csr_array:
    """Rows as the tree takes them; unit length is given to them in the core.

    >>> scaled_rows(sparse.csr_array(np.array([[1.0, 3.0]], dtype=np.float32)), "hellinger").toarray().round(3)
    array([[0.5  , 0.866]], dtype=float32)
    """
    return hellinger(X) if scaling == "hellinger" else X
