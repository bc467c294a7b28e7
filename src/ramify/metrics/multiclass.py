"""Metrics for multi-class data: every row has exactly one class."""

from __future__ import annotations

from typing import Any

import numpy as np

from ramify.metrics._inputs import Comparison, as_indicator, check_one_class_per_row, compare, number_of_labels
from ramify.metrics.ranking import precision, rank


def accuracy(Y_true: Any, P: Any) -> float:
    """Return the fraction of rows whose top label is the true class; `P` may be a 1-D array of predicted classes.

    >>> accuracy([0, 1, 1, 2], [0, 1, 2, 2])
    0.75
    """
    return _accuracy(_one_class_each(Y_true, P))


def entropy_reduction(Y_true: Any, P: Any, *, constant: int | None = None) -> float:
    """Return the bits gained over a constant predictor: log2(accuracy) - log2(accuracy of the constant predictor).

    `constant` is the class it predicts, for example the most frequent one in training; by default the most frequent
    class of `Y_true`, the best possible constant. An accuracy of 0 gives -inf.
    Paper: Jasinska-Kobus et al. 2021, "Online probabilistic label trees", section 5.2.

    >>> entropy_reduction([0, 0, 1, 2], [0, 0, 1, 2])
    1.0
    """
    comparison = _one_class_each(Y_true, P)
    n_rows, n_labels = comparison.n_rows, comparison.n_labels
    if n_rows == 0:
        return float("nan")
    counts = np.bincount(comparison.truth.indices, minlength=n_labels)
    if constant is None:
        constant = int(counts.argmax())
    elif not 0 <= constant < n_labels:
        raise ValueError(f"constant must be a class from 0 to {n_labels - 1}, got {constant!r}")
    if counts[constant] == 0:
        raise ValueError(
            f"constant {constant} never occurs in Y_true, so the accuracy of the constant predictor is 0 and the "
            f"reduction is infinite; pass constant=None to compare with the most frequent class"
        )
    with np.errstate(divide="ignore"):
        return float(np.log2(_accuracy(comparison)) - np.log2(counts[constant] / n_rows))


def _accuracy(comparison: Comparison) -> float:
    return precision(rank(comparison, 1), 1)


def _one_class_each(Y_true: Any, P: Any) -> Comparison:
    if np.ndim(P) == 1:
        P = as_indicator(P, "P", n_labels=number_of_labels(Y_true, P))
    comparison = compare(Y_true, P)
    check_one_class_per_row(comparison.truth)
    return comparison
