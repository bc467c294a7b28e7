"""Explanations: their numbers are those of the prediction, their names those of the user."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy.special import expit
from sklearn.feature_extraction.text import HashingVectorizer

import ramify
from ramify import PLTClassifier
from ramify.data.synthetic import make_multiclass, make_multilabel
from ramify.explain.label_path import labels_below
from ramify.models.plt import PLTSolver
from ramify.trees import random_tree

TEXTS = ["red apple", "green apple", "red cherry", "green pear", "old car"] * 6
TAGS = [["red", "apple"], ["green", "apple"], ["red", "cherry"], ["green", "pear"], []] * 6


@pytest.fixture(scope="module")
def on_texts():
    return PLTClassifier(arity=2, max_leaf=2, random_state=0).fit(TEXTS, TAGS)


@pytest.fixture(scope="module")
def on_numbers():
    data = make_multilabel(400, 60, 300, random_state=1)
    return PLTClassifier(arity=3, max_leaf=5, random_state=0).fit(data.X, data.Y), data


def test_the_product_of_the_path_is_the_probability(on_numbers):
    clf, data = on_numbers
    for row in range(5):
        P = clf.predict_proba(data.X[[row]], labels=range(60)).toarray()[0]
        for label in (0, 7, 59):
            explanation = clf.explain(data.X[[row]], label)
            assert explanation.probability == pytest.approx(P[label], rel=1e-6)
            product = np.prod([step.probability for step in explanation.path])
            assert product == pytest.approx(P[label], rel=1e-5)
            assert explanation.path[-1].cumulative == explanation.probability


def test_a_row_that_may_have_no_label_starts_at_the_root(on_texts):
    path = on_texts.explain("old car", "red").path
    assert path[0].node == 0
    assert path[0].n_labels == on_texts.n_labels_
    assert path[0].probability < 0.5


def test_contributions_and_bias_make_the_score_and_the_score_the_probability(on_numbers):
    _, data = on_numbers
    clf = PLTClassifier(arity=3, max_leaf=5, calibrate=False, solver=PLTSolver(loss="logistic", C=1.0), random_state=0)
    clf.fit(data.X, data.Y)
    for label in (1, 20, 41):
        for step in clf.explain(data.X[[0]], label, top=1000).path:
            assert step.rest == pytest.approx(0, abs=1e-9)
            total = step.bias + sum(contribution.value for contribution in step.contributions)
            assert total == pytest.approx(step.score, abs=1e-6)
            assert expit(step.score) == pytest.approx(step.probability, abs=2e-5)


def test_what_is_not_shown_is_summed_as_the_rest(on_numbers):
    clf, data = on_numbers
    short, full = (clf.explain(data.X[[0]], 3, top=top).path[-1] for top in (2, 1000))
    assert len(short.contributions) == 2
    assert short.contributions == full.contributions[:2]
    assert short.rest == pytest.approx(sum(c.value for c in full.contributions[2:]), abs=1e-6)
    sizes = [abs(c.value) for c in full.contributions]
    assert sizes == sorted(sizes, reverse=True)


def test_without_a_label_the_most_probable_one_is_explained(on_texts):
    assert on_texts.explain("green pear").label == on_texts.predict_one("green pear", top_k=1)[0][0]


def test_multiclass_paths_multiply_too():
    data = make_multiclass(300, 20, 200, random_state=2)
    clf = PLTClassifier(arity=3, max_leaf=4, random_state=0).fit(data.X, data.y)
    expected = clf.predict_proba(data.X[[5]])[0]
    for label in (0, 11, 19):
        assert clf.explain(data.X[[5]], label).probability == pytest.approx(expected[label], rel=1e-5)


def test_of_an_ensemble_each_tree_has_its_path_and_the_mean_is_the_probability(on_numbers):
    _, data = on_numbers
    clf = PLTClassifier(arity=3, max_leaf=5, n_trees=3, random_state=0).fit(data.X, data.Y)
    explanation = clf.explain(data.X[[1]], 8)
    assert len(explanation.paths) == 3
    assert explanation.probability == pytest.approx(clf.predict_proba(data.X[[1]], labels=[8]).data[0], rel=1e-5)
    assert "tree 2 of 3" in str(explanation)


def test_text_dict_array_and_sparse_rows_are_explained_alike(on_texts):
    row = on_texts.vectorizer_.transform(["red apple"])
    as_dict = {on_texts.vectorizer_.get_feature_names_out()[c]: v for c, v in zip(row.indices, row.data, strict=True)}
    expected = on_texts.explain("red apple", "red").to_dict()
    assert on_texts.explain(["red apple"], "red").to_dict() == expected
    assert expected.pop("spans")  # places in a text, which numbers have none of
    for x in (row, row.toarray()[0], as_dict):
        assert on_texts.explain(x, "red").to_dict() == expected


def test_features_go_by_their_names(on_texts):
    names = {c.feature for step in on_texts.explain("red apple", "apple").path for c in step.contributions}
    assert names == {"red", "apple"}
    table = pd.DataFrame({"age": [1.0, 2, 3, 4] * 5, "weight": [4.0, 3, 2, 1] * 5})
    clf = PLTClassifier(random_state=0, normalize=False).fit(table, ["young", "young", "old", "old"] * 5)
    assert {c.feature for c in clf.explain({"age": 4.0, "weight": 1.0}, "old").path[-1].contributions} <= set(table)


def test_weights_in_a_shared_table_are_explained_alike(on_numbers):
    _, data = on_numbers
    clf = PLTClassifier(arity=3, max_leaf=5, hash_bits=14, random_state=0).fit(data.X, data.Y)
    explanation = clf.explain(data.X[[1]], 8)
    assert explanation.probability == pytest.approx(clf.predict_proba(data.X[[1]], labels=[8]).data[0], rel=1e-5)
    assert explanation.path[-1].contributions


def test_a_hashing_model_explains_with_the_words_of_the_text():
    clf = PLTClassifier(vectorizer=HashingVectorizer(n_features=2**12), arity=2, max_leaf=2, random_state=0)
    clf.fit(TEXTS, TAGS)
    names = {c.feature for step in clf.explain("red apple", "apple").path for c in step.contributions}
    assert names == {"red", "apple"}


def test_given_names_are_shown_saved_and_forgotten_by_a_new_fit(on_numbers, tmp_path):
    clf, data = on_numbers
    clf = PLTClassifier(random_state=0).fit(data.X, data.Y)
    clf.set_names(labels=[f"topic {k}" for k in range(60)], features=[f"word {k}" for k in range(300)])
    clf.save(tmp_path / "model")
    explanation = ramify.load(tmp_path / "model").explain(data.X[[0]], 7)
    assert explanation.name == "topic 7"
    assert explanation.path[-1].labels == ["7 topic 7"]
    assert all(c.feature.startswith("word ") for c in explanation.path[-1].contributions)
    assert clf.predict_one({"word 3": 1.0}) == clf.predict_one({3: 1.0})
    assert clf.fit(data.X, data.Y).explain(data.X[[0]], 7).name == ""


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"labels": ["a"]}, "expected 60 label names, got 1"),
        ({"labels": "a" * 60}, "expected a list of 60 label names, got 'aaa"),
        ({"labels": {"no such": "x"}}, "none of the 1 named labels, such as 'no such', is a label"),
        ({"labels": [3] * 60}, "the name of label 0 is 3"),
        ({"features": ["a"]}, "expected 300 feature names, got 1"),
    ],
)
def test_names_that_do_not_fit_are_refused_and_change_nothing(on_numbers, names, message):
    clf, _ = on_numbers
    before = dict(clf.schema_.__dict__)
    with pytest.raises(ValueError, match=message):
        clf.set_names(**names)
    assert clf.schema_.__dict__ == before


def test_an_explanation_is_plain_json_and_readable_text(on_texts):
    explanation = on_texts.explain("red apple", "apple")
    assert json.loads(json.dumps(explanation.to_dict()))["label"] == "apple"
    said = str(explanation)
    assert said.startswith("apple: probability 0.")
    assert "red" in said
    console = Console(width=60, file=io.StringIO())
    console.print(explanation)
    shown = console.file.getvalue()
    assert "99." in shown
    assert "apple" in shown


@pytest.mark.parametrize(
    ("x", "label", "message"),
    [
        (["red", "green"], "red", "one row"),
        ("red", "blue", "not among the 5 known labels"),
        (np.zeros(3), "red", "features"),
    ],
)
def test_bad_questions_are_refused(on_texts, x, label, message):
    with pytest.raises(ValueError, match=message):
        on_texts.explain(x, label)


def test_a_single_label_that_every_row_has_is_explained_too():
    clf = PLTClassifier(random_state=0).fit(["a", "b"], [["only"], ["only"]])
    explanation = clf.explain("a")
    assert explanation.probability == 1.0
    assert explanation.path[0].labels == ["only"]


def test_labels_below_a_node_are_those_whose_path_passes_it():
    tree = random_tree(None, np.arange(200), arity=3, max_leaf=4, random_state=5)
    paths = {label: set(tree.path(label).tolist()) for label in range(200)}
    for node in range(0, tree.n_nodes, 7):
        assert labels_below(tree, node).tolist() == [label for label, path in paths.items() if node in path]
