"""A labelled data set in memory, and the checks of its two matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from ramify.data.csr import check_csr, check_parts, csr_rows


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features `X` and 0/1 labels `Y`, with optional names and texts.

    `X` and `Y` are float32 csr_arrays with sorted indices. `vectorizer` is the vectorizer that turned `texts` into `X`.

    >>> data = Dataset(as_features([[0.5, 0.0], [0.0, 2.0]]), as_indicator([[1, 0, 1], [0, 1, 0]]))
    >>> data
    Dataset(2 rows, 2 features, 3 labels, 1.5 labels per row)
    """

    X: csr_array
    Y: csr_array
    label_names: list[str] | None = None
    feature_names: list[str] | None = None
    texts: list[str] | None = None
    vectorizer: Any = None

    def __post_init__(self) -> None:
        _check_same_rows(self.X, self.Y)
        (n_rows, n_features), n_labels = self.X.shape, self.Y.shape[1]
        for name, entries, size, unit in (
            ("label_names", self.label_names, n_labels, "column of Y"),
            ("feature_names", self.feature_names, n_features, "column of X"),
            ("texts", self.texts, n_rows, "row"),
        ):
            if entries is not None and len(entries) != size:
                raise ValueError(f"{name} must have {size} entries, one per {unit}, got {len(entries)}")

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def n_labels(self) -> int:
        return int(self.Y.shape[1])

    @property
    def y(self) -> NDArray[np.int32]:
        """The class of each row of multi-class data: the column of its only label."""
        counts = np.diff(self.Y.indptr)
        if np.any(counts != 1):
            row = int(np.flatnonzero(counts != 1)[0])
            raise ValueError(f"row {row} has {counts[row]} labels; y needs exactly one label in every row")
        return np.asarray(self.Y.indices, dtype=np.int32)

    def __repr__(self) -> str:
        labels_per_row = self.Y.nnz / self.n_rows if self.n_rows else 0.0
        return (
            f"Dataset({self.n_rows:,} rows, {self.n_features:,} features, {self.n_labels:,} labels, "
            f"{labels_per_row:.1f} labels per row)"
        )


def as_rows(X: Any, Y: Any) -> tuple[csr_array, csr_array]:
    """Convert X with `as_features` and Y with `as_indicator`, and check that they have equally many rows."""
    X, Y = as_features(X), as_indicator(Y)
    _check_same_rows(X, Y)
    return X, Y


def _check_same_rows(X: csr_array, Y: csr_array) -> None:
    if X.shape[0] != Y.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows, but Y has {Y.shape[0]}; the numbers must be equal")


def as_features(X: Any) -> csr_array:
    """Convert a 2-D array to a float32 csr_array with sorted indices; adds duplicates, rejects NaN and infinity."""
    result = _csr(X, "X")
    with np.errstate(over="ignore"):
        result = result.astype(np.float32, copy=False)
    if not result.has_canonical_format:
        result = result.copy()  # do not change the caller's array
        result.sum_duplicates()
    if not np.isfinite(result.data).all():
        entry = int(np.flatnonzero(~np.isfinite(result.data))[0])
        row = int(np.searchsorted(result.indptr, entry, side="right")) - 1
        raise ValueError(
            f"X must be finite and fit 32-bit floats, but row {row}, column {result.indices[entry]} is "
            f"{result.data[entry]}"
        )
    return result


def as_indicator(Y: Any) -> csr_array:
    """Convert a 2-D array of 0 and 1 to a float32 csr_array with sorted indices and no stored zeros."""
    result = _csr(Y, "Y")
    if not result.has_canonical_format:
        result = result.copy()
        result.sort_indices()
        if not result.has_canonical_format:
            raise ValueError("Y stores an entry twice; call Y.sum_duplicates() and check that all entries are 0 or 1")
    is_one = result.data == 1
    if not is_one.all():
        other = result.data[~is_one]
        if np.any(other != 0):
            raise ValueError(f"Y must contain only 0 and 1, got {other[other != 0][0]}")
        result = result.copy()
        result.eliminate_zeros()
    return result.astype(np.float32, copy=False)


def _csr(array: Any, name: str) -> csr_array:
    if not issparse(array):
        array = np.asarray(array)
    if array.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, got {array.ndim}")
    if issparse(array):
        check_parts(name, array)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must contain numbers, got dtype {array.dtype}")
    array = check_csr(name, array) if issparse(array) else csr_array(array)
    return csr_rows(array.data, array.indices, array.indptr, array.shape)
