"""ThresholdClassifier: what it holds out, tunes and chooses, what it costs, and how it learns online."""

from __future__ import annotations

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

import ramify
from ramify import (
    FastXMLClassifier,
    MemoryTreeClassifier,
    OnlinePLTClassifier,
    PLTClassifier,
    SpectralTreeClassifier,
    ThresholdClassifier,
    decide,
    metrics,
)
from ramify.data.synthetic import make_multilabel
from ramify.models.plt import PLTSolver
from ramify.models.plt.model import PLTModel


@pytest.fixture(scope="module")
def data():
    return make_multilabel(1500, 60, 300, random_state=0)


@pytest.mark.parametrize("method", ["ofo", "fta", "sto"])
def test_tuned_decisions_beat_a_half_and_the_best_number_of_labels(method):
    tuned, at_half, best_k = np.mean([_macro_f(method, seed) for seed in range(3)], axis=0)
    assert tuned > at_half + 0.1
    assert tuned > best_k


def _macro_f(method, seed):
    """Macro-F on new rows of tuned thresholds, of one half, and of the best number of labels per row.

    Thresholds are tuned on a fifth of 4,000 rows; the best number of labels is chosen on the new rows themselves.
    """
    data = make_multilabel(8000, 200, 500, random_state=seed)
    X, Y, X_new, Y_new = data.X[::2], data.Y[::2], data.X[1::2], data.Y[1::2]
    clf = ThresholdClassifier(PLTClassifier(), method=method, random_state=0).fit(X, Y)
    plain = PLTClassifier(random_state=0).fit(X, Y)
    best_k = max(
        metrics.macro_f1(Y_new, plain.predict_proba(X_new, top_k=k).astype(bool).astype(int), empty=0.0)
        for k in range(1, 9)
    )
    of = [metrics.macro_f1(Y_new, classifier.predict(X_new), empty=0.0) for classifier in (clf, plain)]
    return *of, best_k


def test_a_fifth_of_the_rows_is_held_out_and_without_refit_never_trained_on(data, monkeypatch):
    trained_on = []
    inner = PLTClassifier._train
    monkeypatch.setattr(
        PLTClassifier, "_train", lambda self, rows: trained_on.append(rows.X.shape[0]) or inner(self, rows)
    )
    ThresholdClassifier(PLTClassifier(), random_state=0).fit(data.X, data.Y)
    ThresholdClassifier(PLTClassifier(), refit=False, random_state=0).fit(data.X, data.Y)
    assert trained_on == [1200, 1500, 1200]


def test_only_the_most_probable_labels_of_a_row_are_looked_at(data, monkeypatch):
    asked = []
    inner = PLTModel.search
    monkeypatch.setattr(
        PLTModel,
        "search",
        lambda self, X, query: asked.append(query.top_k) or inner(self, X, query),
    )
    for candidates, top_k in ((7, 7), (200, 60), (None, None)):
        ThresholdClassifier(PLTClassifier(), candidates=candidates, random_state=0).fit(data.X, data.Y)
        assert asked.pop() == top_k


@pytest.mark.parametrize("method", ["ofo", "fta", "sto"])
@pytest.mark.parametrize("objective", ["macro_f1", "micro_f1", "example_f1"])
def test_every_method_tunes_every_objective_that_it_can(data, method, objective):
    plain = PLTClassifier(solver=PLTSolver(C=1.0), calibrate=False)
    clf = ThresholdClassifier(plain, method=method, objective=objective, random_state=0)
    if (method, objective) == ("ofo", "example_f1"):
        with pytest.raises(ValueError, match="no rule"):
            clf.fit(data.X, data.Y)
        return
    clf.fit(data.X, data.Y)
    assert clf.c_ in decide.C
    assert clf.validation_[clf.c_] == max(clf.validation_.values())
    assert list(clf.validation_) == list(decide.C)
    if objective != "macro_f1":
        assert len(set(clf.thresholds_.tolist())) == 1


def test_the_thresholds_are_those_that_the_tuner_finds_on_the_rows_held_out(data):
    clf = ThresholdClassifier(PLTClassifier(), method="sto", c=50, folds=1, refit=False, random_state=3)
    clf.fit(data.X, data.Y)
    held_out = np.random.RandomState(3).permutation(1500)[:300]
    prior = data.Y.sum(axis=0) / 1500
    P = clf.predict_proba(data.X[held_out], threshold=decide.estimates.kappa(1 / 50, prior))
    np.testing.assert_array_equal(clf.thresholds_, decide.tune_sto(P, data.Y[held_out], cut=1 / 50, prior=prior))


def test_predicting_with_thresholds_prunes_the_tree_and_counts_what_it_takes(data):
    clf = ThresholdClassifier(PLTClassifier(arity=4, max_leaf=4), random_state=0).fit(data.X, data.Y)
    X = data.X[:200]
    tuned = clf.n_inner_products(X, threshold=clf.thresholds_)
    everything = clf.n_inner_products(X, threshold=0.0)
    n_nodes = clf.tree_.n_nodes
    assert 4 * 200 <= tuned < everything <= 200 * n_nodes
    complete = clf.predict_proba(X, threshold=0.0)
    np.testing.assert_array_equal(
        clf.predict(X).toarray(), decide.apply_thresholds(complete, clf.thresholds_).toarray()
    )


def test_thresholds_can_be_given_to_any_model_and_are_saved_and_forgotten(data, tmp_path):
    clf = PLTClassifier(random_state=0).fit(data.X, data.Y)
    plain = clf.predict(data.X)
    thresholds = np.linspace(0.05, 0.9, 60).astype(np.float32)
    clf.set_thresholds(thresholds).save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    np.testing.assert_array_equal(again.thresholds_, thresholds)
    assert (again.predict(data.X) != clf.predict(data.X)).nnz == 0
    assert (clf.predict(data.X) != plain).nnz > 0
    assert (clf.set_thresholds(0.5).predict(data.X) != plain).nnz == 0
    assert (again.set_thresholds(None).predict(data.X) != plain).nnz == 0
    assert not hasattr(clf.fit(data.X, data.Y), "thresholds_")
    for bad in (np.ones(59), [-1.0] * 60, np.nan):
        with pytest.raises(ValueError, match="thresholds must be"):
            clf.set_thresholds(bad)
    with pytest.raises(ValueError, match="nothing to decide"):
        PLTClassifier().fit(data.X, np.arange(1500) % 3).set_thresholds(0.3)


def test_thresholds_and_names_of_a_copy_are_its_own(data):
    clf = PLTClassifier(random_state=0).fit(data.X, data.Y)
    other = copy.copy(clf).set_thresholds(0.1).set_names(labels=[f"name {label}" for label in range(60)])
    assert other.explain(data.X[[0]]).name.startswith("name ")
    assert clf.explain(data.X[[0]]).name == ""
    assert not hasattr(clf, "thresholds_")


def test_a_saved_model_knows_what_was_validated(data, tmp_path):
    clf = ThresholdClassifier(PLTClassifier(arity=8), method="fta", common=True, random_state=0).fit(data.X, data.Y)
    clf.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    assert (again.c_, again.validation_) == (clf.c_, clf.validation_)
    assert again.estimator.arity == 8
    assert again.estimator_.predict_labels(data.X[:3]) == clf.predict_labels(data.X[:3])


def test_refused_parameters_are_named(data):
    for given_settings, said in [
        ({"estimator": ThresholdClassifier()}, "estimator must be"),
        ({"estimator": "plt"}, "estimator must be"),
        ({"method": "best"}, "method must be"),
        ({"objective": "accuracy"}, "objective must be"),
        ({"c": 0.5}, "c must be a number of at least 1"),
        ({"c": []}, "at least one"),
        ({"c": None}, "c must be a number of at least 1, got None"),
        ({"c": "10"}, "c must be a number of at least 1, got '10'"),
        ({"empty": 1}, "empty must be"),
        ({"candidates": 0}, "candidates must be"),
        ({"held_out": 0}, "held_out must be"),
        ({"held_out": 1.0}, "held_out must leave"),
        ({"folds": 0}, "folds must be"),
        ({"refit": "no"}, "refit must be"),
        ({"block": 0}, "block must be"),
    ]:
        with pytest.raises(ValueError, match=said):
            ThresholdClassifier(**given_settings).fit(data.X, data.Y)
    with pytest.raises(AttributeError, match="has no attribute"):
        ThresholdClassifier(OnlinePLTClassifier(), method="sto").partial_fit(data.X, data.Y)
    assert not hasattr(ThresholdClassifier(PLTClassifier()), "partial_fit")


# --- online -----------------------------------------------------------------------------------------------------------


@settings(max_examples=12, deadline=None)
@given(
    st.integers(1, 9),
    st.lists(st.integers(1, 40), min_size=1, max_size=6),
    st.sampled_from(["macro_f1", "micro_f1"]),
    st.integers(0, 100),
)
def test_online_thresholds_equal_ofo_run_afterwards_over_the_same_probabilities(block, sizes, objective, seed):
    """With the same causal bound, labels appearing on the way, whatever the blocks and the pieces."""
    rows = make_multilabel(sum(sizes), 12, 40, random_state=seed)
    names = [[f"label {label}" for label in rows.Y.indices[a:b]] for a, b in pairwise(rows.Y.indptr)]
    tried = (20, 3)
    clf = ThresholdClassifier(
        OnlinePLTClassifier(random_state=0), objective=objective, c=tried, block=block, random_state=0
    )
    twin = OnlinePLTClassifier(random_state=0)
    answers, start = [], 0
    for size in sizes:
        clf.partial_fit(rows.X[start : start + size], names[start : start + size])
        for first in range(start, start + size, block):
            part = slice(first, min(first + block, start + size))
            if twin.__sklearn_is_fitted__() and twin.n_labels_:
                answers.append(twin.predict_proba(rows.X[part], threshold=0.0))
            else:
                answers.append(sparse.csr_array((part.stop - part.start, 1), dtype=np.float32))
            twin.partial_fit(rows.X[part], names[part])
        start += size
    truth, _ = twin.schema_.labels.encode(names)
    for answer in answers:
        answer.resize(answer.shape[0], truth.shape[1])
    P = sparse.csr_array(sparse.vstack(answers))
    for c in tried:
        afterwards = decide.OnlineF(b=c, objective=objective).update(P, truth)
        np.testing.assert_array_equal(clf.online_[c].a, afterwards.a)
        np.testing.assert_array_equal(clf.online_[c].b, afterwards.b)
        np.testing.assert_array_equal(clf.online_[c].thresholds, afterwards.thresholds)
        assert clf.validation_[c] == afterwards.f1()
    np.testing.assert_array_equal(clf.thresholds_, clf.online_[clf.c_].thresholds)


def test_progressive_macro_f_beats_fixed_decisions_on_the_way():
    rows = make_multilabel(3000, 60, 300, random_state=1)
    clf = ThresholdClassifier(OnlinePLTClassifier(random_state=0), c=(20, 5), random_state=0)
    twin, at_half = OnlinePLTClassifier(random_state=0), []
    for start in range(0, 3000, 500):
        clf.partial_fit(rows.X[start : start + 500], rows.Y[start : start + 500])
        for first in range(start, start + 500, 32):
            part = slice(first, min(first + 32, start + 500))
            at_half.append(twin.predict(rows.X[part]) if first else sparse.csr_array((32, 60), dtype=int))
            twin.partial_fit(rows.X[part], rows.Y[part])
    fixed = metrics.macro_f1(rows.Y, sparse.vstack(at_half), empty=0.0)
    assert clf.validation_[clf.c_] > fixed + 0.02


def test_an_online_model_goes_on_after_files_and_pickles(tmp_path):
    rows = make_multilabel(400, 20, 100, random_state=2)
    clf = ThresholdClassifier(OnlinePLTClassifier(random_state=0), c=(20, 5), random_state=0)
    clf.partial_fit(rows.X[:200], rows.Y[:200])
    clf.save(tmp_path / "model")
    others = [ramify.load(tmp_path / "model"), pickle.loads(pickle.dumps(clf))]
    for model in (clf, *others):
        model.partial_fit(rows.X[200:], rows.Y[200:])
    for other in others:
        assert other.validation_ == clf.validation_
        np.testing.assert_array_equal(other.thresholds_, clf.thresholds_)
        assert (other.predict(rows.X) != clf.predict(rows.X)).nnz == 0


def test_saved_counts_without_any_c_are_refused():
    rows = make_multilabel(50, 5, 30, random_state=2)
    clf = ThresholdClassifier(OnlinePLTClassifier(random_state=0), c=20).partial_fit(rows.X, rows.Y)
    state = clf.model_.state()
    state.values["online"] = []
    with pytest.raises(ValueError, match="have no value of c"):
        type(clf.model_).from_state(state)


@pytest.mark.parametrize("y", [np.array(3), "a", 3, None])
def test_labels_that_are_no_column_are_refused(y):
    rows = make_multilabel(50, 5, 30, random_state=2)
    clf = ThresholdClassifier(OnlinePLTClassifier(random_state=0)).partial_fit(rows.X, rows.Y)
    with pytest.raises(ValueError, match=r"Y must|requires y"):
        clf.partial_fit(rows.X, y)


def test_a_refused_piece_leaves_an_online_model_as_it_was():
    rows = make_multilabel(300, 20, 100, random_state=2)
    clf = ThresholdClassifier(OnlinePLTClassifier(random_state=0), c=20, random_state=0, block=16)
    with pytest.raises(ValueError, match="NaN"):
        clf.partial_fit(np.full((3, 5), np.nan), np.ones((3, 2)))
    assert not hasattr(clf, "estimator_")
    clf.partial_fit(rows.X[:100], rows.Y[:100])
    before = clf.thresholds_.copy()
    broken = rows.X[100:200].toarray()
    broken[90, 3] = np.inf
    for X, Y in ((broken, rows.Y[100:200]), (rows.X[100:200], rows.Y[100:199]), (rows.X[:50], np.full((50, 20), 2))):
        with pytest.raises(ValueError):
            clf.partial_fit(X, Y)
    np.testing.assert_array_equal(clf.thresholds_, before)
    assert clf.estimator_.n_examples_ == 100
    assert clf.online_[20].n_seen == 100


@pytest.mark.parametrize(
    "estimator",
    [
        PLTClassifier(random_state=0),
        FastXMLClassifier(n_trees=2, random_state=0),
        SpectralTreeClassifier(n_candidates=5, random_state=0),
        MemoryTreeClassifier(random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_label_is_explained_by_the_estimator_inside(data, estimator):
    clf = ThresholdClassifier(estimator, random_state=0)
    with pytest.raises(NotFittedError):
        clf.explain({0: 1.0})
    clf.fit(data.X[:200], data.Y[:200])
    shown, own = clf.explain(data.X[[0]]), clf.estimator_.explain(data.X[[0]])
    assert type(shown) is type(own)
    assert str(shown) == str(own)
    assert shown.label == clf.predict_one(data.X[[0]], top_k=1)[0][0]


def test_a_model_that_has_not_met_a_label_is_saved_and_goes_on(tmp_path, data):
    clf = ThresholdClassifier(OnlinePLTClassifier(random_state=0), random_state=0)
    clf.partial_fit(data.X[:2], [[], []]).save(tmp_path / "model")
    loaded = ramify.load(tmp_path / "model")
    assert loaded.predict_one({0: 1.0}) == []
    for model in (clf, loaded):
        model.partial_fit(data.X[2:4], [["a"], ["b", "c"]])
    assert loaded.predict_labels(data.X[:4]) == clf.predict_labels(data.X[:4]) != []


@pytest.mark.parametrize("broken", ["X", "y"])
def test_a_broken_sparse_array_is_rejected_before_it_is_converted(broken):
    given = {"X": sparse.csc_array(np.eye(4)), "y": sparse.csc_array(np.eye(4))}
    given[broken].indptr = given[broken].indptr[:0]
    with pytest.raises(ValueError, match=f"{broken.upper()} is a broken sparse matrix: indptr has 0 entries"):
        ThresholdClassifier(OnlinePLTClassifier()).partial_fit(given["X"], given["y"])


def test_a_classifier_fitted_on_texts_goes_on_learning_texts():
    texts, labels = ["red round", "long yellow", "green round"] * 6, [["a"], ["b", "c"], ["c"]] * 6
    clf = ThresholdClassifier(OnlinePLTClassifier(random_state=0), random_state=0).fit(texts, labels)
    clf.partial_fit(texts, labels)
    assert clf.predict_one("red round", top_k=1)[0][0] == "a"
