"""Plain Python twins of FastXML's kernels, and small forests as arrays."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ramify import _core

N_FEATURES, N_LABELS, N_TREES = 30, 12, 4
DTYPES = {
    "tree_begin": np.int64,
    "child": np.int32,
    "mass": np.float32,
    "weight_begin": np.int64,
    "weight_feature": np.int32,
    "weight": np.float32,
    "label_begin": np.int64,
    "label": np.int32,
    "probability": np.float32,
}


def random_data(seed, n_rows=80, n_features=N_FEATURES, n_labels=N_LABELS, density=0.3):
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n_rows, n_features), density=density, rng=rng, dtype=np.float32, format="csr")
    X.data -= 0.3
    X.sort_indices()
    Y = rng.random((n_rows, n_labels)) < 0.2
    Y[:, 0] = X.toarray()[:, 0] > 0
    return sparse.csr_array(X), sparse.csr_array(Y.astype(np.float32))


def forest_settings(**changes):
    given = {"n_trees": N_TREES, "max_leaf": 5, "labels_per_leaf": 100, "max_iterations": 100}
    return _core.ForestSettings(**{**given, "C": 5.0, "eps": 0.01, "max_newton": 20, **changes})


def grow(X, Y, *, gain=None, weight=None, seed=0, n_threads=1, bias=1.0, normalize=False, **settings):
    features = _core.FeatureSettings(X.shape[1], normalize, bias)
    settings = forest_settings(**settings)
    return _core.grow_forest(X, Y, Y.shape[1], gain, weight, features, settings, seed, n_threads)


def build(arrays, *, n_labels=N_LABELS, n_features=N_FEATURES, bias=1.0, normalize=False):
    return _core.InstanceForest(arrays, n_labels, _core.FeatureSettings(n_features, normalize, bias))


def route(arrays, x, tree):
    """The nodes that a dense row (with its bias) passes in a tree."""
    v = int(arrays["tree_begin"][tree])
    nodes = [v]
    while arrays["child"][v] >= 0:
        part = slice(arrays["weight_begin"][v], arrays["weight_begin"][v + 1])
        score = x[arrays["weight_feature"][part]].astype(np.float64) @ arrays["weight"][part].astype(np.float64)
        v = int(arrays["child"][v]) + int(score > 0)
        nodes.append(v)
    return nodes


def probabilities(arrays, X, bias=1.0, n_labels=N_LABELS):
    """Mean over the trees of the leaves' distributions, for each row."""
    answer = np.zeros((X.shape[0], n_labels), np.float32)
    n_trees = len(arrays["tree_begin"]) - 1
    for row, x in enumerate(np.hstack([X.toarray(), np.full((X.shape[0], 1), bias, np.float32)])):
        for tree in range(n_trees):
            leaf = route(arrays, x, tree)[-1]
            part = slice(arrays["label_begin"][leaf], arrays["label_begin"][leaf + 1])
            answer[row, arrays["label"][part]] += arrays["probability"][part]
    return answer / np.float32(n_trees)


def ndcg_objective(Y, side, gain, weight):
    """Sum over rows of the nDCG under their side's best ranking; and the rankings, as rank by label from 1."""
    ideal = np.array([sum(1 / np.log2(r + 1) for r in range(1, n + 1)) for n in Y.sum(axis=1).astype(int)])
    # Rounded as in the core, so that sums are exact and ties are ties.
    share = np.where(ideal > 0, np.round(2.0**20 / np.maximum(ideal, 1e-9)) / 2.0**20, 0) * weight
    sums = [(Y * (share * (side == s))[:, None]).sum(axis=0) * gain for s in (0, 1)]
    total, ranks = 0.0, []
    for s in (0, 1):
        present = np.flatnonzero(Y.any(axis=0))
        best = present[np.lexsort((present, -sums[1 - s][present], -sums[s][present]))]
        rank = np.full(Y.shape[1], np.inf)
        rank[best] = np.arange(1, len(best) + 1)
        ranks.append(rank)
        total += (sums[s][best] / np.log2(rank[best] + 1)).sum()
    return total, ranks


def split_by_ranking(Y, side, gain, weight, max_iterations=100):
    """The alternation, written as the paper has it."""
    side = side.copy()
    objectives = []
    for _ in range(max_iterations):
        objective, ranks = ndcg_objective(Y, side, gain, weight)
        objectives.append(objective)
        value = [(Y * (gain / np.log2(rank + 1))).sum(axis=1) for rank in ranks]
        better = np.where(np.abs(value[1] - value[0]) <= 1e-9, side, value[1] > value[0]).astype(side.dtype)
        if np.array_equal(better, side):
            break
        side = better
    return side, objectives
