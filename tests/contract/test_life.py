"""What a fitted classifier goes through: files, pickles, threads, forks, repeated fits."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.model_selection import KFold, cross_val_score

from contract.classifiers import converged_settings
from contract.small_data import once_per_path, same
from ramify.base import save_load as persist

LABELS = ["Y", "collections", "y"]


def labels_of(data, kind):
    return getattr(data, kind)


@pytest.mark.parametrize("kind", LABELS)
def test_a_saved_model_answers_bit_for_bit_the_same(fitted, data, kind, tmp_path):
    clf = fitted(kind)
    clf.save(tmp_path / "model")
    questions = ({}, {"top_k": 3}, {"threshold": 0.1}, {"labels": clf.classes_[:2].tolist()})
    answers = [clf.predict_proba(data.X, **question) for question in questions]
    predicted, labels, one = clf.predict(data.X), clf.predict_labels(data.X), clf.predict_one(data.X[[0]])
    for verify in (None, True, False):
        again = persist.load(tmp_path / "model", verify=verify)
        assert type(again) is type(clf)
        assert repr(again.get_params()) == repr(clf.get_params())  # an estimator inside is a copy
        assert again.classes_.dtype == clf.classes_.dtype
        assert again.classes_.tolist() == clf.classes_.tolist()
        assert (again.n_features_in_, again.n_labels_) == (clf.n_features_in_, clf.n_labels_)
        for question, answer in zip(questions, answers, strict=True):
            assert same(again.predict_proba(data.X, **question), answer)
        assert same(again.predict(data.X), predicted)
        assert again.predict_labels(data.X) == labels
        assert again.predict_one(data.X[[0]]) == one


def test_a_saved_model_takes_texts(make, data, tmp_path):
    check_saved_model_takes_texts(make, data, None, tmp_path)


@once_per_path
@pytest.mark.parametrize(
    "vectorizer", [TfidfVectorizer(min_df=2, ngram_range=(1, 2)), HashingVectorizer(n_features=64)]
)
def test_a_saved_model_has_the_vectorizer_of_the_users_choice(make, data, vectorizer, tmp_path):
    check_saved_model_takes_texts(make, data, vectorizer, tmp_path)


def check_saved_model_takes_texts(make, data, vectorizer, tmp_path):
    clf = make(vectorizer=vectorizer).fit(data.texts, data.collections)
    clf.save(tmp_path / "model")
    again = persist.load(tmp_path / "model")
    assert again.predict_labels(data.texts) == clf.predict_labels(data.texts)
    if hasattr(clf.vectorizer_, "vocabulary_"):
        assert again.predict_one({"wort3": 1.0}) == clf.predict_one({"wort3": 1.0})
    refitted = clone(again).fit(data.texts, data.collections)
    assert refitted.predict_labels(data.texts) == clf.predict_labels(data.texts)


def test_a_saved_model_knows_its_feature_names(make, data, tmp_path):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(data.X.toarray(), columns=[f"Größe {i}" for i in range(data.X.shape[1])])
    clf = make().fit(X, data.collections)
    clf.save(tmp_path / "model")
    again = persist.load(tmp_path / "model")
    assert again.feature_names_in_.tolist() == clf.feature_names_in_.tolist()
    assert again.predict_one({"Größe 3": 1.0}) == clf.predict_one({"Größe 3": 1.0})


def test_a_loaded_model_can_be_saved_over_itself_and_pickled(fitted, data, tmp_path):
    fitted("collections").save(tmp_path / "model")
    first = persist.load(tmp_path / "model")
    expected = first.predict_labels(data.X)
    first.save(tmp_path / "model")
    second = persist.load(tmp_path / "model")
    assert first.predict_labels(data.X) == expected  # its old file is gone, its memory is not
    assert second.predict_labels(data.X) == expected
    assert pickle.loads(pickle.dumps(second)).predict_labels(data.X) == expected


@pytest.mark.parametrize(
    "copied", [lambda clf: pickle.loads(pickle.dumps(clf)), copy.deepcopy], ids=["pickle", "deepcopy"]
)
@pytest.mark.parametrize("kind", LABELS)
def test_copies_answer_the_same(fitted, data, kind, copied):
    clf = fitted(kind)
    clf.predict_one({0: 1.0})
    assert same(copied(clf).predict_proba(data.X, top_k=3), clf.predict_proba(data.X, top_k=3))


def test_a_clone_is_unfitted_and_learns_the_same(fitted, data):
    clf = fitted()
    twin = clone(clf)
    assert not twin.__sklearn_is_fitted__()
    assert same(twin.fit(data.X, data.Y).predict_proba(data.X), clf.predict_proba(data.X))


@pytest.mark.parametrize("kind", ["Y", "y"])
def test_the_number_of_jobs_changes_no_bit(make, data, kind):
    one, two, all_cores = (make(n_jobs=n_jobs).fit(data.X, labels_of(data, kind)) for n_jobs in (1, 2, -1))
    for question in ({"top_k": 3}, {"threshold": 0.05}, {"labels": one.classes_[:3].tolist()}):
        assert same(one.predict_proba(data.X, **question), two.predict_proba(data.X, **question))
        assert same(one.predict_proba(data.X, **question), all_cores.predict_proba(data.X, **question))


def test_the_same_random_state_gives_the_same_model(make, data):
    answers = [make(random_state=seed).fit(data.X, data.Y).predict_proba(data.X) for seed in (5, 5)]
    assert same(*answers)
    generators = [np.random.RandomState(3) for _ in range(2)]
    answers = [make(random_state=generator).fit(data.X, data.Y).predict_proba(data.X) for generator in generators]
    assert same(*answers)


def test_a_second_fit_forgets_the_first(fitted, data):
    clf = copy.deepcopy(fitted("collections", "texts")).fit(data.X, data.y)
    assert not hasattr(clf, "vectorizer_")
    assert clf.is_multiclass_
    assert same(clf.predict_proba(data.X), fitted("y").predict_proba(data.X))


@pytest.mark.parametrize("kind", ["Y", "y"])
def test_a_weight_of_two_is_a_row_given_twice(make, data, kind):
    weight = np.random.default_rng(0).integers(0, 3, data.X.shape[0])
    Y = labels_of(data, kind)
    rows = np.repeat(np.arange(data.X.shape[0]), weight)
    converged = converged_settings(make())
    weighted = make(**converged).fit(data.X, Y, sample_weight=weight).predict_proba(data.X, threshold=0.0).toarray()
    repeated = make(**converged).fit(data.X[rows], Y[rows]).predict_proba(data.X, threshold=0.0).toarray()
    plain = make(**converged).fit(data.X, Y).predict_proba(data.X, threshold=0.0).toarray()
    assert np.abs(weighted - repeated).max() < 1e-3
    assert np.abs(plain - repeated).max() > 1e-2


def test_weights_of_one_change_nothing(make, fitted, data):
    plain = fitted()
    weighted = make().fit(data.X, data.Y, sample_weight=np.ones(data.X.shape[0]))
    np.testing.assert_allclose(
        weighted.predict_proba(data.X, threshold=0.0).toarray(),
        plain.predict_proba(data.X, threshold=0.0).toarray(),
        atol=1e-5,
    )


def test_several_threads_may_ask_at_once(make, data):
    clf = make(n_jobs=2).fit(data.X, data.collections)
    batch, single = clf.predict_proba(data.X, top_k=3), clf.predict_labels(data.X)
    with ThreadPoolExecutor(8) as pool:
        batches = list(pool.map(lambda _: clf.predict_proba(data.X, top_k=3), range(16)))
        singles = list(pool.map(lambda row: clf.predict_one(data.X[[row]]), range(data.X.shape[0])))
    assert all(same(answer, batch) for answer in batches)
    assert singles == single


def _fit_and_predict_in_child(clf, make_again, data, pipe):
    fitted_here = make_again.fit(data.X, data.Y)
    pipe.send((clf.predict_proba(data.X, top_k=3), fitted_here.predict_proba(data.X, top_k=3)))
    pipe.close()


def test_a_forked_child_predicts_and_trains(make, data):
    clf = make(n_jobs=2).fit(data.X, data.Y)
    expected = clf.predict_proba(data.X, top_k=3)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_fit_and_predict_in_child, args=(clf, make(n_jobs=2), data, sender))
    child.start()
    sender.close()
    assert receiver.poll(60), "the child hangs"
    answers = receiver.recv()
    child.join(10)
    assert child.exitcode == 0
    assert all(same(answer, expected) for answer in answers)


def test_scikit_learns_tools_work(make, data):
    assert len(cross_val_score(make(), data.X, data.y, cv=3)) == 3
    assert len(cross_val_score(make(), data.X, data.Y.toarray(), cv=3, error_score="raise")) == 3


@once_per_path
def test_scikit_learns_tools_work_with_texts(make, data):
    assert len(cross_val_score(make(), data.texts, data.collections, cv=KFold(3), error_score="raise")) == 3


def test_a_fit_that_breaks_off_leaves_the_model_as_it_was(fitted, data, monkeypatch):
    clf = copy.deepcopy(fitted())
    before = clf.predict_proba(data.X)
    inner = type(clf)._fitted_on

    def stopped(self, *training):
        inner(self, *training)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(clf), "_fitted_on", stopped)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(sparse.csr_array(data.X[:, :7]), data.y)
    assert same(clf.predict_proba(data.X), before)
