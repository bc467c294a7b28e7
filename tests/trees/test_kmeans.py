"""The k-means tree: label vectors, balance, independence of threads, and recovered clusters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.preprocessing import normalize

from ramify import _core
from ramify.trees import LabelTree, kmeans_tree, random_tree
from ramify.trees.kmeans import label_vectors
from shared.rows import label_rows, rows_of


def topics(n_topics, labels_per_topic, *, seed=0, rows_per_label=4, noise=0.3, is_signed=False):
    """Return X, y and the topic of each label; examples share the features of their label's topic."""
    rng = np.random.default_rng(seed)
    topic_of = rng.permutation(np.repeat(np.arange(n_topics), labels_per_topic))
    y = np.repeat(np.arange(len(topic_of)), rows_per_label)
    centre = rng.random((n_topics, 5)) + 0.5
    X = np.zeros((len(y), 5 * n_topics + 20))
    for row, topic in enumerate(topic_of[y]):
        X[row, 5 * topic : 5 * topic + 5] = centre[topic]
        X[row, 5 * n_topics :] = noise * rng.random(20)
    if is_signed:
        X *= rng.choice([-1.0, 1.0], X.shape[1])
    return sparse.csr_array(X), y, topic_of


def random_data(seed, n_labels, n_rows=80, n_features=30, density=0.2):
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n_rows, n_features), density=density, rng=rng, dtype=np.float32, format="csr")
    X.data -= 0.5
    Y = sparse.random_array((n_rows, n_labels), density=0.05, rng=rng, format="csr")
    Y.data[:] = 1
    return X, Y


def mean_cosine(tree, vectors):
    """Return the mean cosine of the labels to the centre of their pre-leaf node."""
    below = tree.parent[tree.leaf_of]
    member = sparse.csr_array((np.ones(len(below)), (below, np.arange(len(below)))), shape=(tree.n_nodes, len(below)))
    centres = member @ vectors
    return float(np.sqrt(centres.multiply(centres).sum(axis=1)).sum() / (np.diff(vectors.indptr) > 0).sum())


# ---- label vectors


@given(seed=st.integers(0, 10**6), n_jobs=st.integers(1, 3), density=st.sampled_from([0.02, 0.3, 1.0]))
def test_label_vectors_equal_the_normalised_sum_of_normalised_rows(seed, n_jobs, density):
    X, Y = random_data(seed, 12, density=density)
    sums = Y.T @ normalize(X.astype(np.float64)).toarray()
    is_cancelled = np.linalg.norm(sums, axis=1) < 1e-3  # rows that cancel are tested below
    assume(not (is_cancelled & (sums != 0).any(axis=1)).any())
    expected = normalize(sums)
    assert np.allclose(label_vectors(X, Y, n_jobs=n_jobs).toarray(), expected, atol=1e-5)


def test_pruned_label_vectors_drop_only_small_entries_and_keep_unit_length():
    X, Y = random_data(1, 12)
    whole, pruned = label_vectors(X, Y).toarray(), label_vectors(X, Y, prune=0.8).toarray()
    for full, kept in zip(whole, pruned, strict=True):
        if not full.any():
            assert not kept.any()
            continue
        limit = 0.8 * np.sqrt((full**2).sum() / np.count_nonzero(full))
        expected = np.where(np.abs(full) >= limit, full, 0)
        assert np.allclose(kept, expected / np.linalg.norm(expected), atol=1e-5)


@given(seed=st.integers(0, 10**6), most=st.integers(1, 12), n_jobs=st.integers(1, 3))
@example(seed=270400, most=1, n_jobs=1)  # two entries of the same size but for rounding
def test_of_a_label_vector_the_largest_entries_are_kept(seed, most, n_jobs):
    X, Y = random_data(seed, 12)
    whole, kept = label_vectors(X, Y), label_vectors(X, Y, max_entries=most, n_jobs=n_jobs)
    for label in range(12):
        full, part = (vectors[[label]].toarray()[0] for vectors in (whole, kept))
        is_kept = part != 0
        assert is_kept.sum() == min(most, np.count_nonzero(full))
        # Sums that differ by rounding alone are equally large.
        assert np.abs(full[is_kept]).min(initial=1) >= np.abs(full[~is_kept]).max(initial=0) - 1e-6
        expected = np.where(is_kept, full, 0)
        assert np.allclose(part, expected / max(np.linalg.norm(expected), 1e-9), atol=1e-5)


def test_equal_entries_of_a_label_vector_are_kept_in_order():
    X = sparse.csr_array(np.array([[1.0, 1.0, 2.0, 1.0, 1.0]]))
    assert np.allclose(label_vectors(X, [0], max_entries=3).toarray() * np.sqrt(6), [[1, 1, 2, 0, 0]])


def test_vectors_of_many_labels_are_short_and_those_of_few_whole(monkeypatch):
    X, y, topic_of = topics(8, 8)
    whole = kmeans_tree(X, y, arity=8, max_leaf=8, random_state=0)
    assert kmeans_tree(X, y, arity=8, max_leaf=8, max_entries=25, random_state=0) == whole
    monkeypatch.setattr("ramify.trees.kmeans.TOTAL_ENTRIES", 64 * 3)
    monkeypatch.setattr("ramify.trees.kmeans.LEAST_ENTRIES", 2)
    short = kmeans_tree(X, y, arity=8, max_leaf=8, random_state=0)
    assert short == kmeans_tree(X, y, arity=8, max_leaf=8, max_entries=3, random_state=0)
    assert all(len(set(topic_of[children])) == 1 for children in short.to_nested())


def test_rows_that_cancel_leave_an_empty_vector():
    X = np.array([[1.0, 2.0, 0.0], [-1.0, -2.0, 0.0], [0.0, 0.0, 5.0]])
    vectors = label_vectors(X, [0, 0, 1])
    assert vectors.toarray().tolist() == [[0, 0, 0], [0, 0, 1]]
    assert vectors.nnz == 1


def test_huge_and_tiny_features_keep_their_direction():
    X = np.array([[3e30, 4e30], [3e-30, 4e-30]])
    assert np.allclose(label_vectors(X, [0, 1]).toarray(), [[0.6, 0.8], [0.6, 0.8]])


# ---- the tree


@pytest.mark.parametrize("is_signed", [False, True])
@pytest.mark.parametrize(("arity", "n_topics"), [(2, 8), (4, 16), (16, 16), (3, 9), (5, 5), (7, 14)])
def test_planted_topics_are_recovered(arity, n_topics, is_signed):
    X, y, topic_of = topics(n_topics, 10, is_signed=is_signed)
    tree = kmeans_tree(X, y, arity=arity, max_leaf=10, random_state=0)
    pre_leaf = tree.parent[tree.leaf_of]
    assert [len(set(topic_of[pre_leaf == node])) for node in np.unique(pre_leaf)] == [1] * n_topics


@given(
    seed=st.integers(0, 10**6),
    n_labels=st.integers(1, 120),
    log_arity=st.integers(1, 4),
    max_leaf=st.integers(1, 30),
)
@settings(max_examples=40)
def test_siblings_are_balanced_if_the_arity_is_a_power_of_two(seed, n_labels, log_arity, max_leaf):
    X, Y = random_data(seed, n_labels)
    tree = kmeans_tree(X, Y, arity=2**log_arity, max_leaf=max_leaf, random_state=seed)
    assert sorted(tree.label[tree.label >= 0]) == list(range(n_labels))
    for node in np.flatnonzero(tree.n_children):
        below = tree.n_labels_below[tree.children(node)]
        if tree.n_labels_below[node] <= max_leaf:
            assert (below == 1).all()
            continue
        # A small half is not split again, so sizes come from at most two consecutive halvings.
        assert len(below) <= 2**log_arity
        sizes = {int(tree.n_labels_below[node])}
        for _ in range(log_arity):
            sizes = {part for size in sizes for part in ((size // 2, size - size // 2) if size > max_leaf else (size,))}
        assert set(below.tolist()) <= sizes
        if log_arity == 1:
            assert below.max() - below.min() <= 1


@given(n_labels=st.integers(1, 150), arity=st.integers(2, 11), max_leaf=st.integers(1, 20))
@settings(max_examples=40)
def test_any_arity_bounds_children_and_pre_leaf_nodes(n_labels, arity, max_leaf):
    X, Y = random_data(5, n_labels)
    tree = kmeans_tree(X, Y, arity=arity, max_leaf=max_leaf, random_state=0)
    for node in np.flatnonzero(tree.n_children):
        below = tree.n_labels_below[tree.children(node)]
        is_pre_leaf = tree.n_labels_below[node] <= max_leaf
        assert len(below) <= (max_leaf if is_pre_leaf else arity)
        if below.min() > max_leaf:  # no part stopped early, so sizes are even
            assert below.max() - below.min() <= arity.bit_length()


@pytest.mark.parametrize("arity", [2, 5, 16])
def test_the_tree_does_not_depend_on_the_number_of_threads(arity):
    X, Y = random_data(7, 700, n_rows=900, n_features=120)
    trees = [kmeans_tree(X, Y, arity=arity, max_leaf=9, random_state=1, n_jobs=n_jobs) for n_jobs in (1, 2, 3, 999, -1)]
    assert all(tree == trees[0] for tree in trees)


def test_the_tree_depends_on_the_seed_but_not_on_the_array_type():
    X, Y = random_data(7, 300)
    assert kmeans_tree(X, Y, max_leaf=9, random_state=1) == kmeans_tree(
        X.toarray(), Y.tocsc(), max_leaf=9, random_state=1
    )
    assert kmeans_tree(X, Y, max_leaf=9, random_state=1) != kmeans_tree(X, Y, max_leaf=9, random_state=2)


def test_labels_without_examples_are_spread_evenly():
    X, y, topic_of = topics(4, 10)
    n_real, n_empty = len(topic_of), 60
    Y = sparse.csr_array((np.ones(len(y)), (np.arange(len(y)), y)), shape=(len(y), n_real + n_empty))
    tree = kmeans_tree(X, Y, arity=4, max_leaf=25, random_state=0)
    for node in tree.children(0):
        labels = tree.label[tree.children(node)]
        real = labels[labels < n_real]
        assert (len(real), len(labels)) == (10, 25)
        assert len(set(topic_of[real])) == 1


def test_all_zero_features_give_a_balanced_tree():
    tree = kmeans_tree(np.zeros((10, 3)), np.arange(10), arity=2, max_leaf=2, random_state=0)
    assert sorted(tree.label[tree.label >= 0]) == list(range(10))
    assert tree.height == 4


def test_identical_label_vectors_give_a_balanced_tree():
    tree = kmeans_tree(np.ones((64, 3)), np.arange(64), arity=2, max_leaf=1, random_state=0)
    assert tree.height == 6


def test_clusters_are_nearly_as_tight_as_the_planted_ones_under_heavy_noise():
    X, y, topic_of = topics(32, 12, noise=1.5, rows_per_label=2)
    vectors = label_vectors(X, y)
    planted = LabelTree.from_nested([np.flatnonzero(topic_of == topic).tolist() for topic in range(32)])
    reached = [mean_cosine(kmeans_tree(X, y, arity=8, max_leaf=12, random_state=seed), vectors) for seed in range(5)]
    chance = mean_cosine(random_tree(X, y, arity=32, max_leaf=12, random_state=0), vectors)
    relative_tightness = (np.mean(reached) - chance) / (mean_cosine(planted, vectors) - chance)
    assert relative_tightness > 0.9  # measured: 0.99


@pytest.mark.parametrize(
    ("X", "Y", "settings", "message"),
    [
        (None, [0, 1], {}, "the k-means tree needs the features X"),
        (np.ones((3, 2)), [0, 1], {}, "X has 3 rows, but Y has 2; the numbers must be equal"),
        (np.array([[1.0, np.nan]]), [0], {}, "NaN"),
        (np.array([[1.0, np.inf]]), [0], {}, "infinity"),
        (np.ones((2, 2)), [0, 1], {"arity": 1}, "arity must be an integer of at least 2, got 1"),
        (np.ones((2, 2)), [0, 1], {"max_leaf": 0}, "max_leaf must be an integer of at least 1, got 0"),
        (np.ones((2, 2)), [0, 1], {"tol": -1.0}, "tol must be a number of at least 0, got -1.0"),
        (np.ones((2, 2)), [0, 1], {"tol": float("nan")}, "tol must be a number of at least 0, got nan"),
        (
            np.ones((2, 2)),
            [0, 1],
            {"max_iterations": 0},
            "max_iterations must be an integer between 1 and 1000000, got 0",
        ),
    ],
)
def test_bad_input_is_rejected(X, Y, settings, message):
    with pytest.raises(ValueError, match=message):
        kmeans_tree(X, Y, **settings)


# ---- the kernels reject arrays that would make them read out of bounds


VECTORS = rows_of([0, 1, 2, 3], [0, 1, 1], [1, 1, 1])


def vector_arrays(**changes):
    arrays = {
        "vectors": VECTORS,
        "n_features": 2,
        "order": np.arange(3, dtype=np.int32),
        "starts": np.array([0]),
        "cuts": np.array([1]),
        "stops": np.array([3]),
    }
    return {**arrays, **changes, "eps": 1e-4, "max_iterations": 5, "seed": 0, "n_threads": changes.get("n_threads", 1)}


def test_the_split_kernel_splits_at_the_cut():
    arrays = vector_arrays()
    _core.split_labels(**arrays)
    assert sorted(map(sorted, (arrays["order"][:1], arrays["order"][1:]))) == [[0], [1, 2]]


@pytest.mark.parametrize(
    "changes",
    [
        {"vectors": VECTORS._replace(indptr=np.array([0, 2, 1, 3]))},
        {"vectors": VECTORS._replace(indptr=np.array([0, 1, 2, 4]))},
        {"vectors": VECTORS._replace(indptr=np.array([1, 1, 2, 3]))},
        {"vectors": VECTORS._replace(indptr=np.array([], dtype=np.int64))},
        {"vectors": VECTORS._replace(indices=np.array([0, 1, 2], dtype=np.int32))},
        {"vectors": VECTORS._replace(indices=np.array([0, -1, 1], dtype=np.int32))},
        {"vectors": VECTORS._replace(data=np.ones(2, dtype=np.float32))},
        {"order": np.array([0, 1, 3], dtype=np.int32)},
        {"order": np.array([0, 1, -1], dtype=np.int32)},
        {"cuts": np.array([0])},
        {"cuts": np.array([3])},
        {"stops": np.array([4])},
        {"starts": np.array([-1])},
        {"starts": np.array([0, 0]), "cuts": np.array([1, 1]), "stops": np.array([2, 2])},
        {"cuts": np.array([1, 2])},
        {"n_threads": 0},
    ],
)
def test_the_split_kernel_rejects_out_of_bounds_arrays(changes):
    with pytest.raises(ValueError):
        _core.split_labels(**vector_arrays(**changes))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_split_kernel_survives_nan_and_infinity(bad):
    arrays = vector_arrays(vectors=VECTORS._replace(data=np.array([bad, 1, bad], dtype=np.float32)))
    _core.split_labels(**arrays)
    assert sorted(arrays["order"]) == [0, 1, 2]


@pytest.mark.parametrize(
    "changes",
    [
        {"X": rows_of([0, 3], [0, 1], [1, 1])},
        {"X": rows_of([0, 2], [0, 9], [1, 1])},
        {"X": rows_of([0, 2], [0, 1], [1, 1, 1])},
        {"by_label": label_rows([0, 1], [5])},
        {"by_label": label_rows([0, 2], [0])},
        {"by_label": label_rows([], [0])},
        {"max_entries": 0},
    ],
)
def test_the_vector_kernel_rejects_out_of_bounds_arrays(changes):
    arrays = {
        "X": rows_of([0, 2], [0, 1], [1, 1]),
        "n_features": 2,
        "by_label": label_rows([0, 1], [0]),
        "prune": 0.0,
        "max_entries": 2,
        "n_threads": 1,
    }
    with pytest.raises(ValueError):
        _core.label_vectors(**{**arrays, **changes})
