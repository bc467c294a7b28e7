"""A bound on memory: kept on a stream that grows for ever, said once, the same for every way of feeding the stream."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

import ramify
from ramify import OnlinePLTClassifier
from shared.online_models import weights_by_labels

BUDGET = 1_000_000


def growing_stream(n_rows=3000, n_labels=60, seed=0, n_noise=12):
    """A label has three words of its own; every row brings words that never occur again."""
    generator = np.random.default_rng(seed)
    label = generator.integers(0, n_labels, n_rows)
    known = label[:, None] * 3 + np.arange(3)
    fresh = 3 * n_labels + np.arange(n_rows * n_noise).reshape(n_rows, n_noise)
    indices = np.hstack([known, fresh]).astype(np.int32)
    values = np.hstack([np.ones((n_rows, 3)), np.full((n_rows, n_noise), 0.3)]).astype(np.float32)
    width = 3 * n_labels + n_rows * n_noise
    X = sparse.csr_array(
        (values.ravel(), indices.ravel(), np.arange(n_rows + 1) * (3 + n_noise)), shape=(n_rows, width)
    )
    return X, [[f"label {j}"] for j in label]


def learned(X, labels, sizes, **settings):
    clf = OnlinePLTClassifier(memory_budget=BUDGET, arity=4, max_leaf=8, random_state=0, **settings)
    start, peak = 0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for size in sizes:
            if start >= X.shape[0]:
                break
            clf.partial_fit(X[start : start + size], labels[start : start + size])
            start += size
            peak = max(peak, clf.memory_)
    return clf, peak


@pytest.mark.parametrize("learner", ["adagrad", "fobos"])
def test_memory_stays_about_the_budget_and_the_model_useful(learner):
    X, labels = growing_stream()
    free = OnlinePLTClassifier(arity=4, max_leaf=8, random_state=0, optimizer=learner).partial_fit(X, labels)
    free.predict(X[:2])  # which brings every block up to date
    assert free.memory_ > 3 * BUDGET
    bound, peak = learned(X, labels, [25] * 200, optimizer=learner)
    assert peak < 1.3 * BUDGET
    assert bound.n_evicted_rows_ > 10_000
    fresh, truth = growing_stream(500, seed=1)
    right = [
        np.mean([pairs[0][0] == label[0] for pairs, label in zip(clf.predict_labels(fresh, 1), truth, strict=True)])
        for clf in (free, bound)
    ]
    assert right[0] > 0.9
    assert right[1] > right[0] - 0.05


@pytest.mark.parametrize("arity", [4, 24])
def test_with_many_labels_the_budget_bounds_the_weights_and_labels_take_what_is_documented(arity):
    n_labels = 30_000
    generator = np.random.default_rng(0)
    X = sparse.csr_array(generator.random((n_labels, 4), dtype=np.float32))
    budget = 2_000_000
    clf = OnlinePLTClassifier(memory_budget=budget, arity=arity, max_leaf=127, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for start in range(0, n_labels, 3000):
            labels = [[f"label {j}"] for j in range(start, start + 3000)]
            clf.partial_fit(X[start : start + 3000], labels)
            assert clf.weights_memory_ <= budget
    assert clf.n_evicted_rows_ > 0
    of_labels = clf.memory_ - clf.weights_memory_
    assert 40 * n_labels < of_labels < 100 * n_labels


def test_running_out_is_said_once():
    X, labels = growing_stream()
    clf = OnlinePLTClassifier(memory_budget=BUDGET, arity=4, max_leaf=8)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for start in range(0, 3000, 100):
            clf.partial_fit(X[start : start + 100], labels[start : start + 100])
    said = [str(warning.message) for warning in caught]
    assert len(said) == 1
    assert "memory_budget of 1,000,000 bytes is used up" in said[0]
    assert "n_evicted_rows_" in said[0]
    within = OnlinePLTClassifier(memory_budget=10**9).partial_fit(X[:50], labels[:50])
    assert within.n_evicted_rows_ == 0


@pytest.mark.parametrize("learner", ["adagrad", "fobos"])
@pytest.mark.parametrize("policy", ["fair", "best", "random"])
def test_batch_sizes_threads_and_questions_change_no_bit(policy, learner):
    X, labels = growing_stream(1200)
    settings = {"policy": policy, "optimizer": learner}
    whole, _ = learned(X, labels, [1200], **settings)
    assert whole.n_evicted_rows_ > 0
    pieces, _ = learned(X, labels, [1, 7, 500, 3, 90, 2000], n_jobs=2, **settings)
    asked = OnlinePLTClassifier(memory_budget=BUDGET, arity=4, max_leaf=8, random_state=0, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for start in range(0, 1200, 10):
            asked.partial_fit(X[start : start + 10], labels[start : start + 10])
            asked.predict_proba(X[:3], top_k=2)  # which brings every block up to date
    for other in (pieces, asked):
        assert other.n_evicted_rows_ == whole.n_evicted_rows_
        assert weights_by_labels(other) == weights_by_labels(whole)


@pytest.mark.parametrize("learner", ["adagrad", "fobos"])
def test_a_saved_model_goes_on_within_its_budget_exactly(learner, tmp_path):
    X, labels = growing_stream(3000)
    clf, _ = learned(X[:1800], labels[:1800], [1800], optimizer=learner)
    assert clf.n_evicted_rows_ > 0
    clf.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    assert again.n_evicted_rows_ == clf.n_evicted_rows_
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it was said before
        for model in (clf, again):
            model.partial_fit(X[1800:], labels[1800:])
    assert again.n_evicted_rows_ == clf.n_evicted_rows_
    assert weights_by_labels(again) == weights_by_labels(clf)
    assert (again.predict_proba(X[:50], top_k=3) != clf.predict_proba(X[:50], top_k=3)).nnz == 0


def test_a_budget_too_small_for_anything_still_learns_and_answers():
    X, labels = growing_stream(300)
    clf = OnlinePLTClassifier(memory_budget=1)
    with pytest.warns(UserWarning, match="used up"):
        clf.partial_fit(X, labels)
    assert clf.n_labels_ == len({label for row in labels for label in row})
    assert len(clf.predict_one(X[[0]])) == 5
    for bad in (0, -1, 1.5, "1 GB", True):
        with pytest.raises(ValueError, match="memory_budget must be an integer"):
            OnlinePLTClassifier(memory_budget=bad).partial_fit(X, labels)
