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
