"""Which places of a text speak for a label, or against it: what its probability would be without their terms."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify.data.csr import csr_rows
from ramify.explain.score import Span

# Probabilities are kept this far from 0 and 1, so that log-odds are finite.
_MARGIN = 1e-6
# Weights below this say nothing.
_LEAST = 1e-3


def every_row_without_one(columns: NDArray[np.int32], values: NDArray[np.float32], n_features: int) -> sparse.csr_array:
    """The row itself, then the row without its first entry, without its second, and so on.

    >>> every_row_without_one(np.array([0, 2]), np.array([1, 3]), 3).toarray().tolist()
    [[1, 0, 3], [0, 0, 3], [1, 0, 0]]
    """
    n = len(columns)
    kept = ~np.eye(n + 1, n, k=-1, dtype=bool)
    place = np.nonzero(kept)[1]
    indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return csr_rows(values[place], columns[place], indptr, (n + 1, n_features))


def weighed_spans(
    occurrences: Iterable[tuple[int, int, int, str]], columns: NDArray[np.int32], probabilities: NDArray[np.float32]
) -> list[Span]:
    """The places of terms whose absence lowers (or raises) the label's log-odds, in order of the text.

    `probabilities` are those of the label for the rows of `every_row_without_one`.
    """
    p = np.clip(probabilities.astype(np.float64), _MARGIN, 1 - _MARGIN)
    log_odds = np.log(p / (1 - p))
    weights = dict(zip(columns.tolist(), (log_odds[0] - log_odds[1:]).tolist(), strict=True))
    spans = {
        Span(start, end, round(weights[column], 4))
        for column, start, end, _ in occurrences
        if start >= 0 and abs(weights.get(column, 0.0)) >= _LEAST
    }
    return sorted(spans)
