"""The quality of probabilities: proper losses and calibration."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.metrics._inputs import Comparison, as_positive_integer, as_probabilities, check_one_class_per_row, compare

# About the resolution of float32 below 1, so clipping changes a probability below 1 by no more than rounding.
CLIP = 1e-7


@dataclass(frozen=True)
class ReliabilityCurve:
    """One entry per bin of equal width; an empty bin has count 0 and is otherwise nan."""

    mean_probability: NDArray[np.float64]
    frequency: NDArray[np.float64]
    count: NDArray[np.int64]


def log_loss(Y_true: Any, P: Any, *, eps: float = CLIP, multiclass: bool = False) -> float:
    """Return the negative log likelihood of independent labels, summed over labels, averaged over rows, in nats.

    Probabilities are clipped to [eps, 1 - eps]. A label that is not stored has probability 0 before clipping, so a
    missing true label costs -log(eps): compare models on predictions of the same length.
    With `multiclass`, every row has exactly one class and the loss is -log of the probability of that class.

    >>> import numpy as np
    >>> round(log_loss([[1, 0]], np.array([[0.5, 0.5]])), 4)
    1.3863
    >>> round(log_loss([0], np.array([[0.5, 0.5]]), multiclass=True), 4)
    0.6931
    """
    if not isinstance(eps, numbers.Real) or not 0.0 < eps < 0.5:
        raise ValueError(f"eps must be a number above 0 and below 0.5, got {eps!r}")
    comparison, p = _probabilities(Y_true, P)
    if multiclass:
        check_one_class_per_row(comparison.truth)
    return mean_log_loss(comparison, p, eps, multiclass=multiclass)


def brier_score(Y_true: Any, P: Any) -> float:
    """Return the squared error, summed over labels, averaged over rows; a label that is not stored counts as 0.

    For rows with exactly one class this is Brier's original score, from 0 to 2.

    >>> import numpy as np
    >>> brier_score([[1, 0]], np.array([[0.5, 0.5]]))
    0.5
    """
    return mean_squared_error(*_probabilities(Y_true, P))


def reliability_curve(Y_true: Any, P: Any, n_bins: int = 10, *, absent_positives: bool = False) -> ReliabilityCurve:
    """Return the mean probability, observed frequency and count of the stored estimates in bins of equal width.

    A bin holds lower <= p < upper; the last bin includes p = 1. With `absent_positives`, true labels that are not
    stored join the first bin with probability 0. Labels that are neither stored nor true do not count: they are nearly
    all of the n x m labels and would dominate the first bin.

    >>> import numpy as np
    >>> reliability_curve([[1, 0, 1]], np.array([[0.9, 0.3, 0.7]]), n_bins=2).frequency
    array([0., 1.])
    """
    n_bins = as_positive_integer(n_bins, "n_bins")
    return binned(*_probabilities(Y_true, P), n_bins, absent_positives)


def expected_calibration_error(Y_true: Any, P: Any, n_bins: int = 10) -> float:
    """Return the mean gap between probability and frequency over bins of equal width, weighted by bin count.

    This counts the stored estimates and, with probability 0, the true labels that are not stored: the gap of
    `reliability_curve(..., absent_positives=True)`. The result depends on what is stored, so compare models with the
    same `top_k` and `threshold`. Without anything to count the result is nan.

    >>> import numpy as np
    >>> round(expected_calibration_error([[1, 0]], np.array([[0.75, 0.25]])), 4)
    0.25
    """
    n_bins = as_positive_integer(n_bins, "n_bins")
    return calibration_gap(binned(*_probabilities(Y_true, P), n_bins))


def mean_log_loss(
    comparison: Comparison, p: NDArray[np.float64], eps: float = CLIP, *, multiclass: bool = False
) -> float:
    """Return the log loss of checked input."""
    if comparison.n_rows == 0:
        return float("nan")
    clipped = np.clip(p, eps, 1.0 - eps)
    hit = comparison.is_hit
    absent_true = comparison.n_absent_positives
    loss = -float(np.log(clipped[hit]).sum()) - absent_true * float(np.log(eps))
    if not multiclass:
        absent_false = comparison.n_rows * comparison.n_labels - p.size - absent_true
        loss -= float(np.log1p(-clipped[~hit]).sum()) + absent_false * float(np.log1p(-eps))
    return loss / comparison.n_rows


def mean_squared_error(comparison: Comparison, p: NDArray[np.float64]) -> float:
    """Return the Brier score of checked input; a true label that is not stored adds 1."""
    if comparison.n_rows == 0:
        return float("nan")
    return (float(((p - comparison.is_hit) ** 2).sum()) + comparison.n_absent_positives) / comparison.n_rows


def binned(
    comparison: Comparison, p: NDArray[np.float64], n_bins: int = 10, absent_positives: bool = True
) -> ReliabilityCurve:
    """Return the reliability curve of checked input."""
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    # Compare with the edges: truncating p * n_bins could put p = edge into the wrong bin.
    bin_of = np.minimum(np.searchsorted(edges, p, side="right") - 1, n_bins - 1)
    count = np.bincount(bin_of, minlength=n_bins).astype(np.int64)
    mass = np.bincount(bin_of, weights=p, minlength=n_bins)
    positive = np.bincount(bin_of[comparison.is_hit], minlength=n_bins).astype(np.float64)
    if absent_positives:
        count[0] += comparison.n_absent_positives
        positive[0] += comparison.n_absent_positives
    with np.errstate(invalid="ignore"):
        return ReliabilityCurve(mass / count, positive / count, count)


def calibration_gap(curve: ReliabilityCurve) -> float:
    """Return the mean distance of a curve from the diagonal."""
    filled = curve.count > 0
    if not filled.any():
        return float("nan")
    gap = np.abs(curve.mean_probability - curve.frequency)[filled]
    return float(np.average(gap, weights=curve.count[filled]))


def _probabilities(Y_true: Any, P: Any) -> tuple[Comparison, NDArray[np.float64]]:
    comparison = compare(Y_true, P)
    return comparison, as_probabilities(comparison.scores)
