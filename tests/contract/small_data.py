"""Small data with structure, and what contract tests share."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

N_ROWS, N_FEATURES, N_LABELS = 120, 40, 12


# One classifier for each path of input through the shared code: rows at once, rows of a stream, one class
# a row, and thresholds over each of the first two. Tests of what that code refuses need no more than these.
PATHS = ["plt", "online plt, fair", "lomtree", "ofo", "ofo, online plt"]


once_per_path = pytest.mark.parametrize("make", PATHS, indirect=True)


def make_data(one_class=False):
    """Rows about topics: a topic's features, and a few labels that go with it; every seventh row has no label.

    With `one_class` each row has one of its labels.
    """
    generator = np.random.default_rng(7)
    topic = generator.integers(0, 4, N_ROWS)
    X = (generator.random((N_ROWS, N_FEATURES)) < 0.1) * generator.random((N_ROWS, N_FEATURES))
    X[np.arange(N_ROWS), topic * 10] += 1.0
    Y = np.zeros((N_ROWS, N_LABELS), dtype=int)
    Y[np.arange(N_ROWS), topic] = 1
    Y[np.arange(N_ROWS), 4 + topic * 2 + generator.integers(0, 2, N_ROWS)] = 1
    Y[::7] = 0
    if one_class:
        Y[:] = 0
        Y[np.arange(N_ROWS), np.where(generator.random(N_ROWS) < 0.5, topic, 4 + topic * 2 + np.arange(N_ROWS) % 2)] = 1
    names = np.array([f"Thema {column}, größer" for column in range(N_LABELS)], dtype=object)
    return SimpleNamespace(
        X=sparse.csr_array(X.astype(np.float32)),
        Y=sparse.csr_array(Y),
        names=names,
        collections=[[names[column] for column in np.flatnonzero(row)] for row in Y],
        y=topic,
        texts=[" ".join(f"wort{feature}" for feature in np.flatnonzero(row)) for row in X],
    )


def same(one, other):
    """Equal bit for bit."""
    if sparse.issparse(one):
        return (
            one.shape == other.shape
            and one.dtype == other.dtype
            and np.array_equal(one.indptr, other.indptr)
            and np.array_equal(one.indices, other.indices)
            and np.array_equal(one.data, other.data)
        )
    return np.array_equal(one, other)
