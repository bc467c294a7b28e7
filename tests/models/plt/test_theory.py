"""What the papers prove about probabilistic label trees, on models and distributions that are known exactly."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.svm import LinearSVC

from ramify import PLTClassifier
from ramify.models.plt import PLTSolver
from ramify.trees import LabelTree
from shared.rows import row_arrays
from twins.models import random_labels, random_model, random_rows, random_tree
from twins.search import prepared


def label_sets(n_labels):
    return np.array(list(itertools.product([0, 1], repeat=n_labels)))


def node_probabilities(tree, sets, chance):
    """P(z_v = 1) of every node, and P(z_v = 1 | z_pa(v) = 1) (equation 2), for chances of all label sets."""
    z = np.zeros((len(sets), tree.n_nodes), dtype=bool)
    for node in range(tree.n_nodes - 1, -1, -1):
        z[:, node] |= sets[:, tree.label[node]] > 0 if tree.label[node] >= 0 else False
        if node:
            z[:, tree.parent[node]] |= z[:, node]
    absolute = chance @ z
    parent = np.where(tree.parent >= 0, absolute[tree.parent], 1.0)
    return absolute, np.divide(absolute, parent, out=np.zeros_like(absolute), where=parent > 0)


def estimates(trained, x, label):
    """The model's conditional probabilities along a label's path, by node; a root without a gate is certain."""
    path = {node: p for node, p, _, _ in trained.core.explain(*x, label)}
    return {0: 1.0} | path


def assert_theorem_1(tree, trained, x, absolute, conditional):
    """|eta_j - estimate| <= sum over the path of eta_pa(v) |eta(v) - estimate(v)|."""
    gaps = []
    for label in range(tree.n_labels):
        estimate, estimated = 1.0, estimates(trained, x, label)
        bound = 0.0
        for node in tree.path(label).tolist():
            above = 1.0 if node == 0 else absolute[tree.parent[node]]
            bound += above * abs(conditional[node] - estimated[node])
            estimate *= estimated[node]
        gaps.append(abs(absolute[tree.leaf_of[label]] - estimate))
        assert gaps[-1] <= bound + 1e-6
    return gaps


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_theorem_1_bounds_the_error_of_every_label_for_any_model_and_distribution(seed, n_labels):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n_labels)
    model = random_model(rng, tree, gate=True, absent=0.1, coarse=bool(seed % 2))
    x = row_arrays(random_rows(rng, 1, 6))
    sets = label_sets(n_labels)
    chance = rng.dirichlet(np.full(len(sets), 0.3))  # any distribution over label sets
    gaps = assert_theorem_1(tree, model.trained, x, *node_probabilities(tree, sets, chance))
    assert max(gaps) > 0  # a random model is wrong: the bound had something to bound


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_theorem_1_holds_for_a_trained_model_and_its_error_is_small(loss):
    """Four kinds of rows, each with a distribution over label sets of its own."""
    rng = np.random.default_rng(0)
    n_labels, n_kinds, n_rows = 5, 4, 6000
    sets = label_sets(n_labels)
    chances = rng.dirichlet(np.full(len(sets), 0.2), n_kinds)
    kind = rng.integers(n_kinds, size=n_rows)
    drawn = np.array([rng.choice(len(sets), p=chances[k]) for k in kind])
    X = sparse.csr_array((np.ones(n_rows, np.float32), kind, np.arange(n_rows + 1)), shape=(n_rows, n_kinds))
    solver = PLTSolver(loss=loss, prune=0.0, tol=0.0)
    model = PLTClassifier(solver=solver, tree="random", arity=2, max_leaf=2, random_state=0)
    model.fit(X, sparse.csr_array(sets[drawn]))
    tree = model.tree_
    for k in range(n_kinds):
        x = np.array([k], np.int32), np.ones(1, np.float32)
        gaps = assert_theorem_1(tree, model.trees_[0], x, *node_probabilities(tree, sets, chances[k]))
        assert max(gaps) < 0.15
        assert np.mean(gaps) < 0.06


def test_one_level_is_one_against_all():
    """A one-level tree has the separate linear models of its labels: scikit-learn's, column by column."""
    rng = np.random.default_rng(1)
    X, Y = random_rows(rng, 150, 10), random_labels(rng, 150, 12, share=0.15)
    model = PLTClassifier(
        tree="one_level",
        solver=PLTSolver(C=0.05, positive_weight=1.0, tol=0.0, prune=0.0, n_epochs=500),
        calibrate=False,
        random_state=0,
    ).fit(X, Y)
    p = model.predict_proba(X, labels=range(12)).toarray()
    scores = np.log(p) - np.log1p(-p)
    x = prepared(X.toarray(), True, 0.5)
    for label in range(12):
        peer = LinearSVC(loss="squared_hinge", dual=True, C=0.05, fit_intercept=False, tol=1e-8, max_iter=100_000)
        expected = x @ peer.fit(x, Y.toarray()[:, label]).coef_[0]
        np.testing.assert_allclose(scores[:, label], expected, atol=0.02)
        assert np.corrcoef(scores[:, label], expected)[0, 1] > 0.999


def test_a_label_depends_only_on_the_classifiers_of_its_path():
    """Changing labels elsewhere in the tree leaves a subtree's classifiers as they are."""
    rng = np.random.default_rng(2)
    X, Y = random_rows(rng, 200, 8), random_labels(rng, 200, 8, share=0.2).toarray()
    tree = [[0, 1, 2, 3], [4, 5, 6, 7]]
    swapped = Y.copy()
    swapped[:, [4, 5]] = Y[:, [5, 4]]
    models = [
        PLTClassifier(
            tree=LabelTree.from_nested(tree),
            solver=PLTSolver(C=1.0, positive_weight=1.0),
            calibrate=False,
            random_state=0,
        ).fit(X, sparse.csr_array(labels))
        for labels in (Y, swapped)
    ]
    one, other = (model.predict_proba(X, labels=range(8)).toarray() for model in models)
    assert np.array_equal(one[:, :4], other[:, :4])
    assert not np.array_equal(one[:, 4:], other[:, 4:])


def test_labels_without_examples_have_probability_zero_and_are_never_answered():
    rng = np.random.default_rng(3)
    X, Y = random_rows(rng, 100, 8), random_labels(rng, 100, 20).toarray()
    Y[:, ::3] = 0
    for settings_ in ({}, {"tree": "huffman"}, {"n_trees": 2}, {"hash_bits": 12}, {"beam": 3}):
        model = PLTClassifier(max_leaf=3, arity=2, random_state=0, **settings_).fit(X, sparse.csr_array(Y))
        assert model.predict_proba(X, labels=range(0, 20, 3)).toarray().max() == 0
        assert not np.isin(model.predict_proba(X, top_k=20).indices, range(0, 20, 3)).any()


def test_rows_without_labels_are_learned():
    """The root's own classifier estimates whether a row has any label (z_root)."""
    rng = np.random.default_rng(4)
    X, Y = random_rows(rng, 600, 10), random_labels(rng, 600, 6, share=0.2).toarray()
    is_empty = X[:, [0]].toarray()[:, 0] > 0.2
    Y[is_empty] = 0
    model = PLTClassifier(random_state=0).fit(X, sparse.csr_array(Y))
    mass = model.predict_proba(X, threshold=0.0).toarray().sum(axis=1)
    assert mass[is_empty].mean() < 0.35 * mass[~is_empty].mean()
    assert np.isclose(mass.mean(), Y.sum(axis=1).mean(), rtol=0.15)


@pytest.mark.parametrize("n_trees", [1, 3])
def test_classes_sum_to_one_and_the_dense_answer_is_the_sparse_one(n_trees):
    rng = np.random.default_rng(5)
    X, y = random_rows(rng, 200, 8), rng.integers(0, 30, 200)
    model = PLTClassifier(max_leaf=4, arity=3, n_trees=n_trees, random_state=0).fit(X, y)
    dense = model.predict_proba(X)
    np.testing.assert_allclose(dense.sum(axis=1), 1, rtol=1e-5)
    sparse_answer = model.predict_proba(X, top_k=30).toarray()
    assert np.allclose(dense, sparse_answer, atol=1e-6)
    candidates = np.stack([tree.search(X, top_k=1, threshold=0.0).indices for tree in model.trees_])
    best = np.take_along_axis(dense, candidates.T, axis=1).max(axis=1)  # of several trees the best of their best
    assert np.array_equal(dense[np.arange(200), np.searchsorted(model.classes_, model.predict(X))], best)


@pytest.mark.parametrize("n_trees", [1, 2])
@pytest.mark.parametrize("beam", [0, 1.5, "wide"])
def test_a_beam_set_after_training_is_refused_by_name(n_trees, beam):
    texts, fruits = ["red round", "yellow long", "green round"] * 5, ["cherry", "banana", "apple"] * 5
    clf = PLTClassifier(n_trees=n_trees, random_state=0).fit(texts, fruits).set_params(beam=beam)
    for ask in (lambda: clf.predict(texts), lambda: clf.predict_one("red"), lambda: clf.search_report(texts)):
        with pytest.raises(ValueError, match="beam must be an integer between 1 and 2147483647, got"):
            ask()
