"""Rows for memory trees, and what holds for every tree."""

from __future__ import annotations

import numpy as np
from scipy import sparse

N_FEATURES, N_LABELS = 12, 6


def stream(seed, n_rows, is_multiclass, n_labels=N_LABELS, n_features=N_FEATURES):
    """Rows about their labels: a few occur twice, some have no feature or, unless is_multiclass, no label."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, n_labels, n_rows)
    X = (generator.random((n_rows, n_features)) < 0.25) * generator.random((n_rows, n_features))
    X[np.arange(n_rows), y % n_features] += 1.0
    X[generator.random(n_rows) < 0.05] = 0.0
    Y = np.zeros((n_rows, n_labels))
    Y[np.arange(n_rows), y] = 1
    if not is_multiclass:
        Y += generator.random(Y.shape) < 0.1
        Y[generator.random(n_rows) < 0.1] = 0
    again = generator.integers(0, n_rows, n_rows // 8)
    X[again], Y[again] = X[again - 1], Y[again - 1]
    return sparse.csr_array(X.astype(np.float32)), sparse.csr_array((Y > 0).astype(np.float32))


class Shape:
    """What a state says about the tree."""

    def __init__(self, state):
        self.left, self.right = state["left"], state["right"]
        self.n_nodes = len(self.left)
        self.is_leaf = self.left < 0
        self.n = np.bincount(state["leaf"], minlength=self.n_nodes)
        self.depth = np.zeros(self.n_nodes, dtype=int)
        for v in range(self.n_nodes):
            if not self.is_leaf[v]:
                self.depth[[self.left[v], self.right[v]]] = self.depth[v] + 1
        for v in reversed(range(self.n_nodes)):
            if not self.is_leaf[v]:
                self.n[v] = self.n[self.left[v]] + self.n[self.right[v]]


def check_invariants(core):
    state = core.state()
    shape, n = Shape(state), core.n_examples
    # A binary tree, breadth first: every node but the root is the child of exactly one.
    children = np.concatenate([shape.left[~shape.is_leaf], shape.right[~shape.is_leaf]])
    assert sorted(children.tolist()) == list(range(1, shape.n_nodes))
    assert ((shape.left < 0) == (shape.right < 0)).all()
    assert len(state["router_begin"]) - 1 == (~shape.is_leaf).sum()
    # Every example is in one leaf, at a place of its own; no leaf is empty, none too full.
    assert len(state["leaf"]) == n
    assert shape.is_leaf[state["leaf"]].all()
    for leaf in np.flatnonzero(shape.is_leaf):
        places = state["place_in_leaf"][state["leaf"] == leaf]
        assert sorted(places.tolist()) == list(range(len(places)))
        assert len(places) > 0 or shape.n_nodes == 1
        assert len(places) <= max(core.leaf_capacity, 2)
    # For every label its examples have places of their own.
    row = np.repeat(np.arange(n), np.diff(state["y_begin"]))
    assert len(row) == len(state["place"])
    for label in np.unique(state["y_label"]):
        places = state["place"][state["y_label"] == label]
        assert sorted(places.tolist()) == list(range(len(places)))
    assert (state["weight"] > 0).all()
    assert len(np.unique(state["arrival"])) == n
    assert all(np.isfinite(values).all() for values in state.values() if values.dtype.kind == "f")
    return state, shape
