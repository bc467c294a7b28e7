"""A labelled data set in memory, and the checks that make any array one of its two matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows of features `X` with their 0/1 labels `Y`, and what is known of names and texts.

    `X` and `Y` are float32 csr_arrays with sorted indices. `vectorizer` is what turned `texts` into `X`, if it did.

    >>> data = Dataset(as_features([[0.5, 0.0], [0.0, 2.0]]), as_indicator([[1, 0, 1], [0, 1, 0]]))
    >>> data
    Dataset(2 rows, 2 features, 3 labels, 1.5 labels a row)
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
            ("label_names", self.label_names, n_labels, "columns of Y"),
            ("feature_names", self.feature_names, n_features, "columns of X"),
            ("texts", self.texts, n_rows, "rows"),
        ):
            if entries is not None and len(entries) != size:
                raise ValueError(f"{name} has {len(entries)} entries for {size} {unit}")

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
        """The class of each row, for multi-class data: the column of its only label."""
        counts = np.diff(self.Y.indptr)
        if np.any(counts != 1):
            row = int(np.flatnonzero(counts != 1)[0])
            raise ValueError(f"row {row} has {counts[row]} labels; y exists only where each row has exactly one")
        return np.asarray(self.Y.indices, dtype=np.int32)

    def __repr__(self) -> str:
        labels_per_row = self.Y.nnz / self.n_rows if self.n_rows else 0.0
        return (
            f"Dataset({self.n_rows:,} rows, {self.n_features:,} features, {self.n_labels:,} labels, "
            f"{labels_per_row:.1f} labels a row)"
        )


def as_rows(X: Any, Y: Any) -> tuple[csr_array, csr_array]:
    """X by `as_features` and Y by `as_indicator`, if they have the same rows."""
    X, Y = as_features(X), as_indicator(Y)
    _check_same_rows(X, Y)
    return X, Y


def _check_same_rows(X: csr_array, Y: csr_array) -> None:
    if X.shape[0] != Y.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows and Y {Y.shape[0]}; they must be the same rows")


def as_features(X: Any) -> csr_array:
    """Any 2-D array as float32 csr_array with sorted indices; repeated entries are added. Refuses NaN and infinity."""
    result = _csr(X, "X")
    with np.errstate(over="ignore"):
        result = result.astype(np.float32, copy=False)
    if not result.has_canonical_format:
        result = result.copy()  # the caller's array stays as it is
        result.sum_duplicates()
    if not np.isfinite(result.data).all():
        entry = int(np.flatnonzero(~np.isfinite(result.data))[0])
        row = int(np.searchsorted(result.indptr, entry, side="right")) - 1
        raise ValueError(
            f"X must be finite and fit 32-bit floats; row {row}, column {result.indices[entry]} does not: "
            f"{result.data[entry]}"
        )
    return result


def as_indicator(Y: Any) -> csr_array:
    """Any 2-D array of zeros and ones as float32 csr_array with sorted indices and no stored zeros."""
    result = _csr(Y, "Y")
    if not result.has_canonical_format:
        result = result.copy()
        result.sort_indices()
        if not result.has_canonical_format:
            raise ValueError("Y holds an entry twice; call Y.sum_duplicates() and check that all entries are 0 or 1")
    is_one = result.data == 1
    if not is_one.all():
        other = result.data[~is_one]
        if np.any(other != 0):
            raise ValueError(f"Y must hold only 0 and 1, got {other[other != 0][0]}")
        result = result.copy()
        result.eliminate_zeros()
    return result.astype(np.float32, copy=False)


def csr_of(values: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]) -> csr_array:
    """A csr_array with 32-bit indices where they suffice; scipy would keep the wider of the two types."""
    if max(*shape, len(indices)) <= np.iinfo(np.int32).max:
        indices, indptr = indices.astype(np.int32, copy=False), indptr.astype(np.int32, copy=False)
    return csr_array((values, indices, indptr), shape=shape)


def _csr(array: Any, name: str) -> csr_array:
    if not issparse(array):
        array = np.asarray(array)
    if array.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, got {array.ndim}")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold numbers, got dtype {array.dtype}")
    array = csr_array(array)
    return csr_of(array.data, array.indices, array.indptr, array.shape)
