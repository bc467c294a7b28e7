"""F measures of 0/1 decisions."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.metrics._inputs import as_indicator, check_same_shape, number_of_labels, positions_in, rows_of


def macro_f1(Y_true: Any, Y_pred: Any, *, empty: float = 1.0) -> float:
    """Return the mean over labels of F_j = 2 tp_j / (positives_j + predicted_j).

    A label with neither positives nor predictions counts as `empty`: 1.0 as in the paper (after Lewis), 0.0 as in
    scikit-learn. The choice can reverse the order of two models, so report it.
    Paper: Jasinska et al. 2016, "Extreme F-Measure Maximization using Sparse Probability Estimates", section 2.

    >>> round(macro_f1([[1, 0, 0], [1, 1, 0]], [[1, 0, 0], [0, 1, 0]], empty=0.0), 4)
    0.5556
    """
    true, predicted, common = _decisions(Y_true, Y_pred, empty)
    m = true.shape[1]
    tp = _count(predicted.indices[common], m)
    return _mean_f1(tp, _count(true.indices, m) + _count(predicted.indices, m), empty)


def micro_f1(Y_true: Any, Y_pred: Any, *, empty: float = 1.0) -> float:
    """Return F of all decisions pooled: 2 tp / (positives + predicted), or `empty` if both are 0.

    >>> micro_f1([[1, 0, 0], [1, 1, 0]], [[1, 0, 0], [0, 1, 0]])
    0.8
    """
    true, predicted, common = _decisions(Y_true, Y_pred, empty)
    total = true.nnz + predicted.nnz
    return 2.0 * common.size / total if total else float(empty)


def example_f1(Y_true: Any, Y_pred: Any, *, empty: float = 1.0) -> float:
    """Return the mean over rows of F_i = 2 tp_i / (positives_i + predicted_i); a row with neither counts as `empty`.

    >>> round(example_f1([[1, 0, 0], [1, 1, 0]], [[1, 0, 0], [0, 1, 0]]), 4)
    0.8333
    """
    true, predicted, common = _decisions(Y_true, Y_pred, empty)
    tp = _count(rows_of(predicted)[common], true.shape[0])
    return _mean_f1(tp, np.diff(true.indptr) + np.diff(predicted.indptr), empty)


def _decisions(Y_true: Any, Y_pred: Any, empty: float) -> tuple[csr_array, csr_array, NDArray[np.intp]]:
    """Return both arrays, checked, and the positions of the correct predictions."""
    if not isinstance(empty, numbers.Real) or not 0.0 <= empty <= 1.0:
        raise ValueError(f"empty must be a number from 0 to 1 (1.0 after Lewis, 0.0 as in scikit-learn), got {empty!r}")
    n_labels = number_of_labels(Y_true, Y_pred)
    true = as_indicator(Y_true, "Y_true", n_labels=n_labels)
    predicted = as_indicator(Y_pred, "Y_pred", n_labels=n_labels)
    check_same_shape(true, "Y_true", predicted, "Y_pred")
    return true, predicted, positions_in(true, predicted)


def _count(numbers: NDArray[Any], size: int) -> NDArray[np.int64]:
    return np.bincount(numbers, minlength=size).astype(np.int64)


def _mean_f1(common: NDArray[Any], total: NDArray[Any], empty: float) -> float:
    if total.size == 0:
        return float("nan")
    return float(np.where(total > 0, 2.0 * common / np.maximum(total, 1), empty).mean())
