"""Measures of one label's decisions, whose mean over labels thresholds are tuned for: F-beta, Jaccard, G-mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Counts = NDArray[Any]


@dataclass(frozen=True)
class LabelMeasure:
    """A measure of a label, from its hits, predictions and positives among n rows.

    `beta` is that of F-beta, None for the Jaccard index, NaN for the G-mean, the root of sensitivity times specificity.
    The paper tunes for F1 and names other measures as its next step.
    Paper: Jasinska et al. 2016, "Extreme F-Measure Maximization using Sparse Probability Estimates", sections 2 and 7.
    """

    name: str
    beta: float | None = 1.0

    @property
    def is_g_mean(self) -> bool:
        return self.beta is not None and np.isnan(self.beta)

    def value(self, hits: Counts, predicted: Counts, positives: Counts, n_rows: int, empty: float) -> Counts:
        """The measure; `empty` for a label that has neither positives nor predictions.

        >>> [float(label_measure(name).value(np.array([2]), np.array([3]), np.array([2]), 10, 0.0)[0].round(3))
        ...     for name in ("macro_f1", "macro_f2", "macro_jaccard", "macro_g_mean")]
        [0.8, 0.909, 0.667, 0.935]
        """
        if self.is_g_mean:
            negatives = n_rows - positives
            sensitivity = np.divide(hits, positives, out=np.zeros(np.shape(hits)), where=positives > 0)
            wrong = np.divide(predicted - hits, negatives, out=np.zeros(np.shape(hits)), where=negatives > 0)
            found = np.sqrt(sensitivity * (1.0 - wrong))
            return np.asarray(np.where((positives == 0) & (predicted == 0), empty, found))
        if self.beta is None:
            weight, total = 1.0, predicted + positives - hits
        else:
            weight, total = 1.0 + self.beta**2, predicted + self.beta**2 * positives
        return np.asarray(np.where(total > 0, weight * hits / np.where(total > 0, total, 1), empty))

    @property
    def highest_threshold(self) -> float:
        """Above this no threshold is optimal, if the probabilities are right."""
        if self.is_g_mean:
            return 1.0
        return 0.5 if self.beta is None else 1 / (1 + self.beta**2)

    def lower_bound(self, prior: ArrayLike) -> NDArray[np.float32]:
        """Below this no threshold is optimal, if the probabilities are right: that of predicting every row.

        For F-beta the best threshold is F* / (1 + beta^2), and predicting every row has F = (1 + beta^2) prior / (1 +
        beta^2 prior) (equations 4 and 5 of the paper for beta = 1). The Jaccard index is largest where F1 is. The
        G-mean has no such bound.

        >>> [label_measure(name).lower_bound(0.25).round(3).tolist() for name in ("macro_f1", "macro_f2")]
        [0.20000000298023224, 0.125]
        """
        prior = np.asarray(prior, dtype=np.float64)
        if self.is_g_mean:
            return np.zeros(prior.shape, dtype=np.float32)
        beta = 1.0 if self.beta is None else self.beta
        return np.asarray(prior / (beta**2 * prior + 1.0), dtype=np.float32)


def label_measure(objective: Any) -> LabelMeasure | None:
    """The measure of "macro_f1", "macro_f2" or any other beta, "macro_jaccard", "macro_g_mean"; None if it is no such.

    >>> label_measure("macro_f0.5").beta, label_measure("micro_f1")
    (0.5, None)
    """
    if objective == "macro_jaccard":
        return LabelMeasure(objective, None)
    if objective == "macro_g_mean":
        return LabelMeasure(objective, float("nan"))
    if not isinstance(objective, str) or not objective.startswith("macro_f"):
        return None
    try:
        beta = float(objective.removeprefix("macro_f"))
    except ValueError:
        return None
    return LabelMeasure(objective, beta) if 0 < beta < 1e6 else None


def check_objective(objective: Any) -> str:
    """An objective that thresholds can be tuned for.

    >>> check_objective("macro_f0.5")
    'macro_f0.5'
    """
    if objective in ("micro_f1", "example_f1") or label_measure(objective) is not None:
        return str(objective)
    raise ValueError(
        "objective must be 'macro_f1' (or another beta: 'macro_f2'), 'macro_jaccard', 'macro_g_mean', 'micro_f1' or "
        f"'example_f1', got {objective!r}"
    )
