"""How much each label is asked for: the marginal frequencies f, and the paper's f-tilde that counts a context once."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ramify import _core
from ramify.common.validation import check_number
from ramify.data.labels import label_indicator

Frequencies = NDArray[np.float64]


def marginal_frequency(Y: Any, context_weight: ArrayLike | None = None) -> Frequencies:
    """f: the mass of the contexts (rows) that have each label.

    >>> marginal_frequency([[1, 1, 0], [1, 0, 0], [0, 0, 1]])
    array([2., 1., 1.])
    """
    indicator, weight = _checked(Y, context_weight)
    per_entry = np.repeat(weight, np.diff(indicator.indptr))
    return _sums(indicator.indices, per_entry, indicator.shape[1])


def effective_frequency(
    Y: Any, frequency: str | float = "marginal", context_weight: ArrayLike | None = None
) -> Frequencies:
    """f-tilde: frequencies for which a context asks for one label of its own, the one that is shallow anyway.

    "marginal" gives a context's mass to that of its labels that has the highest marginal frequency; "greedy" takes the
    label with the most contexts, then the label with the most of the others, and so on. A number s between 0 and 1 is
    softened: "marginal", and s of a context's mass to each of its other labels, so that 0 is "marginal" and 1 is f.
    Ties go to the lower column. Paper: efficiency-precision label trees, appendix B.

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
    """Algorithm 2, all contexts at once."""
    marginal = marginal_frequency(indicator, weight)
    has_labels = np.diff(indicator.indptr) > 0
    starts, lengths = indicator.indptr[:-1][has_labels], np.diff(indicator.indptr)[has_labels]
    if len(starts) == 0:
        return np.zeros(indicator.shape[1])
    of_entry = marginal[indicator.indices]
    is_highest = of_entry == np.repeat(np.maximum.reduceat(of_entry, starts), lengths)
    # Columns are sorted within a row, so the lowest of the highest is the first.
    first = np.minimum.reduceat(np.where(is_highest, indicator.indices, indicator.shape[1]), starts)
    return _sums(first, weight[has_labels], indicator.shape[1])


def _sums(columns: NDArray[np.integer], weights: Frequencies, n_columns: int) -> Frequencies:
    return np.asarray(np.bincount(columns, weights=weights, minlength=n_columns), dtype=np.float64)


def _greedy(indicator: sp.csr_array, weight: Frequencies) -> Frequencies:
    """Algorithm 1 with a priority queue."""
    by_column = indicator.tocsc()
    return _core.greedy_frequency(
        indicator.indptr.astype(np.int64),
        indicator.indices.astype(np.int32),
        by_column.indptr.astype(np.int64),
        by_column.indices.astype(np.int32),
        weight,
    )


def _checked(Y: Any, context_weight: ArrayLike | None) -> tuple[sp.csr_array, Frequencies]:
    indicator = label_indicator(Y)
    if indicator.shape[1] == 0:
        raise ValueError("Y has no columns; a tree needs at least one label")
    if context_weight is None:
        return indicator, np.ones(indicator.shape[0])
    weight = np.array(context_weight, dtype=np.float64)
    if weight.shape != (indicator.shape[0],):
        raise ValueError(f"context_weight must have one number a row, {indicator.shape[0]}; got shape {weight.shape}")
    if not (np.isfinite(weight) & (weight >= 0)).all():
        raise ValueError("context_weight must be finite and not negative")
    return indicator, weight
