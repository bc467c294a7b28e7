"""Every search of the compiled core against enumeration of the whole tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ramify.trees import LabelTree
from shared.plt_searches import N_ROWS, answer_rows, searches
from shared.rows import row_arrays
from twins.models import random_model, random_rows, random_tree
from twins.search import beam, best, label_probabilities, prepared


@given(searches())
def test_named_labels_have_the_products_along_their_paths(model):
    np.testing.assert_allclose(model.all, model.expected, rtol=2e-5, atol=1e-7)


@given(searches(), st.integers(1, 45))
def test_top_k_is_that_of_the_enumeration_ties_included(model, top_k):
    answer = answer_rows(model.trained.search(model.X, top_k=top_k, threshold=0.0))
    no_threshold = np.zeros(model.tree.n_labels)
    assert answer == [best(row, top_k, no_threshold) for row in model.all]


@pytest.mark.parametrize(("coarse", "top_from"), [(True, None), (False, None), (False, 0.05)])
def test_rows_searched_side_by_side_are_answered_as_if_alone(coarse, top_from):
    rng = np.random.default_rng(3)
    options = {"gate": True, "calibrated": not coarse, "is_multiclass": top_from is not None, "top_from": top_from}
    model = random_model(rng, random_tree(rng, 60), n_features=30, coarse=coarse, **options)
    X = random_rows(rng, 300, 30, coarse=coarse)
    answers = [model.trained.search(X, top_k=5, threshold=0.0, n_threads=n) for n in (1, 2, 3)]
    for other in answers[1:]:
        for part in ("indptr", "indices", "data"):
            assert np.array_equal(getattr(answers[0], part), getattr(other, part))
    for row, together in zip(range(300), answer_rows(answers[0]), strict=True):
        indices, values = row_arrays(X[[row]])
        labels, probabilities = model.trained.core.search_row(indices, values, 5, 0.0)
        assert together == list(zip(labels.tolist(), probabilities, strict=True))


@given(searches(), st.data())
def test_a_threshold_keeps_what_reaches_it_and_no_more(model, data):
    # Thresholds equal to a label's probability are the hard ones.
    threshold = data.draw(st.sampled_from([0.0, 0.01, 0.5, 1.0, *model.all.ravel().tolist()]))
    top_k = data.draw(st.one_of(st.none(), st.integers(1, 5)))
    answer = answer_rows(model.trained.search(model.X, top_k=top_k, threshold=threshold))
    thresholds = np.full(model.tree.n_labels, threshold, np.float32)
    assert answer == [best(row, top_k, thresholds) for row in model.all]


@given(searches(), st.data())
def test_every_label_may_have_its_own_threshold(model, data):
    pool = [0.0, 0.3, 0.9, 2.0, *model.all.ravel().tolist()]
    thresholds = np.array(
        data.draw(st.lists(st.sampled_from(pool), min_size=model.tree.n_labels, max_size=model.tree.n_labels)),
        np.float32,
    )
    top_k = data.draw(st.one_of(st.none(), st.integers(1, 5)))
    answer = answer_rows(model.trained.search(model.X, top_k=top_k, threshold=thresholds))
    assert answer == [best(row, top_k, thresholds) for row in model.all]


@given(searches(), st.integers(1, 45))
def test_a_beam_as_wide_as_the_tree_is_exact(model, top_k):
    wide = model.trained.search(model.X, top_k=top_k, threshold=0.0, beam=model.tree.n_nodes)
    assert answer_rows(wide) == answer_rows(model.trained.search(model.X, top_k=top_k, threshold=0.0))


@given(searches(coarse=False, is_multiclass=False), st.integers(1, 4))
def test_a_narrow_beam_opens_the_most_probable_nodes_of_each_level(model, width):
    answer = model.trained.search(model.X, top_k=None, threshold=0.0, beam=width)
    for row, pairs in enumerate(answer_rows(answer)):
        # A product too small for a float is 0 in the core, and no answer.
        expected = beam(model.tree, np.where(model.expected_nodes[row] > 1e-30, model.expected_nodes[row], 0), width)
        assert expected is None or sorted(label for label, p in pairs if p > 1e-30) == expected
        assert all(p == model.all[row, label] for label, p in pairs)


@given(searches(), st.integers(1, 45), st.sampled_from([0.0, 0.05]))
def test_one_row_is_answered_as_in_a_batch_and_best_first(model, top_k, threshold):
    batch = answer_rows(model.trained.search(model.X, top_k=top_k, threshold=threshold))
    for row in range(N_ROWS):
        indices, values = row_arrays(model.X[[row]])
        labels, probabilities = model.trained.core.search_row(indices, values, top_k, threshold)
        assert list(zip(labels.tolist(), probabilities, strict=True)) == batch[row]


@given(searches(coarse=False), st.integers(1, 5))
def test_best_first_opens_no_node_that_is_less_probable_than_the_last_answer(model, top_k):
    for row in range(N_ROWS):
        *_, n_products = model.trained.core.search(model.X[[row]], top_k, 0.0, None, 0, 1)
        answer = best(model.all[row], top_k, np.zeros(model.tree.n_labels))
        least = answer[-1][1] if len(answer) == top_k else 0.0
        may_open = model.expected_nodes[row] >= least * (1 - 1e-4)
        if model.trained.claims is not None:  # the top is opened whatever is asked
            may_open |= model.products[row] >= model.trained.top_from * (1 - 1e-4)
        may_open &= model.tree.label < 0
        assert n_products <= model.tree.n_children[may_open].sum() + 1  # the gate


@given(searches())
def test_no_node_is_more_probable_than_its_parent(model):
    for row in range(N_ROWS):
        indices, values = row_arrays(model.X[[row]])
        for label in np.flatnonzero(model.tree.leaf_of >= 0):
            path = model.trained.core.explain(indices, values, int(label))
            steps = [probability for _, probability, _, _ in path]
            assert all(0.0 <= probability <= 1.0 for probability in steps)
            assert np.isclose(np.prod(steps, dtype=np.float64), model.all[row, label], rtol=1e-5, atol=1e-9)


@given(searches(is_multiclass=False), st.sampled_from([0.0, 0.01, 0.3]))
def test_paths_hold_what_each_level_adds(model, least):
    n_levels = len(model.trained.link.logits)
    row, label, logs = model.trained.core.paths(model.X, least)
    assert logs.shape == (len(row), n_levels)
    if n_levels == 0:  # without maps there are no levels
        return
    found = np.zeros((N_ROWS, model.tree.n_labels))
    np.add.at(found, (row, label), np.exp(logs.astype(np.float64).sum(axis=1)))
    leaf = model.tree.leaf_of >= 0
    expected = np.where(model.all[:, leaf] >= least, model.all[:, leaf], 0)
    is_clear = np.abs(model.all[:, leaf] - least) > 1e-5 * least + 1e-9
    np.testing.assert_allclose(found[:, leaf][is_clear], expected[is_clear], rtol=1e-4, atol=1e-9)
    for i, j, steps in list(zip(row.tolist(), label.tolist(), logs, strict=True))[:20]:
        indices, values = row_arrays(model.X[[i]])
        path = [p for _, p, _, _ in model.trained.core.explain(indices, values, j)]
        if len(path) <= n_levels and not (steps == 0).any():
            np.testing.assert_allclose(np.exp(steps[len(steps) - len(path) :][: len(path)]), path, rtol=1e-4)


@given(searches(is_multiclass=True, gate=False, absent=0.0))
def test_the_classes_of_a_row_sum_to_one(model):
    np.testing.assert_allclose(model.all.sum(axis=1, dtype=np.float64), 1.0, rtol=1e-5)


@given(searches(is_multiclass=False), st.integers(1, 3))
def test_a_mean_over_trees_is_exact_on_the_candidates(model, top_k):
    answer = model.trained.search(model.X, top_k=top_k, threshold=0.0)
    assert model.trained.named(model.X, answer).tolist() == answer.data.tolist()


@settings(max_examples=20)
@given(searches(is_multiclass=True, calibrated=True, top_from=0.02))
def test_what_is_claimed_below_a_node_revises_it_whatever_is_asked(model):
    if model.trained.claims is None:
        return
    plain = replace(model.trained, claims=None, top_from=1.0).named(
        model.X, sparse.csr_array(np.ones((N_ROWS, model.tree.n_labels), np.float32))
    )
    if model.tree.height <= 1:  # the root alone is the top, and all that its children claim is divided away
        np.testing.assert_allclose(model.all.ravel(), plain, rtol=2e-5, atol=1e-7)
    for row in range(N_ROWS):
        indices, values = row_arrays(model.X[[row]])
        for top_k in (1, 2, model.tree.n_labels):
            labels, probabilities = model.trained.core.search_row(indices, values, top_k, 0.0)
            assert probabilities.tolist() == model.all[row, labels].tolist()


def chain(length):
    """A path of inner nodes, a leaf on each: as deep as a tree can be."""
    nested = [0]
    for label in range(1, length):
        nested = [label, nested]
    return LabelTree.from_nested(nested)


@pytest.mark.parametrize(
    "tree", [chain(20), LabelTree([-1], [0]), LabelTree([-1, 0], [-1, 0]), LabelTree([-1], [3], 5)]
)
def test_odd_trees_are_searched_exactly(tree):
    model = random_model(np.random.default_rng(3), tree, gate=True, absent=0.0)
    X = random_rows(np.random.default_rng(4), 8, 6)
    x = prepared(X.toarray(), False, 0.5)
    expected = [label_probabilities(tree, model.nodes, row, model.link, False) for row in x]
    for top_k in (1, 3, None):
        for row, pairs in enumerate(answer_rows(model.trained.search(X, top_k=top_k, threshold=0.0))):
            wanted = best(expected[row], top_k, np.zeros(tree.n_labels))
            assert [label for label, _ in pairs] == [label for label, _ in wanted]
            np.testing.assert_allclose([p for _, p in pairs], [p for _, p in wanted], rtol=1e-5)


@settings(max_examples=20)
@given(searches())
def test_threads_and_the_place_in_a_batch_change_no_bit(model):
    many = sparse.csr_array(sparse.vstack([model.X] * 100))
    one, three = (model.trained.search(many, top_k=3, threshold=0.0, n_threads=n) for n in (1, 3))
    alone = model.trained.search(model.X, top_k=3, threshold=0.0)
    for a, b in ((one.indices, three.indices), (one.data, three.data), (one.indptr, three.indptr)):
        assert np.array_equal(a, b)
    assert np.array_equal(one.data, np.tile(alone.data, 100))
    assert np.array_equal(one.indices, np.tile(alone.indices, 100))
