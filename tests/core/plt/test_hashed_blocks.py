"""The table of weights that all nodes share by feature hashing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ramify.models.plt.calibration import IDENTITY
from ramify.models.plt.trained_tree import TrainedTree
from ramify.trees import LabelTree, one_level_tree
from shared.rows import row_arrays
from twins.blocks import thaw
from twins.models import block_trainer, random_labels, random_rows, random_tree, same_arrays, solver_settings
from twins.online import Classifier
from twins.search import label_probabilities, prepared


def trained(X, Y, tree, bits, **solver):
    blocks = block_trainer(X, Y, tree).train_hashed(solver_settings(**solver), bits)
    return TrainedTree(tree, blocks, IDENTITY, X.shape[1], True, 0.5, False)


def all_probabilities(model, X):
    every = sparse.csr_array(np.ones((X.shape[0], model.tree.n_labels), np.float32))
    return model.named(X, every).reshape(X.shape[0], -1)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from([5, 6, 9, 14]), st.sampled_from([1, 3, 33, 300]))
def test_scores_are_rows_times_what_the_table_holds(seed, bits, n_labels):
    rng = np.random.default_rng(seed)
    X, Y = random_rows(rng, 20, 8), random_labels(rng, 20, n_labels, share=0.1, some_for_every_row=False)
    tree = one_level_tree(None, Y) if seed % 2 else random_tree(rng, n_labels)
    model = trained(X, Y, tree, bits)
    assert model.blocks["table"].shape == (2**bits,)
    assert np.isfinite(model.blocks["table"]).all()
    nodes = thaw(model.blocks, 9)
    expected = [label_probabilities(tree, nodes, x, IDENTITY, False) for x in prepared(X.toarray(), True, 0.5)]
    np.testing.assert_allclose(all_probabilities(model, X), expected, rtol=1e-4, atol=1e-6)


def test_a_roomy_table_learns_what_blocks_learn():
    rng = np.random.default_rng(1)
    X, Y = random_rows(rng, 150, 10), random_labels(rng, 150, 20, share=0.05)
    tree = LabelTree.from_nested([[0, 1, 2, 3, 4, 5, 6, 7, 8], list(range(9, 20))])
    blocks = block_trainer(X, Y, tree).train(solver_settings(max_epochs=60))
    expected = all_probabilities(TrainedTree(tree, blocks, IDENTITY, 10, True, 0.5, False), X)
    found = all_probabilities(trained(X, Y, tree, 22, max_epochs=60), X)
    assert np.abs(found - expected).mean() < 0.01
    assert np.abs(found - expected).max() < 0.1


@pytest.mark.parametrize("bits", [5, 6, 7, 10])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_a_table_far_too_small_stays_finite_and_useful(bits, loss):
    """Features of one row that share a slot are one feature: a step that forgets it is too long, and grows."""
    rng = np.random.default_rng(2)
    X, Y = abs(random_rows(rng, 100, 200)), random_labels(rng, 100, 40, share=0.03)
    model = trained(X, Y, one_level_tree(None, Y), bits, loss=loss, max_epochs=20)
    assert np.abs(model.blocks["table"]).max() < 50
    assert all_probabilities(model, X).mean() < 0.45  # most labels are negative, and that much is learned


@pytest.mark.parametrize("tree", [LabelTree([-1], [0]), LabelTree.from_nested([0, [1, 2]])])
def test_without_any_label_every_label_is_impossible(tree):
    X = random_rows(np.random.default_rng(0), 12, 4)
    model = trained(X, sparse.csr_array((12, tree.n_labels), dtype=np.float32), tree, 8)
    assert model.search(X, top_k=None, threshold=0.0).nnz == 0


def test_explained_contributions_come_from_the_table():
    rng = np.random.default_rng(3)
    X, Y = random_rows(rng, 30, 6), random_labels(rng, 30, 40)
    model = trained(X, Y, one_level_tree(None, Y), 12)
    children, weights = thaw(model.blocks, 7)[0]
    indices, values = row_arrays(X[[0]])
    x = prepared(X[[0]].toarray(), True, 0.5)[0]
    for label in range(40):
        [(_, _, features, contributions)] = model.core.explain(indices, values, label)
        column = int(np.flatnonzero(children == label)[0])
        np.testing.assert_allclose(contributions, (x * weights[:, column])[features], rtol=1e-5)


def test_the_same_seed_gives_the_same_table():
    rng = np.random.default_rng(4)
    X, Y, tree = random_rows(rng, 30, 6), random_labels(rng, 30, 12), random_tree(rng, 12)
    assert same_arrays(trained(X, Y, tree, 10).blocks, trained(X, Y, tree, 10).blocks)


def test_fobos_on_a_roomy_table_takes_the_steps_of_the_online_learner_in_another_order():
    """One row: no order, no collisions. Then the weights are those of FOBOS on each node's own classifier."""
    x, Y = (sparse.csr_array(np.array([row], np.float32)) for row in ([3.0, 0.0, 4.0], [1.0, 0.0, 0.0]))
    tree = LabelTree.from_nested([[0, 1], 2])
    fobos = {"loss": "logistic", "learning_rate": 0.8, "l2": 0.1}
    model = trained(x, Y, tree, 16, max_epochs=3, **fobos)
    steps = Classifier(4, {"rule": "fobos", **fobos})
    row = prepared(x.toarray(), True, 0.5)[0]
    for _ in range(3):
        steps.step(row, True, 1.0)
    for children, weights in thaw(model.blocks, 4).values():
        for column, child in enumerate(children):
            sign = 1.0 if child == 0 or weights[:, column] @ row > 0 else -1.0
            np.testing.assert_allclose(sign * weights[:, column], steps.weights, rtol=1e-4, atol=1e-6)


def test_fobos_learns_what_dual_coordinate_descent_learns_roughly():
    rng = np.random.default_rng(1)
    X, Y = random_rows(rng, 300, 10), random_labels(rng, 300, 20, share=0.05)
    tree = LabelTree.from_nested([[0, 1, 2, 3, 4, 5, 6, 7, 8], list(range(9, 20))])
    dual = all_probabilities(trained(X, Y, tree, 20, loss="logistic", max_epochs=60), X)
    descent = all_probabilities(trained(X, Y, tree, 20, loss="logistic", max_epochs=60, learning_rate=1.0, l2=1e-4), X)
    assert np.corrcoef(dual.ravel(), descent.ravel())[0, 1] > 0.9
    with pytest.raises(ValueError, match="FOBOS trains only weights that nodes share"):
        block_trainer(X, Y, tree).train(solver_settings(learning_rate=1.0))


@pytest.mark.parametrize("bits", [-1, 0, 4, 33, 1000])
def test_tables_of_odd_sizes_are_refused(bits):
    rng = np.random.default_rng(5)
    trainer = block_trainer(random_rows(rng, 5, 3), random_labels(rng, 5, 2), LabelTree([-1, 0, 0], [-1, 0, 1]))
    with pytest.raises(ValueError, match="between 5 and 32"):
        trainer.train_hashed(solver_settings(), bits)
