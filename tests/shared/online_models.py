"""Streams for online PLTs, settings to learn them with, and all that a model has learned from one."""

from __future__ import annotations

import numpy as np

from ramify.optimizers import FOBOS, AdaGrad

N_FEATURES = 12


def split_anywhere(tree, x, label):
    """A policy that uses all three variants of extension, at any node."""
    nodes = [tree.root]
    for node in nodes:
        nodes.extend(tree.children(node))
    node = nodes[(7 * label + len(nodes)) % len(nodes)]
    return node, tree.is_leaf(node) or label % 3 == 0


POLICIES = {
    "fair": {"policy": "fair", "arity": 3, "max_leaf": 4},
    "best": {"policy": "best", "arity": 2, "max_leaf": 3},
    "best, narrow": {"policy": "best", "arity": 2, "max_leaf": 2, "alpha": 0.3},
    "balanced": {"policy": "balanced", "arity": 2, "max_leaf": 3},
    "random": {"policy": "random", "arity": 2, "max_leaf": 4},
    "random, wide": {"policy": "random", "arity": 4, "max_leaf": 9},
    "cpt": {"policy": "cpt"},
    "callable": {"policy": split_anywhere},
}


LEARNERS = {
    "adagrad": {"optimizer": AdaGrad(eps=0.01)},
    "fobos": {"optimizer": FOBOS(l2=0.01, learning_rate=0.5)},
}


def stream(seed, n_rows=60, n_labels=25, multiclass=False):
    """Rows whose labels come in any order, some without labels, some without features."""
    generator = np.random.default_rng(seed)
    X = generator.random((n_rows, N_FEATURES)) * (generator.random((n_rows, N_FEATURES)) < 0.4)
    if multiclass:
        return X, generator.integers(0, n_labels, n_rows)
    Y = (generator.random((n_rows, n_labels)) < generator.random(n_labels) * 0.2).astype(int)
    return X, Y[:, generator.permutation(n_labels)]


def weights_by_labels(clf):
    """Weights and sums of every node's classifier, under the set of labels below the node; zeros are left out."""
    state = clf.model_.learner.state(1, replay=True)
    parent, label = state["parent"], state["label"]
    below = [set() for _ in parent]
    for node in np.flatnonzero(label >= 0):
        above = node
        while above >= 0:
            below[above].add(int(label[node]))
            above = parent[above]
    found, column, feature, entry = {}, 0, 0, 0
    has_sums = len(state["sum"]) > 0
    for node, n_columns, n_rows, scale in zip(
        state["block_node"], state["block_columns"], state["block_rows"], state["block_scale"], strict=True
    ):
        children = state["column_child"][column : column + n_columns]
        features = state["feature"][feature : feature + n_rows]
        cells = slice(entry, entry + n_rows * n_columns)
        weight = state["weight"][cells].reshape(n_rows, n_columns)
        sums = state["sum"][cells].reshape(n_rows, n_columns) if has_sums else np.zeros_like(weight)
        for position, child in enumerate(children):
            if child >= 0:
                name = (frozenset(below[child]), "root" if node < 0 else "node")
                assert name not in found
                kept = (weight[:, position] != 0) | (sums[:, position] != 0)
                cells_of = zip(features[kept], weight[kept, position], sums[kept, position], strict=True)
                found[name] = ({int(f): (w, s) for f, w, s in cells_of}, float(scale))
        column, feature, entry = column + n_columns, feature + n_rows, entry + n_rows * n_columns
    return found


def everything(clf):
    """All that a model has learned, to be compared: arrays, labels, names, widths."""
    state = {name: array.tobytes() for name, array in clf.model_.learner.state(1).items()}
    schema, encoding = clf.schema_, clf.schema_.labels
    labels = encoding.kind, encoding.n_labels, encoding.names(range(encoding.n_labels)), encoding.classes.dtype
    names = None if schema.named_columns is None else dict(schema.named_columns)
    rest = (clf.n_features_in_, clf.n_labels_, clf.classes_.tolist(), names)
    return state, labels, rest, sorted(name for name in clf.__dict__ if not name.startswith("_"))
