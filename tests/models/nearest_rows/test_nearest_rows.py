"""Nearest rows as a classifier: what votes, what is explained, and that few rows per label are enough."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from ramify import NearestRowsClassifier, load
from ramify.data.synthetic import make_multilabel

TEXTS = ["red round cherry", "red round apple", "yellow long banana", "yellow sour lemon"]
TAGS = [["red", "cherry"], ["red", "apple"], ["yellow", "banana"], ["yellow", "lemon"]]


def test_one_row_per_label_is_enough():
    generator = np.random.default_rng(0)
    centres = sparse.random_array((300, 2000), density=0.01, rng=generator, format="csr", dtype=np.float32)
    noise = sparse.random_array((300, 2000), density=0.002, rng=generator, format="csr", dtype=np.float32)
    clf = NearestRowsClassifier().fit(centres, np.arange(300))
    assert clf.n_examples_ == 300
    assert clf.score(centres + 0.3 * noise, np.arange(300)) > 0.95


def test_the_probability_is_the_share_of_cubed_similarities():
    X = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    clf = NearestRowsClassifier(k=2).fit(X, np.array(["a", "b", "c"]))
    votes = np.array([0.9, (0.9 + np.sqrt(0.19)) / np.sqrt(2)]) ** 3
    expected = dict(zip("ab", votes / votes.sum(), strict=True))
    found = dict(clf.predict_one({0: 0.9, 1: np.sqrt(0.19)}))
    assert found["c"] == 0
    assert {name: found[name] for name in "ab"} == pytest.approx(expected, rel=1e-6)
    clf.set_params(power=0.0, k=1)  # search options, which may change after training
    assert clf.predict_one({0: 0.9, 1: np.sqrt(0.19)}, top_k=1) == [("b", 1.0)]


def test_a_row_like_no_other_gets_the_labels_shares_of_the_training_rows():
    clf = NearestRowsClassifier().fit(TEXTS, TAGS)
    assert dict(clf.predict_one("blue", top_k=2)) == {"red": 0.5, "yellow": 0.5}
    assert "no stored example is similar" in str(clf.explain("blue", "red"))


def test_opposite_rows_have_no_vote():
    clf = NearestRowsClassifier().fit(np.array([[1.0, 0.1], [-1.0, 0.1]]), np.array(["plus", "minus"]))
    assert clf.predict_one({0: 1.0}) == [("plus", 1.0), ("minus", 0.0)]


def test_an_explanation_names_the_rows_their_share_and_the_features_in_common():
    clf = NearestRowsClassifier(k=2).fit(TEXTS, TAGS)
    explanation = clf.explain("red apple", "apple")
    best = explanation.retrieved[0]
    assert (best.row, best.labels, best.has_label) == (1, ["red", "apple"], True)
    assert {part.feature for part in best.contributions} == {"red", "apple"}
    assert sum(memory.share for memory in explanation.retrieved) == pytest.approx(1)
    assert best.share == pytest.approx(explanation.probability, rel=1e-6)
    assert explanation.to_dict()["retrieved"][0]["row"] == 1
    assert "row 1 (red, apple)" in str(explanation)


def test_a_saved_model_finds_the_same_rows(tmp_path):
    data = make_multilabel(300, 20, 100, random_state=0)
    clf = NearestRowsClassifier().fit(data.X, data.Y)
    clf.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for one, other in zip(clf.model_.nearest(data.X, 5), again.model_.nearest(data.X, 5), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("settings", "said"), [({"k": 0}, "k must be"), ({"power": -1}, "power must be")])
def test_bad_parameters_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        NearestRowsClassifier(**settings).fit(TEXTS, TAGS)


# --- centroids -------------------------------------------------------------------------------------------------------


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_a_centroid_is_the_mean_of_a_labels_rows_at_unit_length():
    X = np.array([[3.0, 4.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 5.0], [1.0, 0.0, 1.0]])
    clf = NearestRowsClassifier(centroids=True, power=1.0).fit(X, np.array(["a", "a", "b", "b"]))
    assert clf.n_examples_ == 2
    centroids = unit(np.array([unit(X[:2]).mean(axis=0), unit(X[2:]).mean(axis=0)]))
    query = unit(np.array([[1.0, 2.0, 2.0]]))
    similarity = (query @ centroids.T)[0]
    np.testing.assert_allclose(clf.predict_proba(query)[0], similarity / similarity.sum(), rtol=1e-5)


def test_a_weight_counts_in_the_mean_and_in_the_shares():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    y = np.array(["a", "a", "b"])
    weighted = NearestRowsClassifier(centroids=True).fit(X, y, sample_weight=np.array([3.0, 1.0, 2.0]))
    repeated = NearestRowsClassifier(centroids=True).fit(X[[0, 0, 0, 1, 2, 2]], y[[0, 0, 0, 1, 2, 2]])
    for query in ([[1.0, 0.2]], [[0.0, 0.0]]):
        np.testing.assert_allclose(weighted.predict_proba(query), repeated.predict_proba(query), rtol=1e-6)


def test_centroids_see_what_no_single_row_shows():
    """Few noisy rows per label, each with half of the label's features: their mean has all of them."""
    data = make_multilabel(3000, 100, 600, random_state=0)
    rows, centroids = (
        NearestRowsClassifier(centroids=centroids, k=20, power=power).fit(data.X[:1500], data.Y[:1500])
        for centroids, power in ((False, 3.0), (True, 8.0))
    )
    Y = data.Y[1500:]
    of_rows, of_centroids = (
        np.mean([Y[i, P[[i]].indices[0]] for i in range(1500)])
        for P in (clf.predict_proba(data.X[1500:], top_k=1) for clf in (rows, centroids))
    )
    assert of_centroids > of_rows > 0.2


def test_centroids_are_explained_by_their_labels_and_survive_a_file(tmp_path):
    clf = NearestRowsClassifier(centroids=True, k=3).fit(TEXTS, TAGS)
    assert "mean of the rows with red: " in str(clf.explain("red apple", "red"))
    clf.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.predict_one("red apple") == clf.predict_one("red apple")
    assert str(again.explain("red apple", "red")) == str(clf.explain("red apple", "red"))
    assert clf.explain("red apple", "red").to_dict()["retrieved"][0]["is_centroid"]
