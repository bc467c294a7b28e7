"""The mean of several trees: the labels and probabilities of an exhaustive mean, however they are asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify import _core
from shared.rows import label_rows, row_arrays
from twins.models import random_model, random_rows, random_tree

N_LABELS, N_FEATURES, N_ROWS = 30, 20, 9


def make(seed, n_trees, is_multiclass=False):
    """Trees of different shapes over the same labels, rows, and the probability of every label in each tree."""
    rng = np.random.default_rng(seed)
    cores = []
    options = {"is_multiclass": is_multiclass, "calibrated": is_multiclass, "top_from": 0.1 if is_multiclass else None}
    for _ in range(n_trees):
        model = random_model(rng, random_tree(rng, N_LABELS), n_features=N_FEATURES, **options)
        cores.append(model.trained.core)
    X = random_rows(rng, N_ROWS, N_FEATURES)
    every = label_rows(np.arange(N_ROWS + 1) * N_LABELS, np.tile(np.arange(N_LABELS), N_ROWS))
    in_tree = np.array([core.named(X, every, 1).reshape(N_ROWS, N_LABELS) for core in cores])
    return _core.LabelTreeEnsemble(cores), X, in_tree


def mean_of(in_tree):
    return (in_tree.astype(np.float64).sum(axis=0) / len(in_tree)).astype(np.float32)


def best(p, top_k, threshold=0.0, among=None):
    order = [int(k) for k in np.lexsort((np.arange(len(p)), -p)) if p[k] > 0 and (among is None or k in among)]
    return [(k, p[k]) for k in order[:top_k] if p[k] >= np.float32(threshold)]


def best_means(in_tree, top_k, threshold):
    """For each row the best means of the labels that are among the best of some tree."""
    answers = []
    for i, mean in enumerate(mean_of(in_tree)):
        proposed = {label for tree in in_tree for label, _ in best(tree[i], top_k)}
        answers.append(best(mean, top_k, threshold, proposed))
    return answers


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, N_LABELS + 3), st.floats(0, 0.4), st.booleans())
def test_the_answer_is_the_best_means_of_all_proposed_labels(seed, n_trees, top_k, threshold, is_multiclass):
    ensemble, X, in_tree = make(seed, n_trees, is_multiclass)
    expected = best_means(in_tree, top_k, threshold)
    for n_threads in (1, 2):
        indptr, labels, found = ensemble.search(X, top_k, 0.0, threshold, [], None, 0, n_threads)
        for i, answer in enumerate(expected):
            got = slice(indptr[i], indptr[i + 1])
            assert list(zip(labels[got].tolist(), found[got], strict=True)) == sorted(answer)
    for i, answer in enumerate(expected):
        labels, found = ensemble.search_row(*row_arrays(X[[i]]), top_k, threshold)
        assert list(zip(labels.tolist(), found, strict=True)) == answer


@given(st.integers(0, 2**32 - 1), st.floats(0.001, 0.4))
def test_all_labels_above_a_threshold_are_found(seed, threshold):
    ensemble, X, in_tree = make(seed, 3)
    indptr, labels, found = ensemble.search(X, None, threshold, threshold, [], None, 0, 2)
    for i, mean in enumerate(mean_of(in_tree)):
        got = slice(indptr[i], indptr[i + 1])
        assert list(zip(labels[got].tolist(), found[got], strict=True)) == sorted(best(mean, None, threshold))
        alone = ensemble.search_row(*row_arrays(X[[i]]), None, threshold)
        assert list(zip(*(part.tolist() for part in alone), strict=True)) == best(mean, None, threshold)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.floats(0.01, 0.9))
def test_with_slack_the_answer_holds_true_means(seed, top_k, slack):
    ensemble, X, in_tree = make(seed, 3)
    indptr, labels, found = ensemble.search(X, top_k, 0.0, 0.0, [], None, 0, 1, slack)
    rows = np.repeat(np.arange(N_ROWS), np.diff(indptr))
    np.testing.assert_array_equal(found, mean_of(in_tree)[rows, labels])


def test_a_beam_answers_with_true_means():
    ensemble, X, in_tree = make(0, 3)
    indptr, labels, found = ensemble.search(X, 5, 0.0, 0.0, [], None, 2, 1)
    rows = np.repeat(np.arange(N_ROWS), np.diff(indptr))
    np.testing.assert_array_equal(found, mean_of(in_tree)[rows, labels])


def test_trees_that_do_not_fit_together_are_rejected():
    rng = np.random.default_rng(0)
    one = random_model(rng, random_tree(rng, 5), n_features=4).trained.core
    for n_labels, n_features in ((6, 4), (5, 3)):
        other = random_model(rng, random_tree(rng, n_labels), n_features=n_features).trained.core
        with pytest.raises(ValueError, match="same features and labels"):
            _core.LabelTreeEnsemble([one, other])
    with pytest.raises(ValueError, match="at least one tree"):
        _core.LabelTreeEnsemble([])
    for wrong in ([None], [1], "ab"):
        with pytest.raises((TypeError, RuntimeError)):
            _core.LabelTreeEnsemble(wrong)
    ensemble = _core.LabelTreeEnsemble([one, one])
    X = random_rows(rng, 2, 4)
    with pytest.raises(ValueError, match="for each tree"):
        ensemble.search(X, 5, 0.0, 0.0, [np.zeros(9, np.float32)], None, 0, 1)
    with pytest.raises(ValueError, match="each node"):
        ensemble.search(X, 5, 0.0, 0.0, [np.zeros(1, np.float32)] * 2, None, 0, 1)
    with pytest.raises(ValueError, match="each label"):
        ensemble.search(X, 5, 0.0, 0.0, [], np.zeros(1, np.float32), 0, 1)
    with pytest.raises(ValueError):
        ensemble.search(random_rows(rng, 2, 9), 5, 0.0, 0.0, [], None, 0, 1)
    with pytest.raises(ValueError):
        ensemble.search_row(np.array([7], np.int32), np.ones(1, np.float32), 5, 0.0)
