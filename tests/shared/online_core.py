"""The online core compared with its twins in numpy: steps and searches."""

from __future__ import annotations

import itertools

import numpy as np
from scipy import sparse

from ramify import _core
from shared.rows import label_rows, row_arrays
from twins.models import random_rows
from twins.online import SETTINGS, blocks_of, incremental_plt, label_probabilities, learn, learner
from twins.search import best, prepared

RULES = {
    "adagrad": {"rule": "adagrad", "learning_rate": 0.7, "eps": 0.1},
    "adagrad that decays": {"rule": "adagrad", "learning_rate": 2.0, "eps": 0.2, "decay": 0.5},
    "paper's adagrad": {"rule": "adagrad", "learning_rate": 1.0, "eps": 0.01, "bias": 1.0},
    "authors' adagrad": {"rule": "adagrad", "learning_rate": 1.0, "eps": 0.01, "bias": 1.0, "eps_in_root": True},
    "fobos": {"rule": "fobos", "learning_rate": 0.5, "l2": 0.05},
    "fobos, strong": {"rule": "fobos", "learning_rate": 2.0, "l2": 0.4},  # scales fall below what is absorbed
    "plain descent": {"rule": "fobos", "learning_rate": 0.3, "l2": 0.0},
}


POLICIES = ["fair", "best", "balanced", "random", "cpt"]


N_FEATURES = 7


def stream(rng, n_rows, n_labels, is_multiclass, all_have_labels=False):
    X = random_rows(rng, n_rows, N_FEATURES)
    if is_multiclass:
        Y = np.eye(n_labels)[rng.integers(0, n_labels, n_rows)]
    else:
        Y = (rng.random((n_rows, n_labels)) < 0.15).astype(float)
        Y[:, 0] += (Y.sum(axis=1) == 0) & all_have_labels
    return X, sparse.csr_array(Y.astype(np.float32))


def compare_steps(rule, policy, is_multiclass, tolerance, n_rows=50):
    """Weights of a growing tree are those of the twin that knew the tree from the start."""
    rng = np.random.default_rng(3)
    X, Y = stream(rng, n_rows, 9, is_multiclass)
    weight = rng.choice([0.5, 1.0, 2.0], n_rows).astype(np.float32)
    changes = {**RULES[rule], "policy": policy, "is_multiclass": is_multiclass}
    core = learn(learner(**changes), X, Y, weight)
    state = core.state(1, replay=True)
    settings = {**SETTINGS, **changes}
    twin = incremental_plt(state["parent"], state["label"], X.toarray(), Y.toarray(), weight, settings)
    blocks = blocks_of(state, N_FEATURES)
    compared = 0
    for node, (children, weights, sums) in blocks.items():
        for child, w, s in zip(children, weights.T, sums.T, strict=True):
            expected = twin[child]
            scale = max(1e-3, np.abs(expected.weights).max())
            np.testing.assert_allclose(w / scale, expected.weights / scale, atol=tolerance, rtol=tolerance)
            if changes["rule"] == "adagrad":
                np.testing.assert_allclose(s, expected.sums, rtol=10 * tolerance, atol=tolerance)
            compared += 1
            assert node == -1 or state["parent"][child] == node
    assert compared == len(state["parent"]) - (is_multiclass or -1 not in blocks)


# Fast reciprocals are good to about three digits; on a few dozen steps this is what becomes of it.
TOLERANCE = 5e-3 if _core.instruction_set() != "baseline" else 2e-4


class Grown:
    """A tree grown on a stream, rows to ask it about, and what the twin and the core say to every label."""

    def __init__(self, seed, n_labels, policy, rule, is_multiclass):
        rng = np.random.default_rng(seed)
        X, Y = stream(rng, 60, n_labels, is_multiclass, all_have_labels=seed % 3 == 0)
        self.core = learn(learner(policy=policy, is_multiclass=is_multiclass, **RULES[rule]), X, Y)
        self.n_labels, self.is_multiclass = n_labels, is_multiclass
        self.X = random_rows(rng, 5, N_FEATURES)
        bias = RULES[rule].get("bias", SETTINGS["bias"])
        self.state = self.core.state(1, replay=True)
        self.expected = np.array(
            [
                label_probabilities(self.state, x, n_labels, is_multiclass)
                for x in prepared(self.X.toarray(), True, bias)
            ]
        )
        every = np.tile(np.arange(n_labels, dtype=np.int32), 5)
        self.all = self.core.named(self.X, label_rows(np.arange(6) * n_labels, every), 1).reshape(5, n_labels)


def answer_rows(indptr, labels, probabilities):
    rows = []
    for start, stop in itertools.pairwise(indptr):
        assert (np.diff(labels[start:stop]) > 0).all()
        pairs = zip(labels[start:stop].tolist(), probabilities[start:stop], strict=True)
        rows.append(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))
    return rows


def compare_searches(model, top_k, threshold):
    np.testing.assert_allclose(model.all, model.expected, rtol=1e-4, atol=1e-6)
    none, one = np.zeros(model.n_labels), np.full(model.n_labels, np.float32(threshold))
    for thresholds, level in ((none, 0.0), (one, threshold)):
        *answer, _ = model.core.search(model.X, top_k, level, None, 2)
        assert answer_rows(*answer) == [best(row, top_k, thresholds) for row in model.all]
    own = np.random.default_rng(top_k).random(model.n_labels).astype(np.float32) * 0.5
    own[0] = np.inf
    *answer, _ = model.core.search(model.X, None, 0.0, own, 1)
    assert answer_rows(*answer) == [best(row, None, own) for row in model.all]
    *answer, _ = model.core.search(model.X, top_k, threshold, own, 1)
    assert answer_rows(*answer) == [best(row, top_k, np.maximum(own, one)) for row in model.all]
    for row in range(5):
        indices, values = row_arrays(model.X[[row]])
        labels, probabilities = model.core.search_row(indices, values, top_k, threshold)
        assert list(zip(labels.tolist(), probabilities, strict=True)) == best(model.all[row], top_k, one)
