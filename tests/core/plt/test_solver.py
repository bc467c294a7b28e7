"""The solver of sibling problems: the twin's weights step by step, and the optimum that scikit-learn finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from ramify.trees import LabelTree, one_level_tree
from twins.blocks import thaw
from twins.models import block_trainer, random_labels, random_rows, random_tree, same_arrays, solver_settings
from twins.search import prepared
from twins.solver import primal_objective, relative_gaps, solve

LOSSES = ["squared_hinge", "logistic"]


def one_level(n_labels):
    return one_level_tree(None, sparse.csr_array((1, n_labels)))


def trained_weights(X, Y, tree, *, node=0, seed=0, bias=0.5, normalize=True, sample_weight=None, **solver):
    trainer = block_trainer(X, Y, tree, seed=seed, bias=bias, normalize=normalize, sample_weight=sample_weight)
    return thaw(trainer.train(solver_settings(**solver)), X.shape[1] + (bias != 0))[node]


def assert_equal_but_for_rounding_to_bytes(weights, expected):
    """A weight is stored as a multiple of its column's largest weight / 127."""
    step = np.abs(expected).max(axis=0) / 127
    assert (np.abs(weights - expected) <= 0.51 * step + 1e-6).all()


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from(LOSSES),
    width=st.sampled_from([2, 5, 8, 9, 32, 33, 40]),
    max_epochs=st.integers(1, 3),
    C=st.sampled_from([0.1, 1.0, 8.0]),
    positive_weight=st.sampled_from([0.5, 1.0, 3.0]),
    eps=st.sampled_from([0.0, 0.02]),
    is_weighted=st.booleans(),
    bias=st.sampled_from([0.0, 0.5]),
    normalize=st.booleans(),
)
def test_weights_are_those_of_the_twin(
    seed, loss, width, max_epochs, C, positive_weight, eps, is_weighted, bias, normalize
):
    rng = np.random.default_rng(seed)
    X, Y = random_rows(rng, 15, 5), random_labels(rng, 15, width)
    weight = rng.uniform(0.1, 3, 15).astype(np.float32) if is_weighted else None
    settings = {"loss": loss, "max_epochs": max_epochs, "C": C, "positive_weight": positive_weight, "eps": eps}
    children, weights = trained_weights(
        X, Y, one_level(width), seed=seed, bias=bias, normalize=normalize, sample_weight=weight, **settings
    )
    frequency = Y.sum(axis=0)[children]
    assert (np.diff(frequency) <= 0).all()  # neighbours shrink together, so the frequent stand first
    expected = solve(
        prepared(X.toarray(), normalize, bias), Y.toarray()[:, children], seed=seed, row_weight=weight, **settings
    )
    assert_equal_but_for_rounding_to_bytes(weights, expected)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("positive_weight", [1.0, 4.0])
@pytest.mark.parametrize("C", [0.02, 1.0])
def test_many_epochs_reach_the_optimum_that_scikit_learn_finds(loss, is_weighted, positive_weight, C):
    rng = np.random.default_rng(5)
    X, Y = random_rows(rng, 80, 12, density=0.5), random_labels(rng, 80, 6)
    weight = rng.uniform(0.2, 2, 80).astype(np.float32) if is_weighted else None
    children, weights = trained_weights(
        X, Y, one_level(6), sample_weight=weight, loss=loss, C=C, positive_weight=positive_weight, max_epochs=2000
    )
    x = prepared(X.toarray(), True, 0.5)  # the bias is a feature like any other: it is regularised too
    for column, label in enumerate(children):
        y = np.where(Y.toarray()[:, label] > 0, 1, -1)
        costs = np.where(y > 0, positive_weight, 1.0) * (1.0 if weight is None else weight)
        if loss == "logistic":
            peer = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=10_000)
        else:
            peer = LinearSVC(loss="squared_hinge", dual=True, C=C, fit_intercept=False, tol=1e-8, max_iter=200_000)
        optimum = primal_objective(peer.fit(x, y, sample_weight=costs).coef_[0], x, y, C * costs, loss)
        # Bytes cost a little; rows that were shrunk away do not come back, which costs the hinge a little more.
        allowed = 1.03 if loss == "squared_hinge" and C == 1.0 else 1.0005
        assert optimum * (1 - 1e-6) <= primal_objective(weights[:, column], x, y, C * costs, loss) <= optimum * allowed


@pytest.mark.parametrize("length", [3.0, 30.0])
@pytest.mark.parametrize("C", [1.0, 30.0])
def test_long_rows_take_the_whole_step_of_the_logistic_loss(length, C):
    """They need more Newton steps than rows of unit length: with too few the dual variable overshoots for ever."""
    rng = np.random.default_rng(5)
    X, Y = random_rows(rng, 40, 6, density=0.7), random_labels(rng, 40, 3)
    X.data *= np.float32(length)
    settings = {"loss": "logistic", "C": C, "max_epochs": 10}
    children, weights = trained_weights(X, Y, one_level(3), normalize=False, **settings)
    x, z = prepared(X.toarray(), False, 0.5), Y.toarray()[:, children]
    expected = solve(x, z, positive_weight=1.0, eps=0.0, seed=0, **settings)
    for column in range(3):
        found, wanted = (
            primal_objective(w[:, column], x, 2 * z[:, column] - 1, np.full(40, C), "logistic")
            for w in (weights, expected)
        )
        assert found <= 1.05 * wanted


@pytest.mark.parametrize("loss", LOSSES)
def test_a_few_epochs_are_close_to_the_optimum(loss):
    rng = np.random.default_rng(6)
    X, Y = random_rows(rng, 200, 40, density=0.2), random_labels(rng, 200, 20, share=0.1)
    gaps = []
    for max_epochs in (1, 2, 5, 15):
        children, weights = trained_weights(X, Y, one_level(20), loss=loss, max_epochs=max_epochs)
        x, signs = prepared(X.toarray(), True, 0.5), np.where(Y.toarray()[:, children] > 0, 1, -1)
        gaps.append(sum(primal_objective(weights[:, c], x, signs[:, c], np.ones(200), loss) for c in range(20)))
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1.03 * gaps[3]


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.sampled_from(LOSSES))
def test_a_node_is_trained_on_the_rows_that_reach_it_alone(seed, loss):
    """Its weights are those of a one-level tree over its children, on the rows with a label below it."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 10)
    X, Y = random_rows(rng, 15, 6), random_labels(rng, 15, 10)
    trained = thaw(block_trainer(X, Y, tree, seed=seed).train(solver_settings(loss=loss, max_epochs=2)), 7)
    below = np.zeros((15, tree.n_nodes))
    below[:, tree.leaf_of] = Y.toarray()
    for node in range(tree.n_nodes - 1, 0, -1):
        below[:, tree.parent[node]] = np.maximum(below[:, tree.parent[node]], below[:, node])
    assert set(trained) == set(np.flatnonzero(tree.n_children).tolist())
    for node, (children, weights) in trained.items():
        rows = below[:, node] > 0
        x, z = prepared(X.toarray(), True, 0.5)[rows], below[np.ix_(rows, tree.first_child[node] + children)]
        assert sorted(children.tolist()) == list(range(tree.n_children[node]))
        expected = solve(x, z, loss=loss, C=1.0, positive_weight=1.0, max_epochs=2, eps=0.0, seed=seed, node=node)
        assert_equal_but_for_rounding_to_bytes(weights, expected)


def test_pruning_drops_small_weights_and_nothing_else():
    rng = np.random.default_rng(8)
    X, Y = random_rows(rng, 60, 20), random_labels(rng, 60, 20)
    _, whole = trained_weights(X, Y, one_level(20))
    _, pruned = trained_weights(X, Y, one_level(20), prune=0.3)
    step = np.abs(whole).max(axis=0) / 127
    assert (pruned[np.abs(whole) < 0.3 - step.max()] == 0).all()
    is_large = np.abs(whole) > 0.3 + step.max()
    assert np.array_equal(pruned[is_large], whole[is_large])
    assert 0 < np.count_nonzero(pruned) < np.count_nonzero(whole)


def test_rows_of_weight_zero_are_rows_left_out():
    rng = np.random.default_rng(9)
    X, Y, tree = random_rows(rng, 40, 6), random_labels(rng, 40, 9), random_tree(rng, 9)
    kept = rng.random(40) < 0.6
    weight = np.where(kept, rng.uniform(0.5, 2, 40), 0).astype(np.float32)
    whole = block_trainer(X, Y, tree, sample_weight=weight).train(solver_settings())
    part = block_trainer(X[kept], Y[kept], tree, sample_weight=weight[kept]).train(solver_settings())
    assert same_arrays(whole, part)


@pytest.mark.parametrize("loss", LOSSES)
def test_empty_rows_and_missing_features_train(loss):
    Y = random_labels(np.random.default_rng(0), 10, 3)
    for X in (sparse.csr_array((10, 4), dtype=np.float32), sparse.csr_array((10, 0), dtype=np.float32)):
        for bias in (0.0, 1.0):
            children, weights = trained_weights(X, Y, one_level(3), bias=bias, loss=loss)
            assert sorted(children.tolist()) == [0, 1, 2]
            assert np.isfinite(weights).all()
            assert np.count_nonzero(weights) <= 3 * (bias != 0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("value", [1e-30, 1e12, 1e30])
def test_rows_of_any_finite_size_train_to_finite_weights(loss, value):
    rng = np.random.default_rng(0)
    X, Y = random_rows(rng, 30, 5), random_labels(rng, 30, 4)
    X.data *= np.float32(value)
    _, weights = trained_weights(X, Y, one_level(4), normalize=False, loss=loss)
    assert np.isfinite(weights).all()


def test_a_single_leaf_has_nothing_to_train():
    X, Y = random_rows(np.random.default_rng(0), 10, 4), sparse.csr_array(np.ones((10, 1), np.float32))
    blocks = block_trainer(X, Y, LabelTree([-1], [0])).train(solver_settings())
    assert len(blocks["panels"]) == 0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("gap", [0.3, 0.05, 0.01])
@pytest.mark.parametrize("width", [5, 20])
def test_the_last_epoch_is_the_one_after_the_gap_is_reached(loss, gap, width):
    rng = np.random.default_rng(width)
    X, Y = random_rows(rng, 60, 8), random_labels(rng, 60, width)
    children, weights = trained_weights(X, Y, one_level(width), loss=loss, max_epochs=60, gap=gap)
    x = prepared(X.toarray(), True, 0.5)
    in_order = Y.toarray()[:, children]
    settings = {"loss": loss, "C": 1.0, "positive_weight": 1.0, "eps": 0.0, "seed": 0}
    gaps = relative_gaps(x, in_order, n_epochs=50, **settings)
    reached = 1 + int(np.argmax(gaps <= gap))
    assert 1 < reached < 50
    expected = trained_weights(X, Y, one_level(width), loss=loss, max_epochs=reached + 1)[1]
    np.testing.assert_array_equal(weights, expected)


def test_a_gap_that_is_never_reached_leaves_the_number_of_epochs():
    rng = np.random.default_rng(0)
    X, Y = random_rows(rng, 60, 8), random_labels(rng, 60, 5)
    ends = [trained_weights(X, Y, one_level(5), max_epochs=7, gap=gap)[1] for gap in (0.0, 1e-30)]
    np.testing.assert_array_equal(*ends)
