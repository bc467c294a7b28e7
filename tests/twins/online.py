"""An incremental PLT in float64, one classifier and one example at a time (Jasinska-Kobus et al. 2021,
algorithm 1)."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from ramify import _core
from twins.search import prepared

BIAS = 0xFFFFFFFE

SETTINGS = {
    "rule": "adagrad",
    "learning_rate": 1.0,
    "eps": 0.01,
    "eps_in_root": False,
    "decay": 0.0,
    "l2": 0.0,
    "normalize": True,
    "bias": 0.5,
    "is_multiclass": False,
    "buffer_entries": 1000,
    "memory_budget": 0,
    "policy": "fair",
    "alpha": 0.75,
    "fair_share": 1.2,
    "arity": 2,
    "pre_leaf_arity": 3,
    "seed": 0,
}


def learner(**changes):
    return _core.OnlineLearner(**{**SETTINGS, **changes})


def learn(core, X, Y, weight=None, own=None, n_threads=1):
    core.learn(X, Y, weight, None, n_threads, own, None)
    return core


def blocks_of(state, n_features):
    """Of each inner node (-1: the root's own classifier) its children, weights and sums; the bias is the last row."""
    found, column, feature, entry = {}, 0, 0, 0
    for node, n_columns, n_rows, scale in zip(
        state["block_node"], state["block_columns"], state["block_rows"], state["block_scale"], strict=True
    ):
        children = state["column_child"][column : column + n_columns]
        features = state["feature"][feature : feature + n_rows]
        features = np.where(features == BIAS, n_features, features).astype(int)
        cells = slice(entry, entry + n_rows * n_columns)
        weights, sums = np.zeros((2, n_features + 1, n_columns))
        weights[features] = state["weight"][cells].reshape(n_rows, n_columns) * np.float64(scale)
        if len(state["sum"]):
            sums[features] = state["sum"][cells].reshape(n_rows, n_columns)
        kept = children >= 0
        if kept.any():
            found[int(node)] = (children[kept], weights[:, kept], sums[:, kept])
        column, feature, entry = column + n_columns, feature + n_rows, entry + n_rows * n_columns
    return found


class Classifier:
    """One node's classifier: AdaGrad, or FOBOS with an L2 regulariser."""

    def __init__(self, n_columns, settings):
        self.weights, self.sums, self.n_steps, self.settings = np.zeros(n_columns), np.zeros(n_columns), 0, settings

    def step(self, x, is_positive, weight):
        s, y = self.settings, 1.0 if is_positive else -1.0
        gradient = -y * expit(-y * (x @ self.weights)) * weight * x
        if s["rule"] == "adagrad":
            self.sums += gradient**2
            moved = gradient != 0
            sums, eps = self.sums[moved], s["eps"]
            root = np.sqrt(sums + eps) if s["eps_in_root"] else np.sqrt(sums) + eps
            self.weights[moved] -= s["learning_rate"] * gradient[moved] / (root + s["decay"] * sums)
        else:
            rate = s["learning_rate"] / (1 + s["learning_rate"] * s["l2"] * self.n_steps)
            self.weights = (self.weights - rate * gradient) / (1 + rate * s["l2"])
        self.n_steps += 1


def incremental_plt(parent, label, X, Y, weight, settings):
    """The classifier of every node; the root's is of use only if some row has no label."""
    leaf_of = {int(j): node for node, j in enumerate(label) if j >= 0}
    classifiers = [Classifier(X.shape[1] + (settings["bias"] != 0), settings) for _ in parent]
    for x, labels, w in zip(prepared(X, settings["normalize"], settings["bias"]), Y, weight, strict=True):
        positive = set()
        for j in np.flatnonzero(labels):
            node = leaf_of[int(j)]
            while node >= 0:
                positive.add(node)
                node = int(parent[node])
        for node, classifier in enumerate(classifiers):
            if node == 0 or int(parent[node]) in positive:
                classifier.step(x, node in positive, w)
    return classifiers


def label_probabilities(state, x, n_labels, is_multiclass):
    """Products of the conditional probabilities along the paths, in float64; labels without a leaf have none."""
    parent, label = state["parent"], state["label"]
    conditional = np.ones(len(parent))
    for node, (children, weights, _) in blocks_of(state, len(x) - 1).items():
        scores = x @ weights
        p = np.exp(scores - scores.max()) if is_multiclass and node >= 0 else expit(scores)
        conditional[children] = p / p.sum() if is_multiclass and node >= 0 else p
    answer = np.zeros(n_labels)
    for node in np.flatnonzero(label >= 0):
        above, product = int(node), 1.0
        while above >= 0:
            product *= conditional[above]
            above = int(parent[above])
        answer[label[node]] = product
    return answer
