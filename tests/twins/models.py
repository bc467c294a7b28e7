"""Random trees, random models over them and random data, all from a seed."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from scipy import sparse

from ramify import _core
from ramify.models.plt.calibration import IDENTITY, Link
from ramify.models.plt.trained_tree import TrainedTree
from ramify.trees import LabelTree
from twins.blocks import freeze


def random_tree(rng, n_labels, n_leaves=None):
    """Leaves and inner nodes mixed, only children, chains; a single leaf where there is one."""
    labels = rng.permutation(n_labels)[: n_leaves or n_labels].tolist()

    def split(part):
        if len(part) == 1:
            return part[0] if rng.random() < 0.7 else [split(part)]
        n_children = int(rng.integers(1, min(len(part), 5) + 1))
        if n_children == 1 and rng.random() < 0.5:
            n_children = 2
        cuts = np.sort(rng.choice(np.arange(1, len(part)), n_children - 1, replace=False)).tolist()
        return [split(part[a:b]) for a, b in zip([0, *cuts], [*cuts, len(part)], strict=True)]

    return LabelTree.from_nested(split(labels), n_labels)


def random_model(
    rng, tree, *, n_features=6, coarse=False, absent=0.1, index="bitmap", gate=False, calibrated=False,
    is_multiclass=False, normalize=False, bias=0.5, top_from=None,
):  # fmt: skip
    """A tree with random blocks: .trained is what the library searches, .nodes what the twin enumerates.

    With `top_from`, classes have claims. Coarse weights are -1, 0 and 1 times one scale, so that probabilities tie.
    """
    n_columns = n_features + (bias != 0)
    nodes = {}
    for node in [*np.flatnonzero(tree.n_children).tolist(), *([tree.n_nodes] if gate else [])]:
        n_children = 1 if node == tree.n_nodes else int(tree.n_children[node])
        children = np.flatnonzero(rng.random(n_children) >= (0 if n_children == 1 else absent))
        if len(children) == 0:
            continue
        rng.shuffle(children)
        limit = 1 if coarse else 127
        weights = rng.integers(-limit, limit + 1, (n_columns, len(children)))
        weights[rng.random(weights.shape) < 0.3] = 0
        scales = np.full(len(children), 1.0) if coarse else rng.uniform(0.001, 0.05, len(children))
        rates = [-rng.exponential(2, len(children)).astype(np.float32)] if calibrated else []
        nodes[node] = (children, weights, scales.astype(np.float32), *rates)
    link, claims = IDENTITY, None
    if calibrated:
        link = random_link(rng, int(rng.integers(1, tree.height + 3)))
        if is_multiclass and top_from:
            each = random_link(rng, len(link.logits))
            claims = np.stack([each.logits, each.slope_table()])
    trained = TrainedTree(
        tree, freeze(nodes, n_columns, index), link, n_features, normalize, bias, is_multiclass,
        claims=claims, top_from=1.0 if claims is None else top_from,
    )  # fmt: skip
    dense = {
        node: (children, weights * scales.astype(np.float64), *rates)
        for node, (children, weights, scales, *rates) in nodes.items()
    }
    return SimpleNamespace(tree=tree, nodes=dense, link=link, trained=trained, is_multiclass=is_multiclass)


def random_link(rng, n_levels):
    """Rising maps, also for rare labels."""
    steps = rng.random((n_levels, 6))
    slopes = rng.uniform(0, 1, steps.shape).astype(np.float32)
    return Link((np.cumsum(steps, axis=1) * 2 - 5).astype(np.float32), -1.0, 0.5, slopes)


def random_rows(rng, n_rows, n_features, density=0.6, coarse=False):
    values = rng.integers(-2, 3, (n_rows, n_features)) if coarse else rng.standard_normal((n_rows, n_features))
    return sparse.csr_array((values * (rng.random((n_rows, n_features)) < density)).astype(np.float32))


def random_labels(rng, n_rows, n_labels, share=0.2, some_for_every_row=True):
    """A 0/1 array in which every label has a row, and every row a label if asked for."""
    Y = rng.random((n_rows, n_labels)) < share
    Y[rng.integers(0, n_rows, n_labels), np.arange(n_labels)] = True
    if some_for_every_row:
        Y[np.arange(n_rows), rng.integers(0, n_labels, n_rows)] |= ~Y.any(axis=1)
    return sparse.csr_array(Y.astype(np.float32))


def block_trainer(X, Y, tree, *, normalize=True, bias=0.5, seed=0, n_threads=1, sample_weight=None):
    features = _core.FeatureSettings(X.shape[1], normalize, bias)
    return _core.BlockTrainer(X, Y, tree, sample_weight, features, seed, n_threads)


def solver_settings(**changes):
    usual = {"loss": "squared_hinge", "C": 1.0, "positive_weight": 1.0, "max_epochs": 5, "eps": 0.0, "prune": 0.0}
    return _core.SolverSettings(**{**usual, **changes})


def same_arrays(one, other):
    """Equal bit for bit."""
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype and one[name].tobytes() == other[name].tobytes() for name in one
    )
