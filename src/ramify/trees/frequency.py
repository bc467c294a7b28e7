"""Label frequencies: counts, the marginals f, and the paper's f-tilde, which counts each context once."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ramify import _core
from ramify.common.validation import check_number
from ramify.data.labels import label_indicator

Frequencies = NDArray[np.float64]


def checked_indicator(Y: Any) -> sp.csr_array:
    """Return Y as a 0/1 csr_array with at least one column."""
    indicator = label_indicator(Y)
    if indicator.shape[1] == 0:
        raise ValueError("Y has no columns; a tree needs at least one label")
    return indicator


def label_frequency(Y: Any) -> NDArray[np.int64]:
    """Count the examples of each label.

    >>> label_frequency([0, 2, 2])
    array([1, 0, 2])
    """
    indicator = checked_indicator(Y)
    return np.bincount(indicator.indices, minlength=indicator.shape[1])


def marginal_frequency(Y: Any, context_weight: ArrayLike | None = None) -> Frequencies:
    """Return f: for each label, the total weight of the contexts (rows) that have it.

    >>> marginal_frequency([[1, 1, 0], [1, 0, 0], [0, 0, 1]])
    array([2., 1., 1.])
    """
    indicator, weight = _checked(Y, context_weight)
    per_entry = np.repeat(weight, np.diff(indicator.indptr))
    return _sums(indicator.indices, per_entry, indicator.shape[1])


def effective_frequency(
    Y: Any, frequency: str | float = "marginal", context_weight: ArrayLike | None = None
) -> Frequencies:
    """Return f-tilde: frequencies in which each context counts for one of its labels, the shallowest one.

    "marginal" gives a context's weight to its label with the highest marginal frequency. "greedy" picks the label
    with the most contexts, then the label with the most remaining contexts, and so on. A number s between 0 and 1
    softens "marginal": each other label of a context also gets s times the context's weight, so 0 is "marginal" and
    1 is f. Ties go to the lower column.
    Paper: Baharav et al. 2021, "Enabling Efficiency-Precision Trade-offs for Label Trees in Extreme Classification",
    appendix B.

    >>> Y = [[1, 1, 0], [1, 0, 0], [1, 0, 1], [0, 1, 0], [0, 1, 1]]
    >>> effective_frequency(Y), effective_frequency(Y, 0.5)
    (array([3., 2., 0.]), array([3. , 2.5, 1. ]))
    >>> effective_frequency([[1, 1, 0], [1, 1, 0], [1, 0, 0], [0, 1, 1]], "greedy")
    array([3., 1., 0.])
    """
    indicator, weight = _checked(Y, context_weight)
    if isinstance(frequency, str):
        if frequency not in ("marginal", "greedy"):
            raise ValueError(f"frequency must be 'marginal', 'greedy' or a number between 0 and 1, got {frequency!r}")
        return _first_labels(indicator, weight) if frequency == "marginal" else _greedy(indicator, weight)
    softness = check_number("frequency", frequency, at_least=0, at_most=1)
    return (1 - softness) * _first_labels(indicator, weight) + softness * marginal_frequency(indicator, weight)


def _first_labels(indicator: sp.csr_array, weight: Frequencies) -> Frequencies:
    """Algorithm 2 of the paper, on all contexts at once."""
    marginal = marginal_frequency(indicator, weight)
    has_labels = np.diff(indicator.indptr) > 0
    starts, lengths = indicator.indptr[:-1][has_labels], np.diff(indicator.indptr)[has_labels]
    if len(starts) == 0:
        return np.zeros(indicator.shape[1])
    of_entry = marginal[indicator.indices]
    is_highest = of_entry == np.repeat(np.maximum.reduceat(of_entry, starts), lengths)
    # Ties go to the lowest column.
    first = np.minimum.reduceat(np.where(is_highest, indicator.indices, indicator.shape[1]), starts)
    return _sums(first, weight[has_labels], indicator.shape[1])


def _sums(columns: NDArray[np.integer], weights: Frequencies, n_columns: int) -> Frequencies:
    return np.asarray(np.bincount(columns, weights=weights, minlength=n_columns), dtype=np.float64)


def _greedy(indicator: sp.csr_array, weight: Frequencies) -> Frequencies:
    """Algorithm 1 of the paper, with a priority queue."""
    return _core.greedy_frequency(indicator, indicator.tocsc(), weight)


def _checked(Y: Any, context_weight: ArrayLike | None) -> tuple[sp.csr_array, Frequencies]:
    indicator = checked_indicator(Y)
    if context_weight is None:
        return indicator, np.ones(indicator.shape[0])
    weight = np.array(context_weight, dtype=np.float64)
    if weight.shape != (indicator.shape[0],):
        raise ValueError(
            f"context_weight must have one number per row, so shape ({indicator.shape[0]},), got {weight.shape}"
        )
    is_bad = ~(np.isfinite(weight) & (weight >= 0))
    if is_bad.any():
        row = int(np.argmax(is_bad))
        raise ValueError(f"context_weight must be finite and at least 0, but row {row} has {weight[row]}")
    return indicator, weight
