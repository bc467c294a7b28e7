"""Check the input of the metrics and convert it to canonical sparse arrays of equal shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from ramify.common.validation import check_integer
from ramify.data.csr import check_csr, check_parts
from ramify.data.label_forms import MAX_LABELS, plain_numbers
from ramify.data.masked import check_no_mask

# Sums and means of float32 probabilities can exceed 1 by a few units in the last place.
PROBABILITY_SLACK = 1e-5


@dataclass(frozen=True)
class Truth:
    """The true labels."""

    truth: csr_array

    @property
    def n_rows(self) -> int:
        return int(self.truth.shape[0])

    @property
    def n_labels(self) -> int:
        return int(self.truth.shape[1])


@dataclass(frozen=True)
class Comparison(Truth):
    """True labels and scores, and which of the stored scores belong to a true label."""

    scores: csr_array
    is_hit: NDArray[np.bool_]

    @property
    def n_absent_positives(self) -> int:
        """The number of true labels without a stored score."""
        return int(self.truth.nnz - self.is_hit.sum())


def compare(Y_true: Any, P: Any) -> Comparison:
    """Check both arrays and find the true labels among the stored scores."""
    scores = as_scores(P)
    truth = as_indicator(Y_true, "Y_true", n_labels=scores.shape[1])
    check_same_shape(truth, "Y_true", scores, "P")
    return Comparison(truth, scores, hits(truth, scores))


def hits(truth: csr_array, scores: csr_array) -> NDArray[np.bool_]:
    """Mark the stored scores that belong to a true label."""
    is_hit = np.zeros(scores.nnz, dtype=bool)
    is_hit[positions_in(truth, scores)] = True
    return is_hit


def positions_in(wanted: csr_array, stored: csr_array) -> NDArray[np.intp]:
    """Return the positions in `stored.data` of the entries of `wanted` that are stored."""
    wanted_keys, stored_keys = _keys(wanted), _keys(stored)
    if stored_keys.size == 0:
        return np.zeros(0, dtype=np.intp)
    position = np.minimum(np.searchsorted(stored_keys, wanted_keys), stored_keys.size - 1)
    found: NDArray[np.intp] = position[stored_keys[position] == wanted_keys]
    return found


def rows_of(array: csr_array) -> NDArray[np.int64]:
    """Return the row of each stored entry."""
    return np.repeat(np.arange(array.shape[0], dtype=np.int64), np.diff(array.indptr))


def as_indicator(Y: Any, name: str, *, n_labels: int | None = None) -> csr_array:
    """Return a canonical 0/1 csr_array from a sparse or dense indicator or a 1-D integer array of classes."""
    if issparse(Y):
        array = _canonical(Y, name)
    else:
        dense = _dense(Y, name)
        if dense.ndim == 1:
            return _one_hot(dense, name, n_labels)
        _check_two_dimensions(dense, name)
        check_real(dense.dtype, name)
        array = csr_array(dense)
    wrong = (array.data != 0) & (array.data != 1)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"{name} must contain only 0 and 1, but {place(array, at)} is {array.data[at]!s}; "
            f"pass (Y > 0) if every positive value marks a label"
        )
    if not array.data.all():
        array = array.copy()
        array.eliminate_zeros()
    return array


def as_scores(P: Any, name: str = "P") -> csr_array:
    """Return a canonical csr_array of finite scores. A dense array predicts every label, so its zeros are kept."""
    if issparse(P):
        array = _canonical(P, name)
    else:
        dense = _dense(P, name)
        _check_two_dimensions(dense, name)
        check_real(dense.dtype, name)
        n_rows, n_columns = dense.shape
        indices = np.tile(np.arange(n_columns, dtype=np.int64), n_rows)
        indptr = np.arange(n_rows + 1, dtype=np.int64) * n_columns
        array = csr_array((np.ascontiguousarray(dense).reshape(-1), indices, indptr), shape=dense.shape)
    if array.data.dtype.kind == "f" and not np.isfinite(array.data).all():
        at = int(np.flatnonzero(~np.isfinite(array.data))[0])
        raise ValueError(f"{name} must contain finite scores, but {place(array, at)} is {array.data[at]!s}")
    return array


def as_probabilities(scores: csr_array) -> NDArray[np.float64]:
    """Return the stored values as float64 in [0, 1]; values up to `PROBABILITY_SLACK` outside are clipped."""
    check_probabilities(scores)
    return np.clip(scores.data.astype(np.float64), 0.0, 1.0)


def check_probabilities(scores: csr_array) -> None:
    """Raise if a stored value is outside [0, 1] by more than `PROBABILITY_SLACK`."""
    if not are_probabilities(scores):
        at = int(np.flatnonzero((scores.data < -PROBABILITY_SLACK) | (scores.data > 1 + PROBABILITY_SLACK))[0])
        raise ValueError(
            f"P must contain probabilities in [0, 1], but {place(scores, at)} is {scores.data[at]!s}; "
            f"raw scores can only be ranked"
        )


def are_probabilities(scores: csr_array) -> bool:
    """Return whether every stored score is in [0, 1], up to rounding."""
    data = scores.data
    return data.size == 0 or bool(data.min() >= -PROBABILITY_SLACK and data.max() <= 1 + PROBABILITY_SLACK)


def number_of_labels(*arrays: Any) -> int:
    """Return the number of columns of the indicator among the arrays, or else the largest class plus one."""
    largest = -1
    for Y in arrays:
        array: Any = Y if issparse(Y) else _dense(Y, "Y")
        if array.ndim == 2:
            return int(array.shape[1])
        if array.ndim == 1 and len(array) and array.dtype.kind in "iu":
            largest = max(largest, int(array.max()))
    return largest + 1


def as_positive_integer(value: Any, name: str) -> int:
    """Return an integer between 1 and the largest supported number of labels."""
    check_integer(name, value, at_least=1)
    return check_integer(name, value, at_most=np.iinfo(np.int32).max)


def check_same_shape(first: csr_array, first_name: str, second: csr_array, second_name: str) -> None:
    """Raise if the two arrays differ in the number of rows or labels."""
    if first.shape != second.shape:
        what = "rows" if first.shape[0] != second.shape[0] else "labels (columns)"
        raise ValueError(
            f"{first_name} has shape {_shape(first)}, but {second_name} has shape {_shape(second)}; "
            f"the number of {what} must be equal"
        )


def check_one_class_per_row(truth: csr_array) -> None:
    """Raise if a row does not have exactly one label, for metrics that compare classes."""
    per_row = np.diff(truth.indptr)
    if (per_row != 1).any():
        row = int(np.flatnonzero(per_row != 1)[0])
        raise ValueError(f"Y_true must have exactly one label (class) per row, but row {row} has {per_row[row]}")


def _keys(array: csr_array) -> NDArray[np.int64]:
    """Return one number per stored entry; they increase in a canonical array."""
    return rows_of(array) * array.shape[1] + array.indices


def _canonical(array: Any, name: str) -> csr_array:
    """Return a csr_array with sorted indices and without duplicates; does not change the caller's array."""
    if array.ndim != 2:
        raise ValueError(f"{name} must have two dimensions (rows, labels), got a sparse array with {array.ndim}")
    check_parts(name, array)
    check_real(array.dtype, name)
    if array.shape[1] > MAX_LABELS:
        raise ValueError(f"{name} has {array.shape[1]} columns; at most {MAX_LABELS} labels are supported")
    csr = check_csr(name, array, is_copied=True)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def _dense(values: Any, name: str) -> NDArray[Any]:
    check_no_mask(name, values)
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be an array, got rows of different lengths: encode label lists first") from None
    return plain_numbers(array) if array.ndim == 2 else array


def _one_hot(classes: NDArray[Any], name: str, n_labels: int | None) -> csr_array:
    if classes.size and classes.dtype.kind not in "iu":
        raise ValueError(
            f"{name} is one-dimensional, so it must contain integer classes, got dtype {classes.dtype}; "
            f"replace each class by its column"
        )
    classes = classes.astype(np.int64)
    if n_labels is None:
        n_labels = int(classes.max()) + 1 if classes.size else 0
    outside = (classes < 0) | (classes >= n_labels)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise ValueError(f"{name} must contain classes from 0 to {n_labels - 1}, but row {row} is {classes[row]}")
    indptr = np.arange(classes.size + 1, dtype=np.int64)
    return csr_array((np.ones(classes.size, dtype=np.float32), classes, indptr), shape=(classes.size, n_labels))


def _check_two_dimensions(dense: NDArray[Any], name: str) -> None:
    if dense.ndim != 2:
        raise ValueError(f"{name} must have two dimensions (rows, labels), got shape {dense.shape}")


def check_real(dtype: np.dtype[Any], name: str) -> None:
    if dtype.kind not in "biuf":
        raise ValueError(f"{name} must contain real numbers, got dtype {dtype}")


def place(array: csr_array, position: int) -> str:
    """Return the row and column of a stored entry, for error messages."""
    row = int(np.searchsorted(array.indptr, position, side="right")) - 1
    return f"row {row}, column {int(array.indices[position])}"


def _shape(array: csr_array) -> tuple[int, ...]:
    return tuple(int(size) for size in array.shape)
