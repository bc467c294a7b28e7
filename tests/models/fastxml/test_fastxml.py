"""FastXMLClassifier: how well it ranks, what its parameters do, its explanations, its files."""

from __future__ import annotations

import io
import itertools
import json

import numpy as np
import pytest
from rich.console import Console

import ramify
from ramify import FastXMLClassifier, metrics
from ramify.data.synthetic import make_multiclass, make_multilabel
from ramify.explain.row_path import RouteExplanation
from ramify.models.fastxml.classifier import label_gain


@pytest.fixture(scope="module")
def data():
    return make_multilabel(1500, 80, 400, random_state=1)


@pytest.fixture(scope="module")
def fitted(data):
    return FastXMLClassifier(n_trees=20, random_state=0).fit(data.X[:1000], data.Y[:1000])


def precision(clf, data, k=1):
    return metrics.precision_at_k(data.Y[1000:], clf.predict_proba(data.X[1000:], top_k=k), k)


def test_it_ranks_far_better_than_frequency_and_more_trees_rank_better(data, fitted):
    frequency = np.asarray(data.Y[:1000].sum(axis=0)).ravel()
    by_frequency = metrics.precision_at_k(data.Y[1000:], np.tile(frequency, (500, 1)), 1)
    one = FastXMLClassifier(n_trees=1, random_state=0).fit(data.X[:1000], data.Y[:1000])
    assert precision(fitted, data) > precision(one, data) > by_frequency + 0.1


def test_classes_are_learned():
    data = make_multiclass(1500, 10, 200, random_state=0)
    y = data.Y.indices
    clf = FastXMLClassifier(n_trees=20, random_state=0).fit(data.X[:1000], y[:1000])
    assert clf.score(data.X[1000:], y[1000:]) > 2 * np.bincount(y).max() / len(y)
    np.testing.assert_allclose(clf.predict_proba(data.X).sum(axis=1), 1, atol=1e-5)


def test_leaves_hold_few_rows_and_few_labels(data):
    clf = FastXMLClassifier(n_trees=3, max_leaf=20, labels_per_leaf=4, C=10.0, random_state=0).fit(data.X, data.Y)
    arrays = clf.model_.arrays
    in_leaves = arrays["mass"][arrays["child"] < 0]
    assert np.median(in_leaves) <= 20
    assert in_leaves.sum() == 3 * data.X.shape[0]
    assert np.diff(arrays["label_begin"]).max() == 4


def test_a_lower_cost_gives_sparser_separators_and_fewer_nodes(data):
    small, large = (FastXMLClassifier(n_trees=3, C=C, random_state=0).fit(data.X, data.Y) for C in (0.1, 10.0))
    assert len(small.model_.arrays["weight"]) < 0.5 * len(large.model_.arrays["weight"])
    assert len(small.model_.arrays["child"]) < len(large.model_.arrays["child"])


def test_propensities_are_those_of_the_metrics(data):
    expected = 1 / metrics.propensities(data.Y, 0.6, 2.6)
    np.testing.assert_allclose(label_gain((0.6, 2.6), data.Y), expected, rtol=1e-6)
    np.testing.assert_allclose(label_gain(1 / expected, data.Y), expected, rtol=1e-6)
    doubled = label_gain((0.6, 2.6), data.Y, np.full(data.Y.shape[0], 2, np.float32))
    assert (doubled < expected).mean() > 0.5  # more examples of a label, a better chance that it was seen


def test_the_pair_and_its_array_grow_the_same_forest(data):
    by_pair, by_array, without = (
        FastXMLClassifier(n_trees=2, propensity=given, random_state=0).fit(data.X, data.Y).predict_proba(data.X)
        for given in ((0.55, 1.5), metrics.propensities(data.Y), None)
    )
    assert (by_pair != by_array).nnz == 0
    assert (by_pair != without).nnz > 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"n_trees": 0}, "n_trees must be an integer between 1"),
        ({"max_leaf": 0}, "max_leaf must be an integer of at least 1"),
        ({"C": 0}, "C must be a number above 0"),
        ({"tol": -1}, "tol must be a number of at least 0"),
        ({"max_iterations": 0}, "max_iterations must be"),
        ({"labels_per_leaf": 0}, "labels_per_leaf must be"),
        ({"normalize": "yes"}, "normalize must be True or False"),
        ({"bias": -1}, "bias must be"),
        ({"propensity": "high"}, "propensity must be None, .* got 'high'"),
        ({"propensity": (0, 1)}, "propensity A must be a number above 0"),
        ({"propensity": [0.5, 0.5]}, "number for each of the 80 labels"),
        ({"propensity": np.zeros(80)}, "above 0 and at most 1"),
        ({"propensity": np.full(80, np.nan)}, "above 0 and at most 1"),
    ],
)
def test_bad_parameters_are_refused_by_name(data, settings, said):
    with pytest.raises(ValueError, match=said):
        FastXMLClassifier(**settings).fit(data.X, data.Y)


# --- explanations ----------------------------------------------------------------------------------------------------


def test_the_explained_probability_is_the_predicted_one(data, fitted):
    for row in range(3):
        P = fitted.predict_proba(data.X[[row]], labels=range(80)).toarray()[0]
        for label in (0, 7, int(P.argmax())):
            explanation = fitted.explain(data.X[[row]], label)
            assert isinstance(explanation, RouteExplanation)
            assert explanation.probability == pytest.approx(P[label], rel=1e-5, abs=1e-7)
            assert len(explanation.paths) == 20


def test_the_shares_on_the_way_are_those_of_the_training_rows(data, fitted):
    for path in fitted.explain(data.X[[1200]], 3).paths[:3]:
        assert path[0].n_rows == 1000
        assert path[0].probability == pytest.approx(data.Y[:1000, [3]].sum() / 1000)
        assert all(a.n_rows > b.n_rows for a, b in itertools.pairwise(path))
        assert [step.goes == "stays" for step in path] == [False] * (len(path) - 1) + [True]


def test_contributions_make_the_score_and_the_score_decides(data, fitted):
    child = fitted.model_.arrays["child"]
    for path in fitted.explain(data.X[[1200]], top=1000).paths[:5]:
        for step, following in itertools.pairwise(path):
            total = step.bias + sum(contribution.value for contribution in step.contributions)
            assert total == pytest.approx(step.score, abs=1e-5)
            assert step.rest == pytest.approx(0, abs=1e-9)
            assert step.goes == ("right" if step.score > 0 else "left")
            assert following.node == child[step.node] + (step.goes == "right")


def test_explanations_are_printed_as_text_and_json():
    texts = ["red apple", "green apple", "red cherry", "green pear"] * 8
    tags = [["red", "apple"], ["green", "apple"], ["red", "cherry"], ["green", "pear"]] * 8
    clf = FastXMLClassifier(n_trees=5, max_leaf=8, random_state=0).fit(texts, tags)
    explanation = clf.explain("red cherry", "cherry")
    shown = str(explanation)
    assert shown.startswith(f"cherry: probability {explanation.probability:.4f}")
    assert "cherry +" in shown or "cherry -" in shown
    assert "of 32 training rows" in shown
    assert "and 2 more trees" in shown
    assert json.loads(json.dumps(explanation.to_dict()))["paths"][0][0]["n_rows"] == 32
    console = Console(file=io.StringIO(), width=100)
    console.print(explanation)
    assert "and 2 more trees" in console.file.getvalue()


# --- files -----------------------------------------------------------------------------------------------------------


def test_a_loaded_forest_is_mapped_and_explains_the_same(data, fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    assert not again.model_.arrays["weight"].flags.owndata
    assert again.explain(data.X[[5]], 3).to_dict() == fitted.explain(data.X[[5]], 3).to_dict()


def test_a_forest_that_does_not_fit_its_labels_is_refused(data, fitted, tmp_path):
    fitted.model_.arrays["label"][0], before = 79, fitted.model_.arrays["label"][0]
    try:
        fitted.save(tmp_path / "model")
    finally:
        fitted.model_.arrays["label"][0] = before
    with pytest.raises(ramify.base.save_load.ModelFileError, match="label"):
        ramify.load(tmp_path / "model")
