"""Rows as the core takes them: single rows, whole arrays that may be broken, and labels."""

from __future__ import annotations

import numpy as np

from ramify.data.csr import RowArrays


def row_arrays(row):
    """Indices and values of a csr_array with one row."""
    return row.indices.astype(np.int32), row.data.astype(np.float32)


def rows_of(indptr, indices, values):
    """Rows from three lists or arrays, which need not fit together."""
    return RowArrays(np.array(indptr, np.int64), np.array(indices, np.int32), np.array(values, np.float32))


def label_rows(indptr, indices):
    """Labels of rows, which need not fit together; their values are not read."""
    indices = np.array(indices, np.int32)
    return RowArrays(np.array(indptr, np.int64), indices, indices)


def arrays_of(X):
    """The arrays of a csr_array, of which `_replace` spoils one."""
    return rows_of(X.indptr, X.indices, X.data)
