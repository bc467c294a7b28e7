"""Features that nearly all columns of a panel have weights for: written without an index, scored as all others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from ramify import PLTClassifier, PLTSolver
from ramify.models.plt.calibration import IDENTITY
from ramify.models.plt.trained_tree import TrainedTree
from ramify.trees import one_level_tree
from shared.rows import row_arrays
from twins.blocks import DENSE_RUN, PANEL_FIELDS, freeze, kinds_of_index, thaw
from twins.models import block_trainer, random_labels, random_rows, solver_settings
from twins.search import label_probabilities, prepared

KIND = PANEL_FIELDS.index("bucket_bits")


def one_level(n_labels):
    return one_level_tree(None, sparse.csr_array((1, n_labels)))


def all_probabilities(trained, X):
    every = sparse.csr_array(np.ones((X.shape[0], trained.tree.n_labels), np.float32))
    return trained.named(X, every).reshape(X.shape[0], -1)


def dense_rows(rng, n_rows, n_features):
    return sparse.csr_array(rng.normal(size=(n_rows, n_features)).astype(np.float32))


@pytest.mark.parametrize("n_before", [0, 5, 3000])
@pytest.mark.parametrize("n_after", [0, 5, 3000])
@pytest.mark.parametrize("width", [9, 16, 33, 64, 120, 300])
def test_dense_features_beside_sparse_ones_are_a_run_and_score_as_the_arrays_say(n_before, n_after, width):
    rng = np.random.default_rng(width)
    sparse_columns = [random_rows(rng, 150, n, density=0.002) if n else None for n in (n_before, n_after)]
    parts = [sparse_columns[0], dense_rows(rng, 150, 80), sparse_columns[1]]
    X = sparse.csr_array(sparse.hstack([part for part in parts if part is not None], format="csr"))
    Y = random_labels(rng, 150, width, share=2 / width)
    tree = one_level(width)
    blocks = block_trainer(X, Y, tree).train(solver_settings(prune=0.001))
    assert (blocks["panels"][:, KIND] >= DENSE_RUN - 1).any()
    nodes = thaw(blocks, X.shape[1] + 1)
    trained = TrainedTree(tree, blocks, IDENTITY, X.shape[1], True, 0.5, False)
    x = prepared(X[:20].toarray(), True, 0.5)
    expected = [label_probabilities(tree, nodes, row, IDENTITY, False) for row in x]
    np.testing.assert_allclose(all_probabilities(trained, X[:20]), expected, rtol=3e-5, atol=1e-7)
    if max(n_before, n_after) == 3000:  # the core keeps rows of weights that round to zero: the twin cannot know them
        return
    children, weights = nodes[0]
    numbers = np.rint(weights / blocks["column_scale"].astype(np.float64)).astype(int)
    node = children, numbers, blocks["column_scale"], blocks["column_rate"]
    again = freeze({0: node}, X.shape[1] + 1, kinds_of_index(blocks))
    for name in again:
        assert np.array_equal(again[name], blocks[name]), name


def test_small_weights_are_kept_where_every_row_has_every_feature():
    rng = np.random.default_rng(0)
    X, Y = dense_rows(rng, 100, 70), random_labels(rng, 100, 10)
    pruned, whole = (block_trainer(X, Y, one_level(10)).train(solver_settings(prune=p)) for p in (0.5, 0.0))
    for name in whole:
        assert np.array_equal(pruned[name], whole[name]), name


def test_features_in_any_order_get_the_same_answer():
    rng = np.random.default_rng(0)
    X, Y = dense_rows(rng, 100, 70), random_labels(rng, 100, 10)
    tree = one_level(10)
    trained = TrainedTree(tree, block_trainer(X, Y, tree).train(solver_settings()), IDENTITY, 70, True, 0.5, False)
    indices, values = row_arrays(X[[0]])
    order = rng.permutation(len(indices))
    given = trained.core.search_row(indices[order], values[order], 5, 0.0)
    expected = trained.core.search_row(indices, values, 5, 0.0)
    assert [list(part) for part in given] == [list(part) for part in expected]


@pytest.mark.parametrize("header", [(0, 71), (1, 71), (71, 1), (2**32 - 1, 70), (0, 2**32 - 1), (0, 1), (0, 0)])
def test_a_damaged_run_is_refused(header):
    rng = np.random.default_rng(0)
    X, Y = dense_rows(rng, 100, 69), random_labels(rng, 100, 10)
    tree = one_level(10)
    blocks = block_trainer(X, Y, tree).train(solver_settings())
    rows = blocks["rows"].copy()
    assert rows[:8].view("<u4").tolist() == [0, 70]
    rows[:8] = np.array(header, "<u4").view(np.uint8)
    with pytest.raises(ValueError, match="rows"):
        _ = TrainedTree(tree, blocks | {"rows": rows}, IDENTITY, 69, True, 0.5, False).core


def test_one_row_a_batch_and_a_loaded_model_agree_to_the_bit(tmp_path):
    import ramify

    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 100)).astype(np.float32)
    y = rng.integers(0, 60, 600)
    clf = PLTClassifier(max_leaf=10, arity=4, tree="kmeans", solver=PLTSolver(C=1.0), random_state=0).fit(X, y)
    assert (clf.trees_[0].blocks["panels"][:, KIND] >= DENSE_RUN - 1).any()
    answers = clf.predict_labels(X[:50], top_k=5)
    assert answers == [clf.predict_one(row, top_k=5) for row in X[:50]]
    assert answers == clf.set_params(n_jobs=2).predict_labels(X[:50], top_k=5)
    clf.save(tmp_path / "model")
    assert answers == ramify.load(tmp_path / "model").predict_labels(X[:50], top_k=5)
    path = clf.explain(X[0], int(y[0]))
    assert path.probability == dict(clf.predict_one(X[0], top_k=60))[y[0]]
