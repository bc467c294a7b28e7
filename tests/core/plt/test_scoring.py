"""Scoring of frozen blocks: widths, indexes, link maps and the sigmoid, against float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import expit

from ramify.models.plt.calibration import IDENTITY, Link
from ramify.models.plt.trained_tree import TrainedTree
from ramify.trees import LabelTree, one_level_tree
from shared.rows import row_arrays
from twins.blocks import BITMAP, PANEL_FIELDS, freeze, kinds_of_index, thaw
from twins.models import block_trainer, random_labels, random_model, random_rows, solver_settings
from twins.search import label_probabilities, link_map, prepared

# Around the sizes of a group (8), a tile (32) and a panel (256), where padding and the cut into panels change.
WIDTHS = [1, 2, 7, 8, 9, 31, 32, 33, 255, 256, 257, 300, 515]


def one_level(n_labels):
    return one_level_tree(None, sparse.csr_array((1, n_labels)))


def all_probabilities(trained, X):
    every = sparse.csr_array(np.ones((X.shape[0], trained.tree.n_labels), np.float32))
    return trained.named(X, every).reshape(X.shape[0], -1)


def scoring_tree(weights, scales, link=IDENTITY, index="bitmap", bias=0.0):
    """A one-level tree of two labels or more whose leaves have these weights (features x labels)."""
    n_features = len(weights) - (bias != 0)
    blocks = freeze({0: (np.arange(weights.shape[1]), weights, scales)}, len(weights), index)
    return TrainedTree(one_level(weights.shape[1]), blocks, link, n_features, False, bias, False)


@pytest.mark.parametrize("index", ["bitmap", "bucket"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("n_features", [1, 63, 64, 65, 700])
def test_scores_are_rows_times_weights_at_every_width(width, index, n_features):
    rng = np.random.default_rng(width * 1000 + n_features)
    model = random_model(rng, one_level(width), n_features=n_features, index=index, normalize=True)
    X = random_rows(rng, 5, n_features, density=min(1.0, 20 / n_features))
    x = prepared(X.toarray(), True, 0.5)
    expected = [label_probabilities(model.tree, model.nodes, row, model.link, False) for row in x]
    np.testing.assert_allclose(all_probabilities(model.trained, X), expected, rtol=3e-5, atol=1e-7)


@pytest.mark.parametrize("n_rows", [3, 16, 17, 40])
@pytest.mark.parametrize("step", [8, 1024, 16384])
def test_features_that_share_a_bucket_are_told_apart(n_rows, step):
    """All in one bucket, which is compared sixteen keys at a time, with keys of one, two and four bytes."""
    rng = np.random.default_rng(n_rows)
    weights = np.zeros((n_rows * step, 2), np.int8)
    known = np.arange(0, n_rows * step, step)
    weights[known] = rng.integers(1, 100, (n_rows, 2))
    tree = scoring_tree(weights, np.array([0.01, 0.02]), index="bucket")
    X = np.zeros((6, len(weights)), np.float32)
    for row in X:
        row[rng.choice(known, n_rows // 2 + 1, replace=False)] = rng.random(n_rows // 2 + 1)
        row[rng.integers(len(weights), size=9)] = 1.0  # most of them unknown
    expected = expit(X.astype(np.float64) @ weights * [0.01, 0.02])
    np.testing.assert_allclose(all_probabilities(tree, sparse.csr_array(X)), expected, rtol=3e-5, atol=1e-7)


def test_a_row_of_all_groups_out_of_order_is_refused():
    """The kernel adds the groups of such a row to the columns in turn, without looking at their numbers."""
    blocks = freeze({0: (np.arange(16), np.ones((1, 16), np.int8), np.ones(16))}, 1)
    first = 2 + 1  # behind the end of the row and the number of groups
    assert blocks["rows"][[first, first + 9]].tolist() == [0, 1]
    blocks["rows"][[first, first + 9]] = [1, 0]
    with pytest.raises(ValueError, match="rows"):
        _ = TrainedTree(one_level(16), blocks, IDENTITY, 1, False, 0.0, False).core


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("n_features", [10, 9000])
def test_trained_blocks_of_every_width_score_as_their_arrays_say(width, n_features):
    """Many features make a hash index (the node knows few of them), few make a bitmap."""
    rng = np.random.default_rng(width)
    X, Y = random_rows(rng, 60, n_features, density=10 / n_features / 6), random_labels(rng, 60, width, share=2 / width)
    tree = one_level(width)
    blocks = block_trainer(X, Y, tree).train(solver_settings(max_epochs=2))
    trained = TrainedTree(tree, blocks, IDENTITY, n_features, True, 0.5, False)
    if width > 1:
        assert (blocks["panels"][:, PANEL_FIELDS.index("bucket_bits")] == BITMAP).all() == (n_features == 10)
    nodes = thaw(blocks, n_features + 1)
    x = prepared(X.toarray(), True, 0.5)
    expected = [label_probabilities(tree, nodes, row, IDENTITY, False) for row in x]
    np.testing.assert_allclose(all_probabilities(trained, X), expected, rtol=3e-5, atol=1e-7)


def test_features_that_agree_in_their_lowest_bits_are_found():
    """They would all fall into one bucket: there must be more buckets, since a bucket has room for 64 rows."""
    rng = np.random.default_rng(0)
    n_known, step, width = 200, 1024, 10
    few = random_rows(rng, 150, n_known, density=0.2)
    X = sparse.csr_array((few.data, few.indices * step, few.indptr), shape=(150, n_known * step))
    tree = one_level(width)
    blocks = block_trainer(X, random_labels(rng, 150, width), tree).train(solver_settings(prune=0.0))
    assert blocks["panels"][0, PANEL_FIELDS.index("bucket_bits")] == 12
    trained = TrainedTree(tree, blocks, IDENTITY, X.shape[1], True, 0.5, False)
    nodes = thaw(blocks, X.shape[1] + 1)
    x = prepared(X[:5].toarray(), True, 0.5)
    expected = [label_probabilities(tree, nodes, row, IDENTITY, False) for row in x]
    np.testing.assert_allclose(all_probabilities(trained, X[:5]), expected, rtol=3e-5, atol=1e-7)


@pytest.mark.parametrize("width", [3, 40, 256, 300])
@pytest.mark.parametrize("n_features", [100, 30_000])
def test_trained_blocks_are_written_byte_for_byte_as_the_twin_writes_them(width, n_features):
    """Narrow and wide chunks, pairs and groups, words and buckets: all that the file format says."""
    rng = np.random.default_rng(width)
    X = random_rows(rng, 200, n_features, density=8 / n_features)
    Y = random_labels(rng, 200, width, share=2 / width)
    blocks = block_trainer(X, Y, one_level(width)).train(solver_settings(prune=0.05))
    children, weights = thaw(blocks, n_features + 1)[0]
    numbers = np.rint(weights / blocks["column_scale"].astype(np.float64)).astype(int)
    node = children, numbers, blocks["column_scale"], blocks["column_rate"]
    again = freeze({0: node}, n_features + 1, kinds_of_index(blocks))
    for name in again:
        assert np.array_equal(again[name], blocks[name]), name


@given(st.integers(0, 2**32 - 1), st.sampled_from(["bitmap", "bucket"]), st.integers(1, 300), st.integers(1, 200))
def test_arrays_written_by_the_twin_are_read_back_whole(seed, index, width, n_features):
    rng = np.random.default_rng(seed)
    weights = rng.integers(-127, 128, (n_features, width)) * (rng.random((n_features, 1)) < 0.3)
    children, again = thaw(freeze({0: (np.arange(width), weights, np.ones(width))}, n_features, index), n_features)[0]
    assert np.array_equal(again, weights)
    assert children.tolist() == list(range(width))


def test_the_sigmoid_is_accurate_from_the_smallest_probability_to_one():
    """One feature whose value is the logit: 127 * (1 / 127) = 1."""
    trained = scoring_tree(np.array([[127, 127]]), np.full(2, 1 / 127, np.float32))
    logits = np.concatenate([np.linspace(-87, 87, 40_001), np.linspace(-1e-3, 1e-3, 101), [-1e-30, 1e-30]]).astype(
        np.float32
    )
    rows = sparse.csr_array(logits[:, None])
    rows.eliminate_zeros()
    exact = expit((np.float32(127) * logits * np.float32(1 / 127)).astype(np.float64))
    given_ = all_probabilities(trained, rows)[:, 0]
    assert (np.abs(given_ - exact) <= exact * (3e-7 + 1e-7 * np.abs(logits))).all()
    assert (np.diff(given_[:40_001]) >= 0).all()


@pytest.mark.parametrize("logit", [88.0, 200.0, 1e10, 3e38])
def test_far_logits_give_probabilities_within_bounds(logit):
    trained = scoring_tree(np.array([[127, -127]]), np.full(2, 1 / 127, np.float32))
    high, low = all_probabilities(trained, sparse.csr_array(np.array([[logit]], np.float32)))[0]
    assert high == 1.0
    assert 0.0 < low < 2e-38


@given(st.integers(0, 2**32 - 1), st.integers(2, 40))
def test_a_link_map_is_linear_between_and_beyond_its_knots(seed, n_knots):
    rng = np.random.default_rng(seed)
    logits = np.cumsum(rng.random((2, n_knots)), axis=1).astype(np.float32) - np.float32(3)
    step = float(np.float32(rng.uniform(0.05, 1)))
    low = float(np.float32(-step * (n_knots - 1) * rng.uniform(0.01, 0.99)))  # a grid holds the score 0
    scores = np.concatenate([rng.uniform(-9, 9, 50), low + step * np.arange(n_knots)]).astype(np.float32)
    trained = scoring_tree(np.array([[127, 127]]), np.full(2, 1 / 127, np.float32), Link(logits, low, step))
    expected = expit(link_map(scores.astype(np.float64), logits[1].astype(np.float64), low, step))
    rows = sparse.csr_array(scores[:, None])
    np.testing.assert_allclose(all_probabilities(trained, rows)[:, 0], expected, rtol=2e-4, atol=1e-6)


def test_levels_beyond_the_link_map_use_its_last_row():
    tree = LabelTree.from_nested([[[0, 1], 2], 3])
    model = random_model(np.random.default_rng(0), tree, gate=True, absent=0.0)
    link = Link(np.array([[-9, 9], [-2, 2]], np.float32), -1.0, 2.0)
    trained = TrainedTree(tree, model.trained.blocks, link, 6, False, 0.5, False)
    X = random_rows(np.random.default_rng(1), 5, 6)
    expected = [label_probabilities(tree, model.nodes, x, link, False) for x in prepared(X.toarray(), False, 0.5)]
    np.testing.assert_allclose(all_probabilities(trained, X), expected, rtol=1e-4, atol=1e-7)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_explained_contributions_add_up_to_the_score(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng, one_level(40), absent=0.0, index=["bitmap", "bucket"][seed % 2])
    X = random_rows(rng, 1, 6)
    indices, values = row_arrays(X)
    x = prepared(X.toarray(), False, 0.5)[0]
    children, weights = model.nodes[0]
    for label in range(40):
        [(node, probability, features, contributions)] = model.trained.core.explain(indices, values, label)
        column = int(np.flatnonzero(children == label)[0])
        assert node == label + 1
        np.testing.assert_allclose(contributions, (x * weights[:, column])[features], rtol=1e-5)
        assert np.isclose(probability, expit(contributions.sum(dtype=np.float64)), rtol=1e-4)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("value", [1e-44, 1e-38, 1e-20, 1e20, 3e38])
def test_features_of_any_finite_size_give_probabilities(value, normalize):
    """Their sums overflow to infinities of both signs, and the inverse of a row's length may not fit a float."""
    rng = np.random.default_rng(0)
    model = random_model(rng, one_level(20), normalize=normalize, calibrated=True, absent=0.0)
    X = random_rows(rng, 20, 6, density=1.0)
    X.data[:] = np.sign(X.data) * np.float32(value)
    p = all_probabilities(model.trained, X)
    assert ((p >= 0) & (p <= 1)).all()
    if normalize:
        x = prepared(np.sign(X.toarray()), True, 0.5)
        expected = [label_probabilities(model.tree, model.nodes, row, model.link, False) for row in x]
        np.testing.assert_allclose(p, expected, rtol=1e-4, atol=1e-6)
