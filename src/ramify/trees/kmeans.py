"""Balanced spherical k-means on label vectors: similar labels are close in the tree."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ramify import _core
from ramify.common.validation import check_integer, check_number, number_of_threads
from ramify.data.csr import checked_rows, csr_rows
from ramify.data.labels import label_indicator
from ramify.data.remote_rows import RemoteRows
from ramify.trees.frequency import checked_indicator
from ramify.trees.label_tree import LabelTree
from ramify.trees.splitting import Positions, from_splits

# Drop entries of a label vector below this fraction of its root mean square. On real data this drops 6 to 39 % of the
# entries and at most 0.5 % of the squared length on average, and the trees are about as good.
PRUNE = 0.2
# Of what is left, the largest entries are kept: as many as all vectors have room for together, but at least so many.
# With 32 entries trees are about as good, and for 670,000 labels they take a third of the time.
TOTAL_ENTRIES, LEAST_ENTRIES = 20_000_000, 32


def kmeans_tree(
    X: Any,
    Y: Any,
    *,
    arity: int = 16,
    max_leaf: int = 100,
    tol: float = 1e-4,
    max_iterations: int = 20,
    prune: float = PRUNE,
    max_entries: int | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> LabelTree:
    """Recursively split the labels by balanced spherical 2-means, until a part has at most `max_leaf` labels.

    Each node is a collapsed tree of binary splits, so any arity works. A split stops when the mean cosine to the own
    centre rises by less than `tol`, or after `max_iterations`. `prune` drops entries of the PIFA label vectors below
    that fraction of their root mean square, and `max_entries` all but the largest: by default they are as many as give
    all labels together 20 million entries, but at least 32 each. `prune=0` alone keeps all, as the paper does. The tree
    does not depend on `n_jobs`.
    Paper: Baharav et al. 2021, "Enabling Efficiency-Precision Trade-offs for Label Trees in Extreme Classification",
    section 3.1 (the tree of Parabel).

    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [0.1, 0.9]])
    >>> sorted(kmeans_tree(X, [0, 1, 2, 3], arity=2, max_leaf=2, random_state=0).to_nested())
    [[0, 2], [1, 3]]
    """
    check_integer("arity", arity, at_least=2)
    check_integer("max_leaf", max_leaf, at_least=1)
    check_integer("max_iterations", max_iterations, at_least=1, at_most=1_000_000)
    check_number("tol", tol, at_least=0)
    check_number("prune", prune, at_least=0)
    if max_entries is not None:
        check_integer("max_entries", max_entries, at_least=1)
    n_threads = number_of_threads(n_jobs)
    from sklearn.utils import check_random_state

    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    indicator = checked_indicator(Y)
    if max_entries is None and prune > 0:
        max_entries = max(LEAST_ENTRIES, TOTAL_ENTRIES // max(indicator.shape[1], 1))
    vectors = label_vectors(X, indicator, prune=prune, max_entries=max_entries, n_jobs=n_threads)
    split_labels = X.split_labels if isinstance(X, RemoteRows) else _core.split_labels

    def split(order: NDArray[np.int32], starts: Positions, stops: Positions) -> Positions:
        first_starts, shares = starts, n_children(stops - starts, arity, max_leaf)  # children that each part becomes
        while (large := (shares > 1) & (stops - starts > max_leaf)).any():
            left = shares[large] // 2
            begin, end = starts[large], stops[large]
            cuts = np.clip(begin + (end - begin) * left // shares[large], begin + 1, end - 1)
            split_labels(
                vectors,
                vectors.shape[1],
                order,
                begin,
                cuts,
                end,
                eps=tol,
                max_iterations=max_iterations,
                seed=seed,
                n_threads=n_threads,
            )
            places = np.searchsorted(starts, begin) + 1
            right = shares[large] - left
            shares[large] = left
            shares = np.insert(shares, places, right)
            starts, stops = np.insert(starts, places, cuts), np.insert(stops, places - 1, cuts)
        return np.setdiff1d(starts, first_starts, assume_unique=True)

    return from_splits(np.arange(vectors.shape[0]), split, max_leaf=max_leaf)


def n_children(sizes: NDArray[np.int64], arity: int, max_leaf: int) -> NDArray[np.int64]:
    """Return the number of children for parts of these sizes: `arity`, or fewer if they reach `max_leaf` labels.

    Fewer is a power of two where possible: halves follow the clusters better than thirds or sevenths.

    >>> n_children(np.array([20, 60, 500]), arity=7, max_leaf=10)
    array([2, 6, 7])
    """
    enough = -(-sizes // max_leaf)
    halved = 2 ** np.ceil(np.log2(enough)).astype(np.int64)
    return np.minimum(np.where(halved <= arity, halved, enough), arity)


def label_vectors(
    X: Any, Y: Any, *, prune: float = 0.0, max_entries: int | None = None, n_jobs: int | None = None
) -> sp.csr_array:
    """Return PIFA vectors: for each label, the normalised sum of the normalised features of its positive examples.

    A label without examples has an empty row. Entries below `prune` times a row's root mean square are dropped, and
    all but the `max_entries` largest.
    Paper: Baharav et al. 2021, "Enabling Efficiency-Precision Trade-offs for Label Trees in Extreme Classification",
    section 3.1.

    >>> label_vectors(np.array([[3.0, 4.0], [0.0, 2.0]]), [0, 1]).toarray()
    array([[0.6, 0.8],
           [0. , 1. ]], dtype=float32)
    """
    if X is None:
        raise ValueError("the k-means tree needs the features X; without features, use 'random', 'huffman' or 'fano'")
    if isinstance(X, RemoteRows):
        return X.label_vectors(label_indicator(Y), prune, max_entries)
    features = checked_rows(X)
    positives = label_indicator(Y).tocsc()
    if features.shape[0] != positives.shape[0]:
        raise ValueError(f"X has {features.shape[0]} rows, but Y has {positives.shape[0]}; the numbers must be equal")
    start, column, value = _core.label_vectors(
        features,
        features.shape[1],
        positives,
        prune=prune,
        max_entries=max_entries or max(features.shape[1], 1),
        n_threads=number_of_threads(n_jobs),
    )
    return csr_rows(value, column, start, (positives.shape[1], features.shape[1]))
