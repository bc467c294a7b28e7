"""Standardised feature columns: for rows of numbers whose columns have different units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify.base.answers import one_row
from ramify.data.csr import csr_rows

# A column is dense if at least this share of its entries is not zero; so are rows with most entries in such columns.
DENSE_SHARE = 0.5
# How many times larger the entries of one column must be than another's to ask for standardised ones.
DIFFERENT = 4.0


class Columns(NamedTuple):
    """What is subtracted from each column, and what it is then multiplied by; 0 for a constant one, which says nothing.

    Dense columns get mean 0 and deviation 1. The others stay sparse: their entries get a mean square of 1.
    """

    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    dense: NDArray[np.int32]  # the dense columns

    @classmethod
    def of(cls, X: sparse.csr_array, weight: NDArray[np.float32] | None) -> Columns:
        """Those of these rows; a weight of two is a row given twice."""
        w = np.ones(X.shape[0]) if weight is None else weight.astype(np.float64)
        dense = dense_columns(X, weight)
        mean, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
        entry_weight = np.repeat(w, np.diff(X.indptr))
        of_column = np.bincount(X.indices, entry_weight, X.shape[1])
        squares = np.bincount(X.indices, entry_weight * X.data.astype(np.float64) ** 2, X.shape[1])
        np.divide(1.0, np.sqrt(squares / np.maximum(of_column, 1e-300)), out=scale, where=squares > 0)
        block = X[:, dense].toarray().astype(np.float64)
        mean[dense] = w @ block / w.sum()
        # Around the mean: the difference of mean squares would lose all digits where the mean is large.
        deviation = np.sqrt(w @ (block - mean[dense]) ** 2 / w.sum())
        varies = deviation > 1e-7 * np.abs(mean[dense])
        scale[dense] = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=varies)
        largest = np.finfo(np.float32).max
        return cls(mean.astype(np.float32), np.minimum(scale, largest).astype(np.float32), dense)

    def rows(self, X: sparse.csr_array) -> sparse.csr_array:
        """The rows with standardised columns: every dense column of every row has an entry."""
        n_columns = X.shape[1]
        if len(self.dense) == n_columns:
            return _full_rows((X.toarray() - self.mean) * self.scale, self.dense, X.shape)
        block = (X[:, self.dense].toarray() - self.mean[self.dense]) * self.scale[self.dense]
        is_dense = np.zeros(n_columns, dtype=bool)
        is_dense[self.dense] = True
        scaled = np.where(is_dense[X.indices], 0, X.data * self.scale[X.indices]).astype(np.float32)
        others = csr_rows(scaled, X.indices, X.indptr, X.shape)
        rows = others + _full_rows(block, self.dense, X.shape)
        rows.sort_indices()
        return csr_rows(rows.data, rows.indices, rows.indptr, X.shape)

    def row(
        self, indices: NDArray[np.int32], values: NDArray[np.float32]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """`rows` for one row."""
        if len(self.dense) < len(self.mean):
            rows = self.rows(one_row(indices, values, len(self.mean)))
            return rows.indices, rows.data
        dense = np.zeros(len(self.mean), dtype=np.float32)
        dense[indices] = values
        return self.dense, (dense - self.mean) * self.scale

    def arrays(self) -> dict[str, NDArray[Any]]:
        """For a model file."""
        return {f"columns/{name}": array for name, array in self._asdict().items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], n_features: int) -> Columns | None:
        """What `arrays` gave, checked; None if there is none."""
        if "columns/mean" not in arrays:
            return None
        for name in ("columns/mean", "columns/scale"):
            array = arrays[name]
            if array.dtype != np.float32 or array.shape != (n_features,) or not np.isfinite(array).all():
                raise ValueError(f"{name} must be a finite float32 for each of {n_features} features")
        dense = arrays["columns/dense"]
        if dense.dtype != np.int32 or dense.ndim != 1 or not (np.diff(dense) > 0).all():
            raise ValueError("columns/dense must be strictly increasing 32-bit column numbers")
        if len(dense) and not 0 <= dense[0] <= dense[-1] < n_features:
            raise ValueError(f"columns/dense must be columns below {n_features}")
        return cls(arrays["columns/mean"], arrays["columns/scale"], dense)


def dense_columns(X: sparse.csr_array, weight: NDArray[np.float32] | None = None) -> NDArray[np.int32]:
    """Columns with mostly entries other than zero."""
    w = np.ones(X.shape[0]) if weight is None else weight.astype(np.float64)
    count = np.bincount(X.indices, np.repeat(w, np.diff(X.indptr)), X.shape[1])
    return np.flatnonzero(count >= DENSE_SHARE * w.sum()).astype(np.int32)


def is_dense(X: sparse.csr_array) -> bool:
    """Whether most entries of these rows, or most of their squared length, are in dense columns.

    So it is with embeddings and tables of measurements, and not with texts.
    """
    return are_dense(*column_sums(X), X.shape[0])


def column_sums(X: sparse.csr_array, n_at_once: int = 1 << 17) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The entries of each column, and the sum of their squares; X may be mapped from a file."""
    count, squares = np.zeros(X.shape[1], np.int64), np.zeros(X.shape[1])
    for first in range(0, X.nnz, n_at_once):
        indices, values = X.indices[first : first + n_at_once], X.data[first : first + n_at_once]
        count += np.bincount(indices, minlength=X.shape[1])
        squares += np.bincount(indices, values.astype(np.float64) ** 2, minlength=X.shape[1])
    return count, squares


def are_dense(count: NDArray[np.int64], squares: NDArray[np.float64], n_rows: int) -> bool:
    """`is_dense`, from the sums of all columns."""
    inside = count >= DENSE_SHARE * n_rows
    if not count.any():
        return False
    most = max(count[inside].sum() / count.sum(), squares[inside].sum() / squares.sum())
    return bool(most >= DENSE_SHARE)


def spreads_differ(X: sparse.csr_array) -> bool:
    """Whether columns have different units: the entries of one are typically at least so much larger than another's."""
    count = np.bincount(X.indices, minlength=X.shape[1])
    squares = np.bincount(X.indices, X.data.astype(np.float64) ** 2, X.shape[1])
    typical = np.sqrt(squares[count > 0] / count[count > 0])
    return bool(typical.max() >= DIFFERENT * typical.min())


def _full_rows(block: NDArray[np.float32], columns: NDArray[np.int32], shape: tuple[int, int]) -> sparse.csr_array:
    """Rows that have exactly these columns."""
    indptr = np.arange(shape[0] + 1) * len(columns)
    return csr_rows(block.astype(np.float32, copy=False).ravel(), np.tile(columns, shape[0]), indptr, shape)
