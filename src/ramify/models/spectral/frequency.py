"""The most frequent labels: candidates that every leaf can have, and the filter that any other must beat."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


def most_frequent_labels(Y: sparse.csr_array, n: int) -> NDArray[np.int32]:
    """The columns of the n labels that most rows have, rising; labels without rows are none of them.

    >>> most_frequent_labels(sparse.csr_array(np.array([[0, 1, 1], [0, 1, 0]])), 1).tolist()
    [1]
    """
    count = np.bincount(Y.indices, minlength=Y.shape[1])
    best = np.lexsort((np.arange(len(count)), -count))[:n]
    return np.sort(best[count[best] > 0]).astype(np.int32)


def frequency_recall(Y: sparse.csr_array, k: int) -> float:
    """Share of all labels of all rows that are among the k most frequent: what a filter must beat.

    >>> frequency_recall(sparse.csr_array(np.array([[0, 1, 1], [0, 1, 0]])), 1)
    0.6666666666666666
    """
    count = np.sort(np.bincount(Y.indices, minlength=Y.shape[1]))[::-1]
    return float(count[:k].sum() / max(count.sum(), 1))
