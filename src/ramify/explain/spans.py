"""Which places of a text speak for a label, or against it: what its probability would be without their terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify.data.csr import csr_rows
from ramify.explain.score import Span

# Probabilities are kept this far from 0 and 1, so that log-odds are finite.
_MARGIN = 1e-6
# Weights below this say nothing.
_LEAST = 1e-3
# Each term costs the answer to a row, so of a very long text only the terms of the largest values are weighed.
MOST_TERMS = 2000
_ENTRIES_AT_ONCE = 1 << 21


def strongest(values: NDArray[np.float32]) -> NDArray[np.intp]:
    """The places of the largest values of a row, in order; all of them, unless the text is very long.

    >>> strongest(np.array([1, 3, 2], np.float32)).tolist()
    [0, 1, 2]
    """
    order = np.argsort(-np.abs(values), kind="stable")
    return np.sort(order[:MOST_TERMS])


def rows_without(
    columns: NDArray[np.int32], values: NDArray[np.float32], places: NDArray[np.intp], n_features: int
) -> Iterator[sparse.csr_array]:
    """The row without its entry at the first place, without that at the second, and so on, some rows at a time.

    >>> row = np.array([0, 2]), np.array([1, 3])
    >>> [rows.toarray().tolist() for rows in rows_without(*row, np.array([0, 1]), 3)]
    [[[0, 0, 3], [1, 0, 0]]]
    """
    n = len(columns)
    at_once = max(1, _ENTRIES_AT_ONCE // n)
    for first in range(0, len(places), at_once):
        left_out = places[first : first + at_once]
        kept = np.arange(n) != left_out[:, None]
        place = np.nonzero(kept)[1]
        indptr = np.arange(len(left_out) + 1, dtype=np.int64) * (n - 1)
        yield csr_rows(values[place], columns[place], indptr, (len(left_out), n_features))


def weighed_spans(
    occurrences: Iterable[tuple[int, int, int, str]],
    columns: NDArray[np.int32],
    whole: float,
    without: NDArray[np.float32],
) -> list[Span]:
    """The places of terms whose absence lowers (or raises) the label's log-odds, in order of the text.

    `whole` is the label's probability for the row, `without` what it is without each of these columns.
    """
    weights = dict(zip(columns.tolist(), (_log_odds(whole) - _log_odds(without)).tolist(), strict=True))
    spans = {
        Span(start, end, round(weights[column], 4))
        for column, start, end, _ in occurrences
        if start >= 0 and abs(weights.get(column, 0.0)) >= _LEAST
    }
    return sorted(spans)


def _log_odds(probabilities: float | NDArray[np.float32]) -> NDArray[np.float64]:
    p = np.clip(np.asarray(probabilities, np.float64), _MARGIN, 1 - _MARGIN)
    found: NDArray[np.float64] = np.log(p / (1 - p))
    return found
