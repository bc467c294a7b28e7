"""Labels of very different frequency."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def skewed(seed=0, n_rows=600, n_labels=60, n_topics=6, with_empty=True):
    """Labels of a few topics, some far more frequent than others, and one or two without any example."""
    rng = np.random.default_rng(seed)
    chance = 1 / np.arange(1, n_labels + 1) ** 1.2
    if with_empty:
        chance[-2:] = 0
    chance = rng.permutation(chance / chance.sum())
    y = rng.choice(n_labels, size=(n_rows, 2), p=chance)
    Y = np.zeros((n_rows, n_labels), dtype=np.float32)
    np.put_along_axis(Y, y, 1, axis=1)
    X = rng.random((n_rows, 4 * n_topics)) * 0.2
    for row, labels in enumerate(y):
        for label in labels:
            X[row, 4 * (label % n_topics) : 4 * (label % n_topics) + 4] += rng.random(4)
    return sparse.csr_array(X.astype(np.float32)), sparse.csr_array(Y)
