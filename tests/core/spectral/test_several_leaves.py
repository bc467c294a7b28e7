"""Several ways to the candidates, and trees in a learned space: kernels against plain numpy, and broken calls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse, stats

from ramify import _core
from ramify.data.csr import csr_rows
from ramify.data.synthetic import make_multilabel
from ramify.models.spectral import BaseClassifier, TreeSettings, grow_candidate_tree, learn_space
from shared.rows import arrays_of, row_arrays

SETTINGS = TreeSettings(depth=5, n_candidates=6, min_path=0.02)


@pytest.fixture(scope="module")
def data():
    return make_multilabel(500, 40, 100, random_state=3)


def core_of(tree, n_features, n_labels, n_candidates=SETTINGS.n_candidates):
    arrays = tree.core_arrays()
    base = BaseClassifier.none(n_features, n_labels, len(arrays["label"]))
    return base.core(arrays, n_labels, n_candidates, True, False)


def candidates_of(core, X, ways, n_labels, n_threads=1):
    indptr, indices, share, _ = core.candidates(X, ways, n_threads)
    return csr_rows(share, indices, indptr, (X.shape[0], n_labels))


# --- several ways ----------------------------------------------------------------------------------------------------


def plain_leaves(arrays, row, ways):
    """The likeliest leaves with their probabilities, by going everywhere."""
    found, waiting = [], [(1.0, 0)]
    row = np.append(row / np.linalg.norm(row), 1.0)
    while waiting:
        path, node = waiting.pop()
        if arrays["child"][node] < 0:
            found.append((-path, node))
            continue
        weights = slice(arrays["weight_begin"][node], arrays["weight_begin"][node + 1])
        score = row[arrays["weight_feature"][weights]] @ arrays["weight"][weights]
        right = stats.norm.cdf(score / arrays["sigma"][node])
        waiting += [(path * (1 - right), arrays["child"][node]), (path * right, arrays["child"][node] + 1)]
    return [(node, -path) for path, node in sorted(found)[:ways]]


@pytest.mark.parametrize("ways", [2, 3, 1000])
def test_several_leaves_give_the_likeliest_labels_of_the_likeliest_leaves(data, ways):
    tree = grow_candidate_tree(data.X, data.Y, SETTINGS, seed=1)
    of_leaf = tree.candidates().toarray()
    found = candidates_of(core_of(tree, 100, 40), data.X[:60], ways, 40).toarray()
    for row, own in zip(data.X[:60].toarray(), found, strict=True):
        leaves = plain_leaves(tree.arrays, row, ways)
        total = sum(path for _, path in leaves)
        share = sum(path / total * of_leaf[node] for node, path in leaves)
        best = np.lexsort((np.arange(40), -share))[: SETTINGS.n_candidates]
        expected = np.zeros(40)
        expected[best] = share[best]
        np.testing.assert_allclose(own, expected, atol=1e-4)


def test_without_fractions_there_is_one_way(data):
    tree = grow_candidate_tree(data.X, data.Y, TreeSettings(depth=5, n_candidates=6, noise=0.0), seed=1)
    core = core_of(tree, 100, 40)
    one, several = (candidates_of(core, data.X, ways, 40) for ways in (1, 5))
    np.testing.assert_array_equal(one.indices, several.indices)
    np.testing.assert_allclose(one.data, several.data, rtol=1e-6)


def test_head_labels_keep_their_places_on_all_ways(data):
    head = np.array([3, 9], dtype=np.int32)
    tree = grow_candidate_tree(data.X, data.Y, SETTINGS, head=head, seed=1)
    found = candidates_of(core_of(tree, 100, 40), data.X, 4, 40)
    assert (found[:, head].toarray() > 0).all()
    assert set(np.diff(found.indptr)) == {len(head) + SETTINGS.n_candidates}


def test_threads_find_the_same_candidates(data):
    core = core_of(grow_candidate_tree(data.X, data.Y, SETTINGS, seed=1), 100, 40)
    one, two = (candidates_of(core, data.X, 3, 40, n_threads) for n_threads in (1, 2))
    np.testing.assert_array_equal(one.indices, two.indices)
    np.testing.assert_array_equal(one.data, two.data)


@pytest.mark.parametrize("ways", [0, -1, 65_537])
def test_ways_out_of_range_are_refused(data, ways):
    core = core_of(grow_candidate_tree(data.X, data.Y, SETTINGS, seed=1), 100, 40)
    with pytest.raises(ValueError, match="n_leaves must be between 1 and 65,536"):
        candidates_of(core, data.X, ways, 40)
    with pytest.raises(ValueError, match="n_leaves must be"):
        core.predict_row(*row_arrays(data.X[[0]]), 3, 0.0, ways)


def test_weights_of_a_leafs_own_go_one_way(data):
    tree = grow_candidate_tree(data.X, data.Y, SETTINGS, seed=1)
    arrays = tree.core_arrays()
    kind = {"weights": "low_rank", "rank": 8, "hash_bits": 0, "has_slot_weights": True}
    base = BaseClassifier.begin(**kind, n_features=100, n_labels=40, n_slots=len(arrays["label"]), seed=0)
    core = base.core(arrays, 40, 6, True, False)
    with pytest.raises(ValueError, match="n_leaves must be 1"):
        core.named(data.X, np.array([1], np.int32), 2, 1)


# --- a learned space -------------------------------------------------------------------------------------------------


def test_a_tree_in_a_space_is_the_tree_of_the_projected_rows(data):
    vectors = np.random.default_rng(0).normal(size=(100, 8)).astype(np.float32)
    inside = grow_candidate_tree(data.X, data.Y, SETTINGS, space=vectors.ravel(), seed=1)
    rows = data.X.toarray() / np.linalg.norm(data.X.toarray(), axis=1, keepdims=True)
    projected = sparse.csr_array((rows @ vectors).astype(np.float32))
    plain = grow_candidate_tree(projected, data.Y, SETTINGS, seed=1)
    np.testing.assert_allclose(inside.arrays["weight"][:9], plain.arrays["weight"][:9], atol=1e-3)  # the root
    same = replace(inside, arrays={**inside.arrays, "space": np.zeros(0, np.float32)})
    cores = (core_of(inside, 100, 40), core_of(same, 8, 40))
    for ask in (lambda core, X: core.leaves(X, None, 2), lambda core, X: core.leaves(X, 7, 2)):
        found, expected = (ask(core, X) for core, X in zip(cores, (data.X, projected), strict=True))
        assert np.mean(found == expected) > 0.99  # but for rounding
    score = cores[0].route(*row_arrays(data.X[[5]]))
    for _, total, feature, added in score[:-1]:
        assert feature[-1] == 100
        assert added.sum() == pytest.approx(total, abs=1e-5)


@pytest.mark.parametrize("shuffle", [True, False])
def test_against_one_group_of_all_labels_the_space_is_learned_as_a_classifier_without_a_tree_is(data, shuffle):
    settings = {"learning_rate": 0.2, "eps": 1e-3, "seed": 5, "n_threads": 2}
    one_group = {"rank": 8, "group_size": 40, "is_multiclass": False, "n_epochs": 3}
    space = learn_space(data.X, data.Y, shuffle=shuffle, **one_group, **settings)
    tree = grow_candidate_tree(data.X, data.Y, TreeSettings(depth=0, n_candidates=40))
    arrays = tree.core_arrays()
    kind = {"weights": "low_rank", "rank": 8, "hash_bits": 0, "has_slot_weights": False}
    flat = BaseClassifier.begin(**kind, n_features=100, n_labels=40, n_slots=len(arrays["label"]), seed=5)
    core = flat.core(arrays, 40, 40, True, False)
    fixed = {"has_slot_bias": False, "is_shuffled": shuffle, "is_sampled": False, "decays": True, "passes": 3}
    core.train(flat.arrays, data.X, data.Y, None, **fixed, **settings)
    for name in ("input", "output", "label_bias"):
        np.testing.assert_array_equal(space.arrays[name], flat.arrays[name])


def test_a_damaged_node_without_weights_has_no_bias_to_tell(data):
    vectors = np.random.default_rng(0).normal(size=800).astype(np.float32)
    arrays = grow_candidate_tree(data.X, data.Y, SETTINGS, space=vectors, seed=1).core_arrays()
    first = int(arrays["weight_begin"][1])
    begin = np.maximum(arrays["weight_begin"] - first, 0)
    cut = {name: np.ascontiguousarray(arrays[name][first:]) for name in ("weight", "weight_feature")}
    base = BaseClassifier.none(100, 40, len(arrays["label"]))
    core = base.core({**arrays, **cut, "weight_begin": begin}, 40, 6, True, False)
    _, score, _, added = core.route(*row_arrays(data.X[[0]]))[0]
    assert (score, added[-1]) == (0, 0)


def test_values_too_large_for_the_space_make_a_leaf_and_no_crash(data):
    huge = sparse.csr_array(data.X * np.float32(1e30))
    vectors = np.full(800, 1e30, np.float32)
    tree = grow_candidate_tree(huge, data.Y, SETTINGS, space=vectors, normalize=False)
    assert tree.n_leaves == 1
    core = core_of(grow_candidate_tree(data.X, data.Y, SETTINGS, space=vectors, seed=1), 100, 40)
    for ways in (1, 3):
        assert (np.diff(candidates_of(core, huge, ways, 40).indptr) > 0).all()


@pytest.mark.parametrize("is_multiclass", [True, False])
def test_labels_of_other_groups_are_made_up_for(is_multiclass):
    generator = np.random.default_rng(0)
    frequency = np.arange(1, 201) ** -0.5
    labels = generator.choice(200, 6000, p=frequency / frequency.sum())
    Y = sparse.csr_array(np.eye(200, dtype=np.float32)[labels])
    X = sparse.csr_array((6000, 3), dtype=np.float32)  # rows without features: the biases are all that can be learned
    settings = {"rank": 8, "is_multiclass": is_multiclass, "learning_rate": 0.3, "n_epochs": 20}
    bias = learn_space(X, Y, group_size=50, **settings).arrays["label_bias"].astype(np.float64)
    found = np.exp(bias) / np.exp(bias).sum() if is_multiclass else 1 / (1 + np.exp(-bias))
    np.testing.assert_allclose(found, np.bincount(labels, minlength=200) / 6000, rtol=0.25, atol=0.002)


def test_classes_of_few_rows_are_found_in_a_learned_space():
    # A class has 20 words of its own of which a row has two: rows of a class may have no word in common.
    generator = np.random.default_rng(1)
    own = generator.choice(3000, (150, 20))
    labels = np.arange(150).repeat(16)
    words = np.concatenate([own[labels[:, None], generator.integers(0, 20, (len(labels), 2))],
                            generator.integers(0, 3000, (len(labels), 2))], axis=1)  # fmt: skip
    X = np.zeros((len(labels), 3000), dtype=np.float32)
    np.put_along_axis(X, words, 1.0, axis=1)
    X, Y = sparse.csr_array(X), sparse.csr_array(np.eye(150, dtype=np.float32)[labels])
    test = np.arange(len(labels)) % 16 == 0
    train = ~test
    space = learn_space(X[train], Y[train], rank=32, group_size=150, is_multiclass=True, n_epochs=10)
    settings = TreeSettings(depth=6, n_candidates=15, deviation="within")
    recalls = []
    for vectors in (None, space.arrays["input"]):
        tree = grow_candidate_tree(X[train], Y[train], settings, space=vectors)
        found = candidates_of(core_of(tree, 3000, 150, 15), X[test], 4, 150)
        recalls.append(float((found.astype(bool).astype(int) * Y[test].astype(int)).sum() / test.sum()))
    assert recalls[1] > recalls[0] + 0.1


def group_arguments(data):
    return {
        "base": learn_space(data.X, data.Y, rank=8, group_size=10, is_multiclass=False, n_epochs=1).arrays,
        "X": arrays_of(data.X),
        "Y": arrays_of(data.Y),
        "sample_weight": None,
        "features": _core.FeatureSettings(100, True, 0.0),
        "is_multiclass": False, "n_labels": 40, "rank": 8, "learning_rate": 0.1, "eps": 1e-3, "group_size": 10,
        "passes": 1, "is_shuffled": True, "seed": 0, "n_threads": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "spoil", "said"),
    [
        ("base", lambda a: {**a, "input": a["input"][:-1]}, "input"),
        ("base", lambda a: {n: v for n, v in a.items() if n != "output"}, "named output"),
        ("X", lambda a: a._replace(indices=a.indices + 1000), "column"),
        ("Y", lambda a: a._replace(indices=a.indices + 1000), "column"),
        ("sample_weight", lambda a: np.zeros(500, np.float32), "above 0"),
        ("features", lambda a: _core.FeatureSettings(100, True, 1.0), "its own biases"),
        ("features", lambda a: _core.FeatureSettings(7, True, 0.0), "column"),
        ("n_labels", lambda a: 3, "column"),
        ("n_labels", lambda a: 41, "are inconsistent"),
        ("rank", lambda a: 16, "are inconsistent"),
        ("rank", lambda a: 7, "rank"),
        ("learning_rate", lambda a: 0.0, "above 0"),
        ("eps", lambda a: float("nan"), "above 0"),
        ("group_size", lambda a: 0, "group_size"),
        ("passes", lambda a: -1, "passes"),
    ],
)
def test_broken_calls_of_the_space_are_refused(data, name, spoil, said):
    given = group_arguments(data)
    given[name] = spoil(given[name])
    with pytest.raises(ValueError, match=said):
        _core.train_against_groups(**given)
