"""SpectralTreeClassifier with several ways at prediction, and with its tree in a learned space."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import numpy as np
import pytest

import ramify
from ramify import metrics
from shared.spectral_settings import LEARNED, SMALL, spectral


def test_several_ways_recall_more_of_new_rows_with_as_many_candidates(classes):
    settings = {**SMALL, "n_candidates": 4, "depth": 7}
    clf = spectral(**settings).fit(classes.X[:2000], classes.y[:2000])
    recalls, scores = [], []
    for n_leaves in (1, 4):
        clf.n_leaves = n_leaves
        found = clf.candidates(classes.X[2000:])
        assert np.diff(found.indptr).max() <= 4
        recalls.append(metrics.filter_recall(classes.Y[2000:], found))
        scores.append(clf.score(classes.X[2000:], classes.y[2000:]))
    assert recalls[1] > recalls[0]
    assert scores[1] > scores[0]


@pytest.mark.parametrize("weights", ["low_rank", "full"])
def test_the_tree_may_be_grown_where_the_classifier_sees_the_rows(data, classes, weights):
    settings = {**SMALL, **LEARNED, "weights": weights}
    labels = spectral(**settings).fit(data.X[:1000], data.Y[:1000])
    assert metrics.filter_recall(data.Y[1000:], labels.candidates(data.X[1000:])) > 0.5
    of_classes = spectral(**settings, sampled_labels=20).fit(classes.X[:2000], classes.y[:2000])
    assert of_classes.score(classes.X[2000:], classes.y[2000:]) > 0.8
    np.testing.assert_allclose(of_classes.predict_proba(classes.X[2000:]).sum(axis=1), 1, atol=1e-5)
    row, answer = classes.X[[2000]], of_classes.predict_proba(classes.X[[2000]])
    best, probability = of_classes.predict_one(row, top_k=1)[0]
    assert probability == answer[0, of_classes.classes_.tolist().index(best)] == answer.max()
    learned = of_classes.filter_.arrays["space"].copy()
    of_classes.partial_fit(classes.X[2000:], classes.y[2000:])
    np.testing.assert_array_equal(of_classes.filter_.arrays["space"], learned)  # or rows would go other ways


@pytest.mark.parametrize("n_leaves", [0, -3, 2.5, "4", None, 10**30])
def test_n_leaves_set_later_is_checked_by_queries_and_saving(data, fitted, n_leaves, tmp_path):
    clf = copy.copy(fitted).set_params(n_leaves=n_leaves)
    for ask in (lambda: clf.predict_proba(data.X[:3], top_k=1), lambda: clf.predict_one(data.X[[0]], top_k=1),
                lambda: clf.candidates(data.X[:3]), lambda: clf.save(tmp_path / "model")):  # fmt: skip
        with pytest.raises(ValueError, match="n_leaves must be an integer between 1 and 65536"):
            ask()
    assert not (tmp_path / "model").exists()
    clf.set_params(n_leaves=np.int64(2))
    assert json.loads(json.dumps(clf.explain(data.X[[0]]).to_dict()))["n_leaves"] == 2


def test_a_space_that_diverges_says_so(data):
    with pytest.raises(ValueError, match="learning the space diverged: give a smaller learning_rate"):
        spectral(**SMALL, **LEARNED, normalize=False).fit(data.X * np.float32(1e25), data.Y)


def test_a_file_without_its_space_is_refused(data, tmp_path):
    clf = spectral(**SMALL, **LEARNED).fit(data.X[:300], data.Y[:300])
    clf.model_.tree = replace(clf.filter_, arrays={**clf.filter_.arrays, "space": clf.filter_.arrays["space"][:-1]})
    clf.save(tmp_path / "model")
    with pytest.raises(ramify.base.save_load.ModelFileError, match="does not hold a sound"):
        ramify.load(tmp_path / "model")


def test_what_a_copy_learns_is_nothing_to_the_first(data):
    tags = [[f"tag {label}" for label in row.indices] for row in data.Y[:200]]
    clf = spectral(**SMALL).fit(data.X[:200], tags)
    before, n_labels = clf.predict_labels(data.X[:50]), clf.n_labels_
    copy.copy(clf).partial_fit(data.X[:5], [["new"]] * 5)
    assert clf.n_labels_ == n_labels
    assert "new" not in clf.classes_
    assert clf.predict_labels(data.X[:50]) == before


def test_several_leaves_are_reported(data, fitted):
    clf = spectral(**SMALL, **LEARNED).fit(data.X[:1000], data.Y[:1000])
    row = data.X[[1100]]
    explanation = clf.explain(row)
    assert {label for label, _ in explanation.candidates} == set(clf.candidates(row).indices.tolist())
    assert "up to 3 likeliest leaves, 12 candidates" in str(explanation)
    assert (explanation.to_dict()["n_leaves"], fitted.explain(row).to_dict()["n_leaves"]) == (3, 1)
    for step in explanation.path[:-1]:  # features of the rows, not dimensions of the space
        assert step.score == pytest.approx(step.bias + sum(p.value for p in step.contributions) + step.rest, abs=1e-4)


@pytest.mark.parametrize("n_leaves", [0, 65_537, 10**30, "4", None, 2.0, True])
def test_ways_that_were_changed_are_checked_at_the_next_question(data, fitted, n_leaves):
    clf = copy.deepcopy(fitted).set_params(n_leaves=n_leaves)
    for ask in (clf.candidates, clf.predict_proba, clf.predict_one, clf.explain):
        with pytest.raises(ValueError, match="n_leaves must be an integer between 1 and 65536, got"):
            ask(data.X[[0]])
    json.dumps(clf.set_params(n_leaves=np.int64(2)).explain(data.X[[0]]).to_dict())
