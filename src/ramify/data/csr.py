"""Sparse rows on their way into the core and out of it: one way to make them, one to take them apart.

scipy would widen all indices to the type of indptr.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_WIDEST = np.iinfo(np.int32).max


def csr_rows(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]
) -> sparse.csr_array:
    """A csr_array of these arrays with int32 indices; indptr is int32 unless it has to count further.

    >>> csr_rows(np.ones(1), np.array([2]), np.array([0, 1]), (1, 3)).indices.dtype
    dtype('int32')
    """
    indices = indices.astype(np.int32, copy=False)
    if len(indices) <= _WIDEST:
        return sparse.csr_array((data, indices, indptr.astype(np.int32, copy=False)), shape=shape)
    rows = sparse.csr_array(shape, dtype=data.dtype)
    rows.data, rows.indices, rows.indptr = data, indices, indptr.astype(np.int64, copy=False)
    return rows


def csr_parts(X: sparse.csr_array) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """The three arrays of a csr_array in the types that the core takes."""
    return (
        X.indptr.astype(np.int64, copy=False),
        X.indices.astype(np.int32, copy=False),
        X.data.astype(np.float32, copy=False),
    )


def label_parts(Y: sparse.csr_array) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Where each row of a 0/1 array begins, and its columns: all that there is to say of labels."""
    return Y.indptr.astype(np.int64, copy=False), Y.indices.astype(np.int32, copy=False)
