"""The mixture: weights from held-out rows, exact best labels, explanations, streams, files."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from ramify import (
    FastXMLClassifier,
    MemoryTreeClassifier,
    MixtureClassifier,
    NearestRowsClassifier,
    OnlinePLTClassifier,
    PLTClassifier,
    load,
)
from ramify.data.synthetic import make_multilabel
from ramify.models.mixture.weights import BrierSums, project_to_simplex

DATA = make_multilabel(900, 60, 300, random_state=0)
TRAIN, TEST = slice(0, 600), slice(600, 900)


def parts():
    return [PLTClassifier(arity=2, max_leaf=5), FastXMLClassifier(n_trees=3), NearestRowsClassifier()]


@pytest.fixture(scope="module")
def mixture():
    return MixtureClassifier(parts(), weights=[3, 1, 2], random_state=0).fit(DATA.X[TRAIN], DATA.Y[TRAIN])


# --- weights ---------------------------------------------------------------------------------------------------------


def test_learned_weights_have_the_least_squared_error_of_all():
    generator = np.random.default_rng(0)
    P, y = generator.random((500, 3)), (generator.random(500) < 0.3).astype(float)
    P[:, 0] = np.clip(0.6 * y + 0.2 * P[:, 0], 0, 1)
    sums = BrierSums.none(3)
    for start in range(0, 500, 100):  # pieces add up
        sums = sums.plus(P[start : start + 100], y[start : start + 100], None)
    weights = sums.weights()
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()
    best = ((P @ weights - y) ** 2).sum()
    for other in generator.dirichlet(np.ones(3), 300):
        assert best <= ((P @ other - y) ** 2).sum() + 0.02


def test_the_projection_is_the_nearest_point_of_the_simplex():
    generator = np.random.default_rng(1)
    for _ in range(20):
        point = generator.normal(size=4)
        nearest = project_to_simplex(point)
        assert nearest.sum() == pytest.approx(1)
        assert (nearest >= 0).all()
        others = generator.dirichlet(np.ones(4), 200)
        assert ((nearest - point) ** 2).sum() <= ((others - point) ** 2).sum(axis=1).min() + 1e-12


def test_weights_of_parts_with_tiny_probabilities_are_weights():
    """Steps are as large as the probabilities are small; the projection lost the one that it subtracts."""
    P, y = np.array([[1e-20, 2e-20], [3e-20, 1e-20]]), np.array([1.0, 1.0])
    weights = BrierSums.none(2).plus(P, y, None).weights()
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()


def test_a_part_that_knows_nothing_gets_no_weight():
    noise = NearestRowsClassifier(k=1, power=0.0)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 600)
    X = rng.normal(0, 1.0, (600, 40))
    X[np.arange(600), y] += 4
    clf = MixtureClassifier([("good", PLTClassifier()), ("noise", noise)], random_state=0).fit(X, y)
    assert clf.weights_["good"] > 0.6
    assert sum(clf.weights_.values()) == pytest.approx(1)


def test_held_out_rows_decide_not_training_rows():
    """On its own training rows a nearest neighbour is perfect; weights must not see that."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 200)), rng.integers(0, 5, 500)
    X[np.arange(500), y] += 3
    clf = MixtureClassifier([("tree", PLTClassifier()), ("one", NearestRowsClassifier(k=1))], random_state=0).fit(X, y)
    assert clf.weights_["tree"] > 0.8


def test_the_default_gains_where_labels_have_few_rows():
    """Three rows per class and a tree of several levels: centroids add to what three trees know."""
    rng = np.random.default_rng(0)
    n_classes, n_features = 600, 2000
    centres = rng.random((n_classes, n_features)) < 0.01
    y = np.tile(np.arange(n_classes), 6)
    shape = (len(y), n_features)
    X = sparse.csr_array((centres[y] & (rng.random(shape) < 0.3)) | (rng.random(shape) < 0.005)).astype(np.float32)
    train, test = slice(0, 3 * n_classes), slice(3 * n_classes, None)
    trees = PLTClassifier(n_trees=3, random_state=0).fit(X[train], y[train])
    mixture = MixtureClassifier(random_state=0).fit(X[train], y[train])
    assert mixture.weights_["centroids"] > 0.1
    assert mixture.score(X[test], y[test]) > trees.score(X[test], y[test]) + 0.02


# --- answers ---------------------------------------------------------------------------------------------------------


def test_the_answer_is_the_weighted_mean_of_the_parts(mixture):
    X = DATA.X[TEST]
    expected = sum(
        weight * mixture.parts_[name].predict_proba(X, threshold=0.0).toarray().astype(np.float64)
        for name, weight in mixture.weights_.items()
    )
    np.testing.assert_allclose(mixture.predict_proba(X, threshold=0.0).toarray(), expected, atol=1e-6)
    assert mixture.weights_ == pytest.approx({"plt": 1 / 2, "fastxml": 1 / 6, "nearest-rows": 1 / 3})


@pytest.mark.parametrize("top_k", [1, 5, 59])
def test_the_best_k_are_the_best_of_all_labels(mixture, top_k, monkeypatch):
    monkeypatch.setattr("ramify.models.mixture.model.FIRST_CANDIDATES", 1)  # so that more are needed
    X = DATA.X[TEST]
    everything = mixture.predict_proba(X, threshold=0.0).toarray()
    answer = mixture.predict_proba(X, top_k=top_k)
    np.testing.assert_array_equal(
        np.sort(answer.data.reshape(-1, top_k), axis=1), np.sort(everything, axis=1)[:, -top_k:]
    )


def test_labels_of_probability_zero_come_in_the_order_of_their_columns():
    clf = MixtureClassifier([NearestRowsClassifier(k=1), NearestRowsClassifier(k=2)], weights=[1, 1])
    clf.fit(np.eye(50), np.arange(50))
    assert [label for label, _ in clf.predict_one({40: 1.0}, top_k=4)] == [40, 0, 1, 2]


def test_probabilities_of_several_labels_are_calibrated_by_a_power():
    clf = MixtureClassifier(parts(), random_state=0).fit(DATA.X[TRAIN], DATA.Y[TRAIN])
    assert set(clf.exponents_) == set(clf.weights_) == {"plt", "fastxml", "nearest-rows"}
    everything = clf.predict_proba(DATA.X[TEST], threshold=0.0).toarray()
    answer = clf.predict_proba(DATA.X[TEST], threshold=0.1).toarray()
    np.testing.assert_array_equal(answer, np.where(everything >= np.float32(0.1), everything, 0))


def test_an_explanation_says_what_each_part_adds(mixture):
    explanation = mixture.explain(DATA.X[[700]])
    assert sum(part.contribution for part in explanation.parts) == pytest.approx(explanation.probability, rel=1e-5)
    assert [part.name for part in explanation.parts] == ["plt", "fastxml", "nearest-rows"]
    assert explanation.to_dict()["parts"][2]["explanation"]["retrieved"]
    for part in explanation.parts:
        assert f"{part.name}: {part.probability:.4f}, adds" in str(explanation)


# --- parts and parameters --------------------------------------------------------------------------------------------


def test_parts_have_names_parameters_and_copies():
    clf = MixtureClassifier([("a", PLTClassifier()), ("b", NearestRowsClassifier())])
    clf.set_params(a__n_trees=2, b__k=7)
    twin = clone(clf)
    assert twin.get_params()["a__n_trees"] == 2
    assert dict(twin.parts)["b"].k == 7
    assert dict(twin.parts)["b"] is not dict(clf.parts)["b"]
    fitted = MixtureClassifier([PLTClassifier(), PLTClassifier(n_trees=2)], weights=[1, 1]).fit(DATA.X, DATA.Y)
    assert list(fitted.parts_) == ["plt", "plt-2"]
    named = MixtureClassifier("plt, nearest-rows", weights=[1, 1]).fit(DATA.X, DATA.Y)
    assert list(named.parts_) == ["plt", "nearest-rows"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"parts": []}, "parts must be None or a list"),
        ({"parts": [3]}, "parts must hold classifiers of ramify, got 3"),
        ({"parts": "plt,oak"}, "no classifier is called 'oak'"),
        ({"parts": [("a", PLTClassifier()), ("a", PLTClassifier())]}, "distinct strings"),
        ({"weights": [1.0]}, "weights must be None or 3 numbers"),
        ({"weights": [1.0, -1.0, 1.0]}, "weights must be None or 3 numbers"),
        ({"weights": "1,2,3"}, "weights must be None or 3 numbers of at least 0, one per part, got '1,2,3'"),
        ({"held_out": 1.0}, "held_out must leave rows"),
    ],
)
def test_bad_parameters_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        MixtureClassifier(**settings).fit(DATA.X, DATA.Y)


# --- streams and files -----------------------------------------------------------------------------------------------


def online(**settings):
    return MixtureClassifier([OnlinePLTClassifier(), MemoryTreeClassifier()], random_state=0, **settings)


def test_only_a_mixture_of_online_parts_learns_online():
    assert hasattr(online(), "partial_fit")
    assert not hasattr(MixtureClassifier(), "partial_fit")
    assert not hasattr(MixtureClassifier([OnlinePLTClassifier(), PLTClassifier()]), "partial_fit")


def test_a_stream_in_pieces_is_the_stream_at_once_and_weights_follow_it(tmp_path):
    at_once = online(block=50).partial_fit(DATA.X[TRAIN], DATA.Y[TRAIN])
    pieces = online(block=50)
    for start in range(0, 600, 100):
        pieces.partial_fit(DATA.X[start : start + 100], DATA.Y[start : start + 100])
    assert pieces.weights_ == pytest.approx(at_once.weights_)
    assert pieces.weights_["online-plt"] != 0.5
    pieces.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for clf in (at_once, pieces, again):
        clf.partial_fit(DATA.X[TEST], DATA.Y[TEST])
    assert again.weights_ == pieces.weights_
    assert again.predict_labels(DATA.X[:20]) == pieces.predict_labels(DATA.X[:20])
    assert at_once.predict_labels(DATA.X[:20]) == pieces.predict_labels(DATA.X[:20])


def test_new_labels_and_words_may_appear_at_any_time():
    clf = online().learn_one("red apple", "fruit").learn_one("blue whale", "animal")
    clf.learn_one("old oak", "tree")
    assert clf.predict_one("an old oak", top_k=1)[0][0] == "tree"
    assert sum(p for _, p in clf.predict_one("red", top_k=3)) == pytest.approx(1, abs=1e-5)


def test_a_rejected_piece_changes_nothing():
    clf = online().partial_fit(DATA.X[:50], DATA.Y[:50])
    before = clf.predict_labels(DATA.X[:5])
    with pytest.raises(ValueError, match="rows"):
        clf.partial_fit(DATA.X[:50], DATA.Y[:49])
    assert clf.predict_labels(DATA.X[:5]) == before


def test_texts_are_vectorised_once_for_all_parts(tmp_path):
    texts, tags = ["red apple", "green pear", "red cherry", "green leaf"] * 5, ["apple", "pear", "cherry", "leaf"] * 5
    clf = MixtureClassifier(random_state=0).fit(texts, tags)
    assert clf.parts_["plt"].n_features_in_ == len(clf.vectorizer_.vocabulary_)
    clf.save(tmp_path / "model")
    assert load(tmp_path / "model").predict(["a green pear"]).tolist() == ["pear"]


@pytest.mark.parametrize("parts", [None, "plt, nearest-rows", ["plt", "nearest-rows"], [NearestRowsClassifier()]])
def test_parameters_can_be_set_however_the_parts_are_given(parts):
    clf = MixtureClassifier(parts).set_params(n_jobs=2, random_state=3)
    assert clf.get_params()["n_jobs"] == 2
    assert clf.set_params(parts=["plt"]).parts == ["plt"]


def test_parameters_of_parts_that_changed_since_learning_began_are_an_error():
    for start in (MixtureClassifier.fit, MixtureClassifier.partial_fit):
        parts = [("a", MemoryTreeClassifier(random_state=7)), ("b", OnlinePLTClassifier())]
        clf = start(MixtureClassifier(parts, random_state=0), np.eye(4), [0, 1, 0, 1])
        clf.partial_fit(np.eye(4), [0, 1, 0, 1]).set_params(a__reroutes=3)
        with pytest.raises(ValueError, match=r"reroutes was .* when learning began and is 3 now"):
            clf.partial_fit(np.eye(4), [0, 1, 0, 1])


def test_parts_that_changed_since_learning_began_are_an_error():
    clf = MixtureClassifier(["online-plt", "memory-tree"], random_state=0).partial_fit(np.eye(4), [0, 1, 0, 1])
    clf.set_params(parts=["online-plt", "online-oaa"])
    with pytest.raises(ValueError, match=r"the parts were .*memory-tree.* and are .*online-oaa.* now"):
        clf.partial_fit(np.eye(4), [0, 1, 0, 1])
