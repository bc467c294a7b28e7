"""Which rows train which node, the root's gate, and the histogram of held-out scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import log_softmax

from ramify import _core
from ramify.models.plt.calibration import IDENTITY
from ramify.models.plt.trained_tree import TrainedTree
from ramify.trees import LabelTree, one_level_tree
from shared.rows import label_rows
from twins.blocks import thaw
from twins.hashing import WORD, mix
from twins.models import block_trainer, random_labels, random_rows, random_tree, solver_settings
from twins.search import prepared
from twins.solver import solve


def labelled(answer):
    return {int(label): float(p) for label, p in zip(answer.indices, answer.data, strict=True)}


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 10]))
def test_rows_without_labels_train_a_gate_over_all_rows(seed, n_labels):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n_labels)
    X, Y = random_rows(rng, 30, 6), random_labels(rng, 30, n_labels, share=0.1, some_for_every_row=False)
    nodes = thaw(block_trainer(X, Y, tree, seed=seed).train(solver_settings()), 7)
    has_label = Y.sum(axis=1) > 0
    assert (tree.n_nodes in nodes) == (not has_label.all())
    if tree.n_nodes in nodes:
        children, weights = nodes[tree.n_nodes]
        x = prepared(X.toarray(), True, 0.5)
        expected = solve(
            x, has_label[:, None], loss="squared_hinge", C=1.0, positive_weight=1.0, max_epochs=5, eps=0.0, seed=seed,
            node=tree.n_nodes,
        )  # fmt: skip
        assert children.tolist() == [0]
        np.testing.assert_allclose(weights, expected, atol=0.51 * np.abs(expected).max() / 127)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_labels_without_rows_are_impossible(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 15)
    X, Y = random_rows(rng, 30, 6), random_labels(rng, 30, 15).toarray()
    missing = rng.choice(15, 6, replace=False)
    Y[:, missing] = 0
    blocks = block_trainer(X, sparse.csr_array(Y), tree).train(solver_settings())
    trained = TrainedTree(tree, blocks, IDENTITY, 6, True, 0.5, False)
    every = sparse.csr_array(np.ones((30, 15), np.float32))
    p = trained.named(X, every).reshape(30, 15)
    seen = Y.any(axis=0)
    assert (p[:, ~seen] == 0).all()
    assert (p[:, seen] > 0).all()
    assert not np.isin(trained.search(X, top_k=None, threshold=0.0).indices, np.flatnonzero(~seen)).any()


@pytest.mark.parametrize(
    "tree", [LabelTree([-1], [0]), LabelTree([-1, 0], [-1, 0]), LabelTree.from_nested([0, [1, 2]])]
)
def test_without_any_label_every_label_is_impossible(tree):
    X = random_rows(np.random.default_rng(0), 12, 4)
    blocks = block_trainer(X, sparse.csr_array((12, tree.n_labels), dtype=np.float32), tree).train(solver_settings())
    trained = TrainedTree(tree, blocks, IDENTITY, 4, True, 0.5, False)
    assert trained.search(X, top_k=None, threshold=0.0).nnz == 0
    assert trained.core.explain(np.zeros(0, np.int32), np.zeros(0, np.float32), 0)[0][:2] == (0, 0.0)


def test_a_label_that_every_row_has_is_certain():
    X = random_rows(np.random.default_rng(0), 12, 4)
    for tree in (LabelTree([-1], [0]), LabelTree([-1, 0, 1], [-1, -1, 0])):
        blocks = block_trainer(X, sparse.csr_array(np.ones((12, 1), np.float32)), tree).train(solver_settings())
        trained = TrainedTree(tree, blocks, IDENTITY, 4, True, 0.5, False)
        assert labelled(trained.search(X[:1], top_k=1, threshold=0.0)) == {0: 1.0}


def test_labels_given_twice_or_unsorted_count_once():
    rng = np.random.default_rng(2)
    X, tree = random_rows(rng, 3, 4), random_tree(rng, 4)
    tidy = block_trainer(X, sparse.csr_array(np.array([[1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 0, 1]], np.float32)), tree)
    messy = block_trainer(X, label_rows([0, 3, 6, 8], [2, 0, 2, 3, 1, 1, 3, 3]), tree)
    one, other = tidy.train(solver_settings()), messy.train(solver_settings())
    assert all(np.array_equal(one[name], other[name]) for name in one)


def held_out_rows(seed, node, rows):
    """A fifth of a node's rows, drawn anew for each node; for paths, -1 is the node of all."""
    drawn = [mix((seed + 1000003 * node + mix(int(row))) % WORD) for row in rows]
    return np.array([number % 5 == 0 for number in drawn])


def test_the_rows_that_are_held_out_for_paths_are_told():
    rows = np.random.default_rng(0).integers(0, 2**40, 500)
    np.testing.assert_array_equal(_core.is_held_out(rows, 11), held_out_rows(11, -1, rows))


@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_blocks_kept_of_a_sample_are_those_of_a_model_without_the_held_out_rows(n_threads):
    rng = np.random.default_rng(4)
    X, Y = random_rows(rng, 300, 12), random_labels(rng, 300, 40, share=0.05)
    tree, seed = LabelTree.from_nested([list(range(10 * a, 10 * a + 10)) for a in range(4)]), 11
    trainer = block_trainer(X, Y, tree, seed=seed, n_threads=n_threads)
    solvers = [solver_settings()] * trainer.n_levels
    trainer.held_out(solvers, 1.0, 10**6, by_level=True, of_paths=True)
    kept = trainer.held_out_blocks()
    rest = np.flatnonzero(~held_out_rows(seed, -1, range(300)))
    expected = block_trainer(X[rest], Y[rest], tree, seed=seed).train_levels(solvers)
    for name, array in expected.items():
        np.testing.assert_array_equal(kept[name], array, err_msg=name)
    assert len(trainer.held_out_blocks()["panels"]) == 0  # they were handed over
    trainer.held_out(solvers, 1.0, 10**6, by_level=True)
    assert len(trainer.held_out_blocks()["panels"]) == 0


def test_a_sample_by_level_prefers_whole_paths():
    rng = np.random.default_rng(5)
    X, Y = random_rows(rng, 3000, 10), random_labels(rng, 3000, 512, share=0.02)
    nested = [[list(range(64 * a + 8 * b, 64 * a + 8 * b + 8)) for b in range(8)] for a in range(8)]
    tree = LabelTree.from_nested(nested)
    trainer = block_trainer(X, Y, tree)
    solvers = [solver_settings()] * trainer.n_levels
    trainer.held_out(solvers, 0.2, 10**6, by_level=True, of_paths=True)
    nodes = trainer.held_out_blocks()["panels"][:, 0]
    lower = nodes[(nodes < tree.n_nodes) & (nodes > 0)]
    leaf_parents = lower[tree.depth[lower] == 2]
    assert len(leaf_parents) >= 12
    assert np.isin(tree.parent[leaf_parents], nodes).all()


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_held_out_scores_are_those_of_a_model_without_the_rows(loss, is_weighted):
    rng = np.random.default_rng(4)
    n, n_labels, seed = 300, 40, 11
    X, Y = random_rows(rng, n, 12), random_labels(rng, n, n_labels, share=0.05)
    weight = rng.uniform(0.5, 2, n).astype(np.float32) if is_weighted else None
    tree = one_level_tree(None, Y)
    solver = solver_settings(loss=loss)
    trainer = block_trainer(X, Y, tree, seed=seed, sample_weight=weight)
    knots = _core.LINK_LOW + _core.LINK_STEP * np.arange(_core.LINK_KNOTS)
    links = np.stack([np.stack([3 * knots, 0.5 + 0.1 * knots]), np.stack([knots**3, 0 * knots])]).astype(np.float32)
    links = np.broadcast_to(links[None, :, None], (1, 2, 2, 2, len(knots)))
    [(positive, negative, softmax_loss)], _ = trainer.held_out([solver], 1.0, 10**6, 14, np.ascontiguousarray(links))
    assert positive.shape == negative.shape == (2, 14, 512)
    assert positive[0].sum() == negative[0].sum() == 0  # every row has a label: there is no gate

    out = held_out_rows(seed, 0, range(n))
    assert 0.1 < out.mean() < 0.3
    kept = block_trainer(X[~out], Y[~out], tree, seed=seed, sample_weight=None if weight is None else weight[~out])
    blocks = kept.train(solver)
    children, weights = thaw(blocks, 13)[0]
    scores = prepared(X.toarray(), True, 0.5)[out] @ weights
    truth = Y.toarray()[np.ix_(out, children)] > 0
    kept_mass = (np.ones(n) if weight is None else weight)[~out].astype(np.float64)
    mass = np.broadcast_to((np.ones(n) if weight is None else weight)[out][:, None], truth.shape)
    rate = np.log(Y.toarray()[~out][:, children].T @ kept_mass / kept_mass.sum())
    np.testing.assert_allclose(blocks["column_rate"], rate, rtol=1e-4)
    centres = _core.HISTOGRAM_LOW + _core.HISTOGRAM_WIDTH * (np.arange(512) + 0.5)
    for counts_by_rate, of_kind in ((positive[1], truth), (negative[1], ~truth)):
        of_rate = [(mass * of_kind)[:, np.floor(-rate) == k].sum() for k in range(14)]
        np.testing.assert_allclose(counts_by_rate.sum(axis=1), of_rate, rtol=1e-5)
        counts = counts_by_rate.sum(axis=0)
        assert np.isclose(counts.sum(), mass[of_kind].sum(), rtol=1e-5)
        expected, _ = np.histogram(
            np.clip(scores[of_kind], -7.99, 7.99), bins=512, range=(-8, 8), weights=mass[of_kind]
        )
        # Bytes move a score by less than a bin or two: compare the two distributions.
        assert np.abs(np.cumsum(counts) - np.cumsum(expected)).mean() < 0.02 * counts.sum()
        assert np.isclose(centres @ counts, centres @ expected, atol=0.02 * counts.sum())
    is_single = Y.toarray()[out].sum(axis=1) == 1
    is_known = truth.any(axis=1)
    truth = np.hstack([truth, ~is_known[:, None]])
    for (curve, slopes), losses in zip(links[0, :, 1], softmax_loss[1], strict=True):
        logits = np.interp(scores, knots, curve) + rate * np.interp(scores, knots, slopes)
        # A true child without a training row takes part with the mean of its siblings.
        of_unknown = np.where(is_known, -np.inf, logits.mean(axis=1))[:, None]
        for factor, loss_ in zip(_core.SOFTMAX_FACTORS, losses, strict=True):
            log_likelihood = log_softmax(factor * np.hstack([logits, of_unknown]), axis=1)[is_single][truth[is_single]]
            assert np.isclose(loss_, -log_likelihood @ mass[is_single, 0], rtol=0.02)


def test_scores_beyond_the_histogram_fall_into_its_outer_bins():
    X = sparse.csr_array(np.where(np.arange(400) % 2, 1e9, -1e9).astype(np.float32)[:, None])
    Y = sparse.csr_array(np.stack([np.arange(400) % 2, 1 - np.arange(400) % 2], axis=1).astype(np.float32))
    trainer = block_trainer(X, Y, one_level_tree(None, Y), normalize=False, bias=0.0)
    solver = solver_settings(C=1e-3)
    assert (np.abs(thaw(trainer.train(solver), 1)[0][1]) > 0).all()
    [(positive, negative, _)], _ = trainer.held_out([solver], 1.0, 10**6)
    assert positive[1].sum() == negative[1].sum() > 0
    centre = _core.HISTOGRAM_LOW + _core.HISTOGRAM_WIDTH * (np.arange(512) + 0.5)
    assert positive[1].sum(axis=0) @ centre > 0 > negative[1].sum(axis=0) @ centre


def held_out_mass(trainer, share, max_rows):
    """Of each level, how many scores of held-out rows were counted."""
    [(positive, negative, _)], _ = trainer.held_out([solver_settings()], share, max_rows)
    return (positive + negative).sum(axis=(1, 2))


@pytest.mark.parametrize(("share", "max_rows"), [(1.0, 60), (0.2, 10**6), (0.0, 10**6), (1.0, 0)])
def test_a_sample_is_held_out_and_no_more(share, max_rows):
    rng = np.random.default_rng(5)
    X, Y = random_rows(rng, 500, 10), random_labels(rng, 500, 60, share=0.05)
    tree = LabelTree.from_nested([[list(range(10 * a, 10 * a + 10))] for a in range(6)])
    trainer = block_trainer(X, Y, tree)
    whole = held_out_mass(trainer, 1.0, 10**6)
    part = held_out_mass(trainer, share, max_rows)
    assert (part <= whole).all()
    if share == 0.0 or max_rows == 0:
        assert part.sum() == 0
    else:
        assert 0 < part.sum() < 0.6 * whole.sum()


@pytest.mark.parametrize("is_weighted", [False, True])
def test_some_children_of_a_node_stand_for_all(is_weighted):
    rng = np.random.default_rng(7)
    X, Y = random_rows(rng, 5000, 10), random_labels(rng, 5000, 30, share=0.2)
    weight = rng.integers(1, 4, 5000).astype(np.float32) if is_weighted else None
    trainer = block_trainer(X, Y, one_level_tree(None, Y), sample_weight=weight)

    def held_out(max_columns):
        [(positive, negative, _)], stands_for = trainer.held_out(
            [solver_settings()], 1.0, 10**6, max_columns=max_columns
        )
        return positive.sum(axis=(1, 2)), (positive + negative).sum(axis=(1, 2)), stands_for

    (all_positive, all_mass, for_all), (positive, mass, for_some) = held_out(0), held_out(8)
    assert 30 * mass[1] in (7 * all_mass[1], 8 * all_mass[1])  # every fourth of 30
    assert for_some[1] * positive[1] == pytest.approx(for_all[1] * all_positive[1])
    assert held_out(30)[0].tolist() == all_positive.tolist()


def test_where_positives_are_few_all_children_are_tried():
    rng = np.random.default_rng(7)
    X, Y = random_rows(rng, 300, 10), random_labels(rng, 300, 30, share=0.2)
    trainer = block_trainer(X, Y, one_level_tree(None, Y))
    for_all, for_some = (
        trainer.held_out([solver_settings()], 1.0, 10**6, max_columns=max_columns) for max_columns in (0, 8)
    )
    for of_all, of_some in zip(for_all[0][0], for_some[0][0], strict=True):
        np.testing.assert_array_equal(of_all, of_some)
