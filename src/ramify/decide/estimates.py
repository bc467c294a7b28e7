"""Sparse probability estimates with the true labels: the input of every tuner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ramify.common.cached import cached_property
from ramify.common.validation import check_choice, check_number
from ramify.decide.measures import LabelMeasure
from ramify.metrics._inputs import as_indicator, as_scores, check_same_shape, hits, place, rows_of

# The F of a label (or row) with neither positives nor predictions: 0 as in scikit-learn, 1 as in the paper (Lewis).
EMPTY = {"zero": 0.0, "one": 1.0}


@dataclass(frozen=True)
class Estimates:
    """The stored probabilities above 0, and which of them belong to a true label."""

    P: sparse.csr_array
    truth: sparse.csr_array
    is_hit: NDArray[np.bool_]

    @property
    def n_rows(self) -> int:
        return int(self.P.shape[0])

    @property
    def n_labels(self) -> int:
        return int(self.P.shape[1])

    @cached_property
    def positives(self) -> NDArray[np.int64]:
        """The number of rows with each label."""
        return np.bincount(self.truth.indices, minlength=self.n_labels).astype(np.int64)

    @cached_property
    def row_of(self) -> NDArray[np.int64]:
        return rows_of(self.P)

    def take(self, is_taken: NDArray[np.bool_]) -> Estimates:
        """Return the selected rows."""
        rows = np.flatnonzero(is_taken)
        return Estimates(self.P[rows], self.truth[rows], self.is_hit[is_taken[self.row_of]])


def estimates(P: Any, Y: Any) -> Estimates:
    """Check both arrays and drop stored zeros."""
    if isinstance(P, Estimates):
        return P
    scores = as_scores(P)
    truth = as_indicator(Y, "Y", n_labels=scores.shape[1])
    check_same_shape(truth, "Y", scores, "P")
    scores = as_stored(scores)
    return Estimates(scores, truth, hits(truth, scores))


def as_stored(P: Any) -> sparse.csr_array:
    """Return canonical float32 probabilities, all above 0."""
    scores = as_scores(P).astype(np.float32, copy=False)
    if scores.nnz and not scores.data.min() >= 0:
        at = int(np.argmin(scores.data))
        raise ValueError(f"P must contain probabilities, but {place(scores, at)} is {scores.data[at]}")
    if scores.nnz and not scores.data.min() > 0:
        scores = scores.copy()
        scores.eliminate_zeros()
    return scores


def lower_bound(prior: ArrayLike) -> NDArray[np.float32]:
    """Return prior / (prior + 1), a lower bound of each label's best threshold.

    Paper: Jasinska et al. 2016, "Extreme F-Measure Maximization using Sparse Probability Estimates", equation 5.

    >>> lower_bound([0.0, 0.25, 1.0]).tolist()
    [0.0, 0.20000000298023224, 0.5]
    """
    prior = np.asarray(prior, dtype=np.float64)
    return np.asarray(prior / (prior + 1.0), dtype=np.float32)


def kappa(cut: float, prior: ArrayLike, measure: LabelMeasure | None = None) -> NDArray[np.float32]:
    """Return where sparse probability estimates are cut: the larger of `cut` (1/c in the paper) and the lower bound.

    A cut of 0 disables the bound too. The bound is that of F1, or of another measure.
    """
    bound = lower_bound(prior) if measure is None else measure.lower_bound(prior)
    return np.maximum(np.float32(cut), bound) if cut > 0 else np.zeros_like(bound)


def check_prior(prior: ArrayLike | None, found: Estimates) -> NDArray[np.float64]:
    """Return the fraction of rows with each label: as given (for example of all training rows), or from Y."""
    if prior is None:
        return found.positives / max(found.n_rows, 1)
    given = np.asarray(prior, dtype=np.float64)
    if given.shape != (found.n_labels,) or not ((given >= 0) & (given <= 1)).all():
        raise ValueError(f"prior must have shape ({found.n_labels},), with a number between 0 and 1 for each label")
    return given


def check_cut(cut: Any) -> float:
    return check_number("cut", cut, at_least=0, at_most=1)


def check_empty(empty: Any) -> float:
    return EMPTY[check_choice("empty", empty, EMPTY)]
