"""Rows of rare features are kept as the steps that made them: less memory, the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from shared.online_core import POLICIES, RULES
from twins.online import blocks_of, learn, learner

N_FEATURES = 400


def rare_rows(seed, n_rows=80, n_labels=12, is_multiclass=False):
    """Rows whose features occur from once to many times in a node."""
    rng = np.random.default_rng(seed)
    indptr, indices = [0], []
    for _ in range(n_rows):
        row = np.unique((N_FEATURES * rng.random(9) ** 3).astype(int))
        indices.extend(row.tolist())
        indptr.append(len(indices))
    values = rng.random(len(indices)).astype(np.float32) + 0.1
    X = sparse.csr_array((values, np.array(indices, np.int32), indptr), shape=(n_rows, N_FEATURES))
    one, some = np.eye(n_labels)[rng.integers(0, n_labels, n_rows)], rng.random((n_rows, n_labels)) < 0.15
    return X, sparse.csr_array((one if is_multiclass else some).astype(np.float32))


def weights_of(core):
    return blocks_of(core.state(1, replay=True), N_FEATURES)


def assert_equal_weights(one, other):
    a, b = weights_of(one), weights_of(other)
    assert a.keys() == b.keys()
    for node, parts in a.items():
        for x, y in zip(parts, b[node], strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("is_multiclass", [False, True], ids=["multi-label", "multi-class"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("rule", RULES)
def test_a_model_that_stores_all_rows_learns_the_same_bits(rule, policy, is_multiclass):
    """Also after columns were copied, moved and dropped, and after FOBOS's scale was absorbed."""
    settings = {**RULES[rule], "policy": policy, "is_multiclass": is_multiclass}
    for max_leaf in (3, 20):
        X, Y = rare_rows(1, is_multiclass=is_multiclass)
        replayed = learn(learner(**settings, pre_leaf_arity=max_leaf), X[:40], Y[:40])
        stored = learner(**settings, pre_leaf_arity=max_leaf)
        state = replayed.state(1, replay=True)
        assert len(state["block_replayed"]) == 0
        stored.restore(state, Y.shape[1])
        assert_equal_weights(replayed, stored)
        for core in (replayed, stored):
            learn(core, X[40:], Y[40:])
        assert_equal_weights(replayed, stored)
        (*answer, _), (*expected, _) = (core.search(X, 5, 0.0, None, 1) for core in (replayed, stored))
        for a, b in zip(answer, expected, strict=True):
            np.testing.assert_array_equal(a, b)
        frozen = [core.freeze(N_FEATURES, 0.0, 1) for core in (replayed, stored)]
        for name, array in frozen[0].items():
            np.testing.assert_array_equal(array, frozen[1][name])


@pytest.mark.parametrize("rule", RULES)
def test_a_model_that_is_saved_between_any_two_rows_goes_on_with_the_same_state(rule):
    X, Y = rare_rows(2, n_rows=40)
    whole = learn(learner(**RULES[rule], pre_leaf_arity=20), X, Y)
    core = learner(**RULES[rule], pre_leaf_arity=20)
    for i in range(X.shape[0]):
        again = learner(**RULES[rule], pre_leaf_arity=20)
        again.restore(learn(core, X[i : i + 1], Y[i : i + 1]).state(1), Y.shape[1])
        core = again
    assert len(whole.state(1)["replayed_feature"]) > 50
    assert {k: v.tobytes() for k, v in core.state(1).items()} == {k: v.tobytes() for k, v in whole.state(1).items()}


def test_states_without_replayed_rows_are_taken_back():
    """Those of format version 3."""
    X, Y = rare_rows(3)
    core = learn(learner(**RULES["adagrad"]), X, Y)
    old = core.state(1, replay=True)
    for name in ("block_replayed", "block_gradients", "replayed_feature", "replayed_steps"):
        assert len(old.pop(name)) == 0
    for name in ("step_gradient", "step_value", "gradient"):
        assert len(old.pop(name)) == 0
    again = learner(**RULES["adagrad"])
    again.restore(old, Y.shape[1])
    assert_equal_weights(core, again)


def test_features_that_occur_once_take_a_few_bytes():
    """A stored row of 64 columns takes 512 bytes."""
    n_rows, per_row = 400, 50
    X = sparse.csr_array(
        (np.ones(n_rows * per_row, np.float32), np.arange(n_rows * per_row), np.arange(n_rows + 1) * per_row),
        shape=(n_rows, n_rows * per_row),
    )
    Y = sparse.csr_array(np.eye(64, dtype=np.float32)[np.arange(n_rows) % 64])
    core = learn(learner(policy="fair", arity=64, pre_leaf_arity=64), X, Y)
    core.apply_all(1)
    assert core.memory < 80 * n_rows * per_row
    assert len(core.state(1)["feature"]) == 1  # the bias
