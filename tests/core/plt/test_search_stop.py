"""Searches that stop early: the same answer from fewer blocks, and a slack reports the probability it missed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from ramify import PLTClassifier
from ramify.base.answers import keep_best
from ramify.trees import interpolated_tree
from shared.plt_searches import answer_rows, searches
from shared.rows import row_arrays
from twins.models import random_rows


def same(a, b):
    return all(np.array_equal(getattr(a, part), getattr(b, part)) for part in ("indptr", "indices", "data"))


@given(searches(), st.integers(1, 6), st.integers(1, 6))
def test_a_beam_that_stops_answers_as_one_that_goes_through_all_levels(model, width, top_k):
    everything = model.trained.search(model.X, top_k=None, threshold=0.0, beam=width)
    stopped = model.trained.search(model.X, top_k=top_k, threshold=0.0, beam=width)
    assert same(stopped, keep_best(everything, top_k, 0.0))
    settings = {"threshold": 0.0, "beam": width}
    assert (
        model.trained.trace(model.X, top_k=top_k, **settings)[1]
        <= model.trained.trace(model.X, top_k=None, **settings)[1]
    ).all()


@given(searches(), st.integers(1, 6), st.sampled_from([None, 1, 2, 50]), st.sampled_from([0.0, 0.1, 0.5, 0.99]))
def test_no_missing_label_is_more_probable_than_what_was_missed(model, top_k, beam, slack):
    exact = model.trained.search(model.X, top_k=top_k, threshold=0.0)
    settings = {"top_k": top_k, "threshold": 0.0, "beam": beam, "slack": slack}
    found = model.trained.search(model.X, **settings)
    answer, blocks, missed_probability = model.trained.trace(model.X, **settings)
    assert same(answer, found)
    _, exact_blocks, nothing = model.trained.trace(model.X, top_k=top_k, threshold=0.0)
    assert not nothing.any()
    for row, (wanted, pairs) in enumerate(zip(answer_rows(exact), answer_rows(found), strict=True)):
        missed = [p for label, p in wanted if label not in {label for label, _ in pairs}]
        assert all(p <= missed_probability[row] for p in missed)
        if missed_probability[row] == 0:
            assert pairs == wanted
        elif beam is None:  # slack promises more: nothing that is much better than the last answer
            assert len(pairs) == top_k
            assert missed_probability[row] * (1 - slack) < pairs[-1][1] * (1 + 1e-6)
    if beam is None:
        assert (blocks <= exact_blocks).all()
        assert slack > 0 or not missed_probability.any()


@given(searches(), st.integers(1, 4), st.sampled_from([None, 1, 3]), st.sampled_from([0.0, 0.4]))
def test_one_row_is_answered_as_in_a_batch_with_a_beam_and_slack_too(model, top_k, beam, slack):
    batch = answer_rows(model.trained.search(model.X, top_k=top_k, threshold=0.0, beam=beam, slack=slack))
    for row, expected in enumerate(batch):
        indices, values = row_arrays(model.X[[row]])
        labels, probabilities = model.trained.core.search_row(indices, values, top_k, 0.0, beam or 0, slack)
        assert list(zip(labels.tolist(), probabilities, strict=True)) == expected


@given(searches(), st.integers(1, 6), st.sampled_from([0.0, 0.3, 0.9]), st.sampled_from([0.0, 0.4]))
def test_nodes_opened_in_rounds_change_no_answer_and_rows_alone_agree(model, top_k, eager, slack):
    core = model.trained.core
    one_by_one, blocks, _ = model.trained.trace(model.X, top_k=top_k, threshold=0.0)
    core.eager = eager
    in_rounds, more_blocks, missed = model.trained.trace(model.X, top_k=top_k, threshold=0.0)
    assert same(in_rounds, one_by_one)
    assert (more_blocks >= blocks).all()
    assert not missed.any()
    everything = model.trained.search(model.X, top_k=None, threshold=0.0)
    assert same(model.trained.search(model.X, top_k=None, threshold=0.05), keep_best(everything, None, 0.05))
    batch = answer_rows(model.trained.search(model.X, top_k=top_k, threshold=0.0, slack=slack))
    for row, expected in enumerate(batch):
        labels, probabilities = core.search_row(*row_arrays(model.X[[row]]), top_k, 0.0, 0, slack)
        assert list(zip(labels.tolist(), probabilities, strict=True)) == expected


@pytest.mark.parametrize("slack", [-0.1, 1.0, float("nan")])
def test_slack_outside_its_range_is_refused(slack):
    rng = np.random.default_rng(0)
    X, Y = random_rows(rng, 30, 6), sparse.csr_array(np.eye(5)[rng.integers(0, 5, 30)])
    with pytest.raises(ValueError, match="slack must be"):
        PLTClassifier(slack=slack).fit(X, Y)
    model = PLTClassifier().fit(X, Y).set_params(slack=slack)
    for ask in (model.predict_labels, model.search_report):
        with pytest.raises(ValueError, match="slack must be"):
            ask(X)


@pytest.fixture(scope="module")
def head_and_tail():
    """A set with one label on most rows: a tree that knows it has that label near the root."""
    rng = np.random.default_rng(1)
    n_rows, n_labels = 3000, 256
    y = np.where(rng.random(n_rows) < 0.6, 0, rng.integers(1, n_labels, n_rows))
    X = np.zeros((n_rows, n_labels), dtype=np.float32)
    X[np.arange(n_rows), y] = 1
    Y = sparse.csr_array((np.ones(n_rows, np.float32), (np.arange(n_rows), y)), shape=(n_rows, n_labels))
    return sparse.csr_array(X), Y, y


@pytest.mark.parametrize("beam", [None, 10])
def test_a_shallow_label_comes_back_after_few_blocks(head_and_tail, beam):
    X, Y, y = head_and_tail
    model = PLTClassifier(tree="interpolated", tree_options={"lam": 2}, arity=2, max_leaf=1, beam=beam, random_state=0)
    report = model.fit(X, Y).search_report(X, top_k=1)
    assert (report.answer.indices[y == 0] == 0).all()
    assert report.blocks[y == 0].max() <= 2
    assert report.blocks[y != 0].mean() > 6
    assert report.mean_blocks == report.blocks.mean()
    assert report.exact_rows == 1.0
    assert same(report.answer, model.predict_proba(X, top_k=1))


def test_an_ensemble_adds_its_trees_blocks(head_and_tail):
    X, Y, _ = head_and_tail
    few = X[:50]
    one = PLTClassifier(tree=interpolated_tree(X, Y, lam=2, max_leaf=8), random_state=0).fit(X, Y)
    two = PLTClassifier(tree=one.tree_, n_trees=2, random_state=0).fit(X, Y)
    assert 1.5 * one.search_report(few).mean_blocks < two.search_report(few).mean_blocks
    assert same(two.search_report(few).answer, two.predict_proba(few, top_k=5))
