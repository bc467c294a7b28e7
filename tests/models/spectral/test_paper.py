"""Options of the spectral tree that follow the paper to the letter: hashed weights per leaf, equation 1, its preset."""

from __future__ import annotations

import numpy as np
import pytest

import ramify
from ramify import SpectralTreeClassifier, metrics
from ramify.data.labels import label_indicator
from ramify.models.spectral import CandidateScorer
from shared.spectral_settings import SMALL, spectral


def hashed(output_weights, hash_bits=18, **more):
    return spectral(**{**SMALL, "weights": "hashed", "hash_bits": hash_bits, "output_weights": output_weights, **more})


def test_hashed_weights_of_leaves_stand_beside_the_shared_ones(classes, tmp_path):
    X, y = classes.X[:2000], classes.y[:2000]
    shared, own = (hashed(kind).fit(X, y) for kind in ("shared", "leaf"))
    assert own.model_.base.has_slot_weights
    assert own.model_.base.arrays["output"].shape == shared.model_.base.arrays["output"].shape
    used = [np.count_nonzero(clf.model_.base.arrays["output"]) for clf in (shared, own)]
    assert used[1] > 1.2 * used[0]  # a part per leaf
    assert own.score(X, y) > 0.9
    own.save(tmp_path / "model")
    np.testing.assert_array_equal(ramify.load(tmp_path / "model").predict_proba(X[:50]), own.predict_proba(X[:50]))
    explained = own.explain(X[[0]], own.predict(X[[0]])[0])
    assert explained is not None


def test_leaves_with_hashed_weights_keep_learning_but_take_no_new_candidates(classes):
    X, y = classes.X[:2000], classes.y[:2000]
    clf = hashed("leaf").fit(X, y)
    before = clf.predict_proba(X[:50])
    with pytest.raises(ValueError, match="cannot take new candidates: fit again, or give output_weights='shared'"):
        clf.partial_fit(X[:400], y[:400] + y.max() + 1)
    np.testing.assert_array_equal(clf.predict_proba(X[:50]), before)


def test_squared_frequencies_give_another_tree_for_classes_and_the_same_for_labels(classes, data):
    skewed = np.flatnonzero(np.arange(2000) % (1 + classes.y[:2000] % 4) == 0)  # classes of different frequency
    X, y = classes.X[:2000][skewed], classes.y[:2000][skewed]
    trees = [spectral(**SMALL, squares_frequency=one).fit(X, y).filter_ for one in (False, True)]
    assert not all(np.array_equal(a, trees[1].arrays[name]) for name, a in trees[0].arrays.items())
    trees = [spectral(**SMALL, squares_frequency=one).fit(data.X[:500], data.Y[:500]).filter_ for one in (False, True)]
    assert all(np.array_equal(a, trees[1].arrays[name]) for name, a in trees[0].arrays.items())
    with pytest.raises(ValueError, match="squares_frequency must be True or False"):
        spectral(**SMALL, squares_frequency="yes").fit(X, y)


def test_the_preset_is_the_aloi_experiment(classes):
    clf = SpectralTreeClassifier.from_paper(random_state=0)
    assert (clf.depth, clf.n_candidates, clf.estimator.rank, clf.estimator.output_weights) == (12, 25, 50, "leaf")
    assert isinstance(clf.estimator, CandidateScorer)
    assert clf.fit(classes.X[:2000], classes.y[:2000]).score(classes.X[:2000], classes.y[:2000]) > 0.5


def test_the_tree_may_be_grown_in_another_space_than_that_of_the_classifier(classes, tmp_path):
    """Section 6: a feature map of another model drives the tree, the classifier sees the rows."""
    X, y = classes.X[:2000], classes.y[:2000]
    means = np.stack([np.asarray(X[y == c].mean(axis=0)).ravel() for c in range(60)], axis=1)
    useful = spectral(**SMALL, space=means).fit(X, y)
    useless = spectral(**SMALL, space=np.eye(32)[:, :1]).fit(X, y)
    recall = [metrics.filter_recall(label_indicator(y), clf.candidates(X)) for clf in (useful, useless)]
    assert recall[0] > recall[1] + 0.2
    useful.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X[:50]), useful.predict(X[:50]))
    np.testing.assert_array_equal(again.space, means)
    for wrong, message in (
        (np.ones((5, 3)), "space must have one row for each of the 32 features, got 5"),
        (np.ones(32), r"or a finite array \(features x dimensions\), got shape \(32,\)"),
        ("words", "space must be 'features' or 'learned'"),
    ):
        with pytest.raises(ValueError, match=message):
            spectral(**SMALL, space=wrong).fit(X, y)
