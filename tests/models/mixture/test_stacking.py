"""Stacking: a logistic model over what the parts say about a row's candidates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from ramify import MixtureClassifier, NearestRowsClassifier, PLTClassifier, load
from ramify.base.model import Query
from ramify.data.synthetic import make_multilabel
from ramify.models.mixture import stacking
from ramify.models.mixture.model import MixtureModel
from ramify.models.mixture.stacking import Judged, Stacking, learn_stacking


def few_rows_per_class(n_classes=300, n_features=1500):
    rng = np.random.default_rng(0)
    centres = rng.random((n_classes, n_features)) < 0.01
    y = np.tile(np.arange(n_classes), 9)
    shape = (len(y), n_features)
    X = sparse.csr_array((centres[y] & (rng.random(shape) < 0.3)) | (rng.random(shape) < 0.005)).astype(np.float32)
    return X, y, slice(0, 4 * n_classes), slice(4 * n_classes, None)


def parts():
    return [
        ("tree", PLTClassifier()),
        ("rows", NearestRowsClassifier()),
        ("centroids", NearestRowsClassifier(centroids=True, k=50, power=8.0)),
    ]


@pytest.fixture(scope="module", params=["classes", "one label a row", "several labels"])
def problem(request):
    """A kind of labels, rows to ask, their labels, and a mixture that stacks with given coefficients."""
    X, y, train, test = few_rows_per_class()
    Y = sparse.csr_array((np.ones(len(y), np.float32), y, np.arange(len(y) + 1)), shape=(len(y), 300))
    if request.param == "several labels":
        data = make_multilabel(1500, 60, 300, random_state=0)
        X, Y, train, test = data.X, data.Y, slice(0, 1000), slice(1000, 1500)
    target = y if request.param == "classes" else Y
    clf = MixtureClassifier(parts(), stacking=False, random_state=0).fit(X[train], target[train])
    is_one_of_all = request.param != "several labels"
    coefficients = np.array([0.6, 0.05, 1.0, -0.3] * 3 + [0.1, 0.0 if is_one_of_all else -0.5])
    log_rows = np.log1p(np.asarray(Y[train].sum(axis=0), dtype=np.float64))
    clf.model_.stacking = Stacking(coefficients, log_rows, is_one_of_all)
    return request.param, X[test], Y[test], clf


def judged_rows(n_rows=400, n_candidates=6, seed=0):
    """Two parts, of which the first is right about labels below 50 and the second about the others."""
    rng = np.random.default_rng(seed)
    columns = np.concatenate([np.sort(rng.choice(100, n_candidates, replace=False)) for _ in range(n_rows)])
    truth = np.zeros((n_rows, n_candidates))
    truth[np.arange(n_rows), rng.integers(0, n_candidates, n_rows)] = 1
    y = truth.ravel()
    informed = np.clip(0.1 + 0.5 * y + rng.normal(0, 0.05, len(y)), 0.01, 0.99)
    noise = rng.uniform(0.01, 0.7, len(y))
    P = np.where((columns < 50)[:, None], np.column_stack([informed, noise]), np.column_stack([noise, informed]))
    label_rows = np.where(np.arange(100) < 50, 2.0, 500.0)
    begin = np.arange(n_rows + 1) * n_candidates
    return Judged(begin, columns, P, y, np.ones(n_rows)), label_rows


@pytest.mark.parametrize("is_one_of_all", [True, False])
def test_it_learns_which_part_is_right_about_rare_labels(is_one_of_all):
    judged, label_rows = judged_rows()
    learned = learn_stacking(judged, judged.P.mean(axis=1), label_rows, is_one_of_all)
    fresh, _ = judged_rows(seed=1)
    p = learned.probabilities(fresh.P, fresh.columns, fresh.begin, np.ones(400)).reshape(400, -1)
    right = fresh.y.reshape(400, -1).argmax(axis=1)
    assert (p.argmax(axis=1) == right).mean() > (fresh.P.mean(axis=1).reshape(400, -1).argmax(axis=1) == right).mean()
    assert (p.argmax(axis=1) == right).mean() > 0.95


@pytest.mark.parametrize("is_one_of_all", [True, False])
def test_coefficients_have_the_least_penalised_loss(is_one_of_all, monkeypatch):
    monkeypatch.setattr(stacking, "_PENALTY", 1e-9)
    judged, label_rows = judged_rows()
    log_rows = np.log1p(label_rows)
    best = stacking._fit(judged, log_rows, is_one_of_all)

    def loss(coefficients):
        model = Stacking(coefficients, log_rows, is_one_of_all)
        p = model.probabilities(judged.P, judged.columns, judged.begin, np.ones(400))
        return stacking._log_loss(p, judged, is_one_of_all)

    rng = np.random.default_rng(0)
    for _ in range(50):
        assert loss(best) <= loss(best + rng.normal(0, 0.05, len(best))) + 1e-3


def test_a_mean_that_cannot_be_beaten_stays():
    judged, label_rows = judged_rows()
    assert learn_stacking(judged, judged.y, label_rows, True) is None


def test_stacked_rows_are_probabilities_that_differ_from_the_mean(problem):
    kind, X, _, clf = problem
    p = clf.predict_proba(X, threshold=0.0).toarray()
    assert (p >= 0).all()
    assert (p <= 1).all()
    if kind == "classes":
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-5)
    model = clf.model_
    mean = MixtureModel(model.parts, model.weights, model.exponents).search(X, Query(threshold=0.0)).toarray()
    assert (np.abs(p - mean).max(axis=1) > 0.01).mean() > 0.5
    if kind == "one label a row":
        assert (p.sum(axis=1) <= mean.sum(axis=1) + 1e-4).all()


@pytest.mark.parametrize("top_k", [1, 5, 45])
def test_the_best_k_are_the_best_of_all_and_one_row_alone_is_answered_alike(problem, top_k):
    _, X, _, clf = problem
    everything = clf.predict_proba(X, threshold=0.0).toarray()
    answer = clf.predict_proba(X, top_k=top_k)
    np.testing.assert_array_equal(
        np.sort(answer.data.reshape(-1, top_k), axis=1), np.sort(everything, axis=1)[:, -top_k:]
    )
    for row in range(10):
        alone = clf.predict_proba(X[[row]], top_k=top_k)
        np.testing.assert_array_equal(alone.toarray(), answer[[row]].toarray())
    above = clf.predict_proba(X, threshold=0.05).toarray()
    np.testing.assert_array_equal(above, np.where(everything >= np.float32(0.05), everything, 0))


def test_contributions_and_base_make_the_score(problem):
    kind, X, _, clf = problem
    explanation = clf.explain(X[[3]])
    score = explanation.base + sum(part.contribution for part in explanation.parts)
    p = 1 / (1 + np.exp(-score)) if kind == "several labels" else np.exp(score)
    assert p == pytest.approx(explanation.probability, rel=1e-4)
    assert explanation.to_dict()["base"] == explanation.base
    assert "to the score" in str(explanation)


def test_a_saved_mixture_stacks_alike(problem, tmp_path):
    _, X, _, clf = problem
    clf.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X, top_k=5).toarray(), clf.predict_proba(X, top_k=5).toarray())


def test_parts_are_asked_only_for_what_their_answers_do_not_tell(problem, monkeypatch):
    _, X, _, clf = problem
    model = clf.model_
    first = model.answers(X, 20, 1)
    for m, part in enumerate(model.parts):
        asked = []
        named = part.model.named
        monkeypatch.setattr(part.model, "named", lambda X, c, q, n=named, a=asked: a.append(c) or n(X, c, q))
        P = model.estimates(X, first.candidates, first, 1)
        monkeypatch.undo()
        if asked:
            assert (asked[0] != 0).multiply(first.found[m] != 0).nnz == 0
        if asked and part.name != "tree":  # votes are few, so all are known but where labels' shares stand in for them
            n_found = np.diff(first.found[m].indptr)
            assert (n_found[np.diff(asked[0].indptr) > 0] == first.n_asked[m]).all()
        np.testing.assert_allclose(P[:, m], named(X, first.candidates, part.asked(Query())), rtol=1e-6)


def test_rows_held_out_do_not_count_as_rows_of_their_labels(monkeypatch):
    """Else a true label had one more than what its parts have seen, and learning would trust that."""
    X, y, train, _ = few_rows_per_class()
    seen = []

    def learn(judged, mean, label_rows, is_one_of_all):
        seen.append(label_rows)
        return Stacking(np.ones(14), np.log1p(label_rows), is_one_of_all)

    monkeypatch.setattr("ramify.models.mixture.classifier.learn_stacking", learn)
    clf = MixtureClassifier(parts(), held_out=0.25, random_state=0).fit(X[train], y[train])
    assert seen[0].sum() == 900
    np.testing.assert_allclose(np.expm1(clf.model_.stacking.log_rows), 4)


def test_without_stacking_the_mean_stays():
    X, y, train, _ = few_rows_per_class()
    clf = MixtureClassifier(parts(), stacking=False, random_state=0).fit(X[train], y[train])
    assert clf.model_.stacking is None
    with pytest.raises(ValueError, match="stacking"):
        MixtureClassifier(parts(), stacking="yes").fit(X[train], y[train])
